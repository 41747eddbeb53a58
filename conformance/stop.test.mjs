// A server that stops says so to whom it serves, and does not say that their streams
// have ended: they come back to another one, with their last cursor.
import { deepEqual, equal } from "node:assert/strict";
import { describe, it } from "node:test";
import { SITE_EVENTS } from "./documents.mjs";
import { start } from "./fleetgraph.mjs";
import { Socket } from "./socket.mjs";
import { site } from "./target.mjs";

describe("A server that stops", () => {
  it("closes sockets with 1001, ends event streams, and exits", { timeout: 60_000 }, async () => {
    const server = await start();
    const headers = { authorization: `Bearer ${server.token}` };
    try {
      const url = `${server.url}/graphql`;
      const sockets = [await Socket.open({ url: url.replace(/^http/, "ws"), headers }), await Socket.open({ url: url.replace(/^http/, "ws"), headers })];
      for (const socket of sockets) await socket.init();
      const [following] = sockets;
      equal((await following.subscribe("1", SITE_EVENTS, { site }).receive()).type, "next");

      const response = await fetch(url, {
        method: "POST",
        headers: { ...headers, "content-type": "application/json", accept: "text/event-stream" },
        body: JSON.stringify({ query: SITE_EVENTS, variables: { site } }),
      });
      const events = response.body.pipeThrough(new TextDecoderStream())[Symbol.asyncIterator]();
      let heard = "";
      while (!heard.includes("cursor")) heard += (await events.next()).value;

      const exit = server.stop();
      deepEqual(await Promise.all(sockets.map((socket) => socket.closing(20_000))), [1001, 1001]);
      deepEqual(following.unheard, []);
      for (let part = await events.next(); !part.done; part = await events.next()) heard += part.value;
      equal(heard.includes("complete"), false, heard);
      equal(await exit, 0);
    } finally {
      await server.stop();
    }
  });
});
