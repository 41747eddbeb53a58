import { deepEqual } from "node:assert/strict";
import { describe, it } from "node:test";
import { probes } from "./probes.mjs";
import { Socket } from "./socket.mjs";
import { target } from "./target.mjs";

describe("WebSocket probes", { concurrency: 8 }, () => {
  for (const { of, says, does, ...expected } of probes) {
    const { gives } = (target === "reference" && expected.reference) || expected;
    it(`${of}: ${says}`, { timeout: 30_000 }, async () => {
      const sockets = [];
      const open = async (options) => {
        sockets.push(await Socket.open(options));
        return sockets.at(-1);
      };
      try {
        deepEqual(
          await does(open).catch((error) => error.closedWith ?? Promise.reject(error)),
          gives,
        );
      } finally {
        for (const socket of sockets) socket.terminate();
      }
    });
  }
});
