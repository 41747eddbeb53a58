// The audit of the GraphQL-over-HTTP specification that comes with graphql-http.
import { equal } from "node:assert/strict";
import { describe, it } from "node:test";
import { serverAudits } from "graphql-http";
import { authorization, url } from "./target.mjs";

const audits = serverAudits({
  url,
  fetchFn: (resource, options = {}) => fetch(resource, { ...options, headers: { ...options.headers, authorization } }),
});

describe("GraphQL over HTTP audit", () => {
  for (const { id, name, fn } of audits) {
    it(`${id} ${name}`, async () => {
      const { status, reason } = await fn();
      equal(status, "ok", reason);
    });
  }

  it("has all 61 audits", () => equal(audits.length, 61));
});
