// Server-sent events, by the distinct connections mode of graphql-sse's PROTOCOL.md,
// read as bytes: the event stream and its events.
import { deepEqual, equal, ok } from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { describe, it } from "node:test";
import { MACHINE_EVENTS, RAISE, WHO } from "./documents.mjs";
import { authorization, demoMachine, graph, newMachine, raise, remove, target, url } from "./target.mjs";

const accept = "text/event-stream";

/** open sends an operation, and resolves with the response. */
function open(method, query, variables, headers = { authorization }) {
  if (method === "POST") {
    const body = JSON.stringify({ query, variables });
    return fetch(url, { method, headers: { ...headers, accept, "content-type": "application/json" }, body });
  }
  const parameters = new URLSearchParams({ query, variables: JSON.stringify(variables ?? {}) });
  return fetch(`${url}?${parameters}`, { method, headers: { ...headers, accept } });
}

/** events reads a response to its end: an item an event, comments left out. */
async function* events(response) {
  equal(response.status, 200);
  equal(response.headers.get("content-type").split(";")[0], accept);
  let text = "";
  for await (const part of response.body.pipeThrough(new TextDecoderStream())) {
    text += part;
    const blocks = text.split("\n\n");
    text = blocks.pop();
    for (const block of blocks) {
      const fields = block.split("\n").filter((line) => line !== "" && !line.startsWith(":"));
      if (fields.length === 0) continue;
      const value = (name) => fields.filter((line) => line.startsWith(`${name}:`)).map((line) => line.slice(name.length + 1).trimStart());
      const [event] = value("event");
      const data = value("data").join("\n");
      yield { event, data: event === "next" ? JSON.parse(data) : undefined };
    }
  }
  equal(text.trim(), "", "the stream ends within an event");
}

/** cut opens a stream on a socket of its own and resolves with what resets that socket. */
async function cut(query, variables) {
  const { hostname, port, pathname } = new URL(url);
  const body = JSON.stringify({ query, variables });
  const head = [`POST ${pathname} HTTP/1.1`, `host: ${hostname}`, `authorization: ${authorization}`, `accept: ${accept}`, "content-type: application/json", `content-length: ${body.length}`];
  const socket = connect(port, hostname).on("error", () => {});
  socket.write(`${head.join("\r\n")}\r\n\r\n${body}`);
  await once(socket, "data");
  return () => socket.resetAndDestroy();
}

async function whole(response) {
  const all = [];
  for await (const event of events(response)) all.push(event);
  return all;
}

const names = (all) => all.map(({ event }) => event);

/**
 * refusedInStream expects errors and no data. The protocol has them come in the stream;
 * the package answers some before it, with a status.
 */
async function refusedInStream(response, statusOfReference) {
  if (target === "reference" && statusOfReference) {
    equal(response.status, statusOfReference);
    return;
  }
  const all = await whole(response);
  deepEqual(names(all), ["next", "complete"]);
  ok(all[0].data.errors.length > 0);
  equal("data" in all[0].data, false);
}

describe("Server-sent events", { concurrency: 4, timeout: 30_000 }, () => {
  for (const method of ["POST", "GET"]) {
    it(`${method}: a query gives one result and its end`, async () => {
      const all = await whole(await open(method, WHO));
      deepEqual(names(all), ["next", "complete"]);
      equal(all[0].data.data.viewer.role, "ADMIN");
    });

    it(`${method}: a subscription gives its events, and its end when its source has one`, async () => {
      const machine = await newMachine();
      const types = [];
      for await (const { event, data } of events(await open(method, MACHINE_EVENTS, { id: machine.id }))) {
        if (types.length === 0) await remove(machine);
        types.push(event === "next" ? data.data.machine.__typename : event);
      }
      deepEqual([types[0], ...types.slice(-2)], ["MachineSnapshot", "MachineEnd", "complete"]);
    });

    it(`${method}: a document that does not parse is told in the stream, without data`, async () =>
      refusedInStream(await open(method, "{ viewer "), 400));

    it(`${method}: a document that is not valid is told in the stream, without data`, async () =>
      refusedInStream(await open(method, "{ nonsense }")));

    it(`${method}: who has no token is refused before there is a stream`, async () => {
      const response = await open(method, WHO, undefined, {});
      equal(response.status, 401);
      await response.body.cancel();
    });
  }

  it("POST: a mutation gives one result and its end", async () => {
    const machine = await newMachine();
    const input = { machineId: machine.id, alertId: "Conformance", message: "of a stream" };
    const all = await whole(await open("POST", RAISE, { input }));
    deepEqual(names(all), ["next", "complete"]);
    equal(all[0].data.data.raiseHealthAlert.healthAlert.alertId, "Conformance");
  });

  it("GET: a mutation is not run", async () => {
    const machine = await demoMachine();
    const input = { machineId: machine.id, alertId: "Conformance", message: "of a link" };
    await refusedInStream(await open("GET", RAISE, { input }), 405);
  });

  it("two streams of one client are two", async () => {
    const machine = await newMachine();
    const streams = await Promise.all([0, 1].map(() => open("POST", MACHINE_EVENTS, { id: machine.id })));
    const both = Promise.all(streams.map(whole));
    await remove(machine);
    for (const all of await both) equal(names(all).at(-1), "complete");
  });

  it("readers that reset their sockets amid the events end nothing but their streams", async () => {
    const machine = await newMachine();
    for (let round = 0; round < 10; round++) {
      const cuts = await Promise.all(Array.from({ length: 20 }, () => cut(MACHINE_EVENTS, { id: machine.id })));
      const raised = Array.from({ length: 10 }, () => raise(machine));
      for (const reset of cuts) reset();
      await Promise.all(raised);
    }
    equal((await graph(WHO)).viewer.role, "ADMIN");
  });
});
