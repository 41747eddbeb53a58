// Probes of the graphql-transport-ws protocol, one a rule of its PROTOCOL.md or of
// the contract that is stricter: its section, what it says, what a client does, and
// what that gives. A number is the code that the server closes with instead of
// whatever the client waits for.
//
// Where the package's own server is known to give something else, `reference` says
// what and why; the probe holds it to that.
import { setTimeout as after } from "node:timers/promises";
import { CLEAR, MACHINE, MACHINE_EVENTS, RAISE, SITE_EVENTS, WHO } from "./documents.mjs";
import { authorization, demoMachine, newMachine, raise, remove, site } from "./target.mjs";

const anonymous = { headers: {} };
const RESULT = ["next", "complete"];

/** signedIn opens a connection that is acknowledged. */
async function signedIn(open, options) {
  const socket = await open(options);
  await socket.init();
  return socket;
}

/** quiet starts a stream that stays open without an event after its snapshot. */
async function quiet(socket, id) {
  const machine = await demoMachine();
  const snapshot = await socket.subscribe(id, MACHINE_EVENTS, { id: machine.id }).receive();
  if (snapshot.type !== "next" || snapshot.id !== id) throw new Error(`not a snapshot: ${JSON.stringify(snapshot)}`);
}

/** following follows a machine of its own, past its snapshot. */
async function following(socket, id) {
  const machine = await newMachine();
  const snapshot = await socket.subscribe(id, MACHINE_EVENTS, { id: machine.id }).receive();
  if (snapshot.payload?.data?.machine?.__typename !== "MachineSnapshot") throw new Error(`not a snapshot: ${JSON.stringify(snapshot)}`);
  return machine;
}

/** raised reads on to the events of raised alerts, and returns their texts. */
async function raised(socket, id, count) {
  const texts = [];
  while (texts.length < count) {
    const message = await socket.receive();
    if (message.id !== id || message.type !== "next") throw new Error(`not an event of ${id}: ${JSON.stringify(message)}`);
    const { transition } = message.payload.data.machine;
    if (transition.cause === "HEALTH_ALERT_RAISED") texts.push(transition.message);
  }
  return texts;
}

const kinds = (messages) => messages.map(({ type, id }) => (id === undefined ? type : `${type} ${id}`));

/** closesOn is a probe of one message that is not to be. */
const closesOn = (of, says, message, gives = 4400, reference = undefined) => ({
  of,
  says,
  does: async (open) => (await signedIn(open)).send(message).closing(),
  gives,
  reference,
});

const opensWith = (says, payload, gives, options = anonymous) => ({
  of: "ConnectionInit",
  says,
  does: async (open) => {
    const socket = await open(options);
    socket.send({ type: "connection_init", payload });
    return gives === "connection_ack" ? (await socket.receive()).type : socket.closing();
  },
  gives,
});

const communication = [
  {
    of: "Communication",
    says: "the sub-protocol is chosen",
    does: async (open) => (await open()).protocol,
    gives: "graphql-transport-ws",
  },
  {
    of: "Communication",
    says: "the sub-protocol is chosen from several, wherever it stands",
    does: async (open) => (await open({ protocols: ["graphql-ws", "graphql-transport-ws"] })).protocol,
    gives: "graphql-transport-ws",
  },
  {
    of: "Communication",
    says: "a client without a sub-protocol is closed",
    does: async (open) => (await open({ protocols: [] })).closing(),
    gives: 4406,
  },
  ...["graphql-ws", "soap"].map((protocol) => ({
    of: "Communication",
    says: `a client of the sub-protocol ${protocol} is closed`,
    // The header by hand: a client that asked for a protocol breaks off when none is chosen.
    does: async (open) => (await open({ protocols: [], headers: { authorization, "sec-websocket-protocol": protocol } })).closing(),
    gives: 4406,
  })),
  {
    of: "Communication",
    says: "a page of another origin is refused in the handshake",
    does: (open) => open({ headers: { authorization, origin: "https://elsewhere.example" } }).then(() => "opens", ({ status }) => status),
    gives: 403,
    reference: { gives: "opens", because: "the package leaves origins to its user" },
  },
  {
    of: "Communication",
    says: "a normal closure of the client is answered in kind",
    does: async (open) => (await signedIn(open)).close().closing(),
    gives: 1000,
  },
  {
    of: "Communication",
    says: "a normal closure ends what is open",
    does: async (open) => {
      const socket = await signedIn(open);
      await quiet(socket, "1");
      return socket.close().closing();
    },
    gives: 1000,
  },
  {
    of: "Communication",
    says: "operations of several ids interleave, each with its own result and end",
    does: async (open) => {
      const socket = await signedIn(open);
      const ids = Array.from({ length: 50 }, (_, i) => `q${i}`);
      for (const id of ids) socket.subscribe(id, WHO);
      const heard = Object.fromEntries(ids.map((id) => [id, []]));
      for (let left = 2 * ids.length; left > 0; left--) {
        const { id, type } = await socket.receive();
        heard[id].push(type);
      }
      return Object.values(heard).every((types) => types.join() === RESULT.join());
    },
    gives: true,
  },
  {
    of: "Communication",
    says: "the order of the keys of a message, and space around them, mean nothing",
    does: async (open) => {
      const socket = await signedIn(open);
      socket.send(`\n { "payload": {"query": ${JSON.stringify(WHO)}}, "type": "subscribe",\t"id": "1" }\r\n`);
      return (await socket.result("1")).types;
    },
    gives: RESULT,
  },
  {
    of: "Communication",
    says: "a message may come in fragments",
    does: async (open) => {
      const socket = await open();
      socket.send('{"type":"conn', { fin: false }).send("ection_", { fin: false }).send('init"}', { fin: true });
      return (await socket.receive()).type;
    },
    gives: "connection_ack",
  },
  {
    of: "Communication",
    says: "a message of 500 KB is read",
    does: async (open) => {
      const socket = await signedIn(open);
      return (await socket.subscribe("1", MACHINE, { site, name: "n".repeat(500_000) }).result("1")).types.at(-1);
    },
    gives: "complete",
  },
  closesOn("Communication", "a message of 9 MB is too big", { type: "ping", payload: { text: "x".repeat(9 << 20) } }, 1009),
  {
    of: "Communication",
    says: "text that is not UTF-8 is no text (RFC 6455, 8.1)",
    does: async (open) => {
      const latin1 = Buffer.from('{"type":"ping","payload":{"\xff":1}}', "latin1");
      return (await signedIn(open)).send(latin1, { binary: false }).closing();
    },
    gives: 1007,
  },
];

const connectionInit = [
  opensWith("the token may be in the payload", { authorization }, "connection_ack"),
  opensWith("the key of the token may be in any case", { AuthoriZation: authorization }, "connection_ack"),
  opensWith("the token may be in the handshake, without a payload", undefined, "connection_ack", {}),
  opensWith("the payload may be null", null, "connection_ack", {}),
  opensWith("the payload may hold what the server does not know", { theme: "dark", nested: { list: [1, null] } }, "connection_ack", {}),
  opensWith("no token is refused", undefined, 4403),
  opensWith("a wrong token is refused", { authorization: "Bearer wrong" }, 4403),
  opensWith("a token that is no string is refused", { authorization: 1 }, 4403),
  opensWith("a payload that is an array is invalid", [], 4400, {}),
  opensWith("a payload that is a string is invalid", "token", 4400, {}),
  opensWith("a payload that is a number is invalid", 1, 4400, {}),
  {
    of: "ConnectionInit",
    says: "a second one is too many",
    does: async (open) => (await signedIn(open)).send({ type: "connection_init" }).closing(),
    gives: 4429,
  },
  {
    of: "ConnectionInit",
    says: "a second one is too many while the first is not answered",
    does: async (open) => (await open()).send({ type: "connection_init" }).send({ type: "connection_init" }).closing(),
    gives: 4429,
  },
  {
    of: "ConnectionInit",
    says: "who does not send it in time is closed",
    does: async (open) => (await open()).closing(10_000),
    gives: 4408,
  },
  {
    of: "ConnectionInit",
    says: "pings do not stand in for it",
    does: async (open) => {
      const socket = await open();
      const done = new AbortController();
      (async () => {
        for (; !done.signal.aborted; await after(200)) socket.send({ type: "ping" });
      })();
      return socket.closing(10_000).finally(() => done.abort());
    },
    gives: 4408,
  },
];

const pingAndPong = [
  {
    of: "ConnectionAck",
    says: "it is the one answer, and its payload is an object if there is one",
    does: async (open) => {
      const socket = await open();
      const { type, payload, ...more } = await socket.init();
      return [type, typeof (payload ?? {}), more, await socket.fence()];
    },
    gives: ["connection_ack", "object", {}, []],
  },
  {
    of: "Ping",
    says: "it is answered before the connection is acknowledged",
    does: async (open) => (await (await open()).send({ type: "ping" }).receive()).type,
    gives: "pong",
  },
  {
    of: "Ping",
    says: "it is answered, once each, in a stream",
    does: async (open) => {
      const socket = await signedIn(open);
      await quiet(socket, "1");
      for (let i = 0; i < 100; i++) socket.send({ type: "ping" });
      return (await socket.fence()).filter(({ type }) => type === "pong").length;
    },
    gives: 100,
  },
  {
    of: "Ping",
    says: "it may have a payload, which comes back",
    does: async (open) => (await signedIn(open)).send({ type: "ping", payload: { sent: 1.5, by: "ü" } }).receive(),
    gives: { type: "pong", payload: { sent: 1.5, by: "ü" } },
  },
  {
    of: "Ping",
    says: "its payload may be null",
    does: async (open) => (await (await signedIn(open)).send({ type: "ping", payload: null }).receive()).type,
    gives: "pong",
  },
  closesOn("Ping", "a payload that is a string is invalid", { type: "ping", payload: "x" }),
  closesOn("Ping", "a payload that is an array is invalid", { type: "ping", payload: [] }),
  {
    of: "Pong",
    says: "it may come unasked, at any time, with a payload or without, and is not answered",
    does: async (open) => {
      const socket = await open();
      socket.send({ type: "pong" }).send({ type: "pong", payload: { beat: 1 } });
      await socket.init();
      socket.send({ type: "pong", payload: null }).send({ type: "pong" });
      return socket.fence();
    },
    gives: [],
  },
  closesOn("Pong", "a payload that is a number is invalid", { type: "pong", payload: 1 }),
];

const subscribeMessage = (payload, id = "1") => ({ type: "subscribe", id, payload });

const subscribe = [
  {
    of: "Subscribe",
    says: "before the connection is asked for it is unauthorized",
    does: async (open) => (await open()).subscribe("1", WHO).closing(),
    gives: 4401,
  },
  {
    of: "Subscribe",
    says: "behind connection_init, which is answered first, it may be sent at once",
    does: async (open) => {
      const socket = (await open()).send({ type: "connection_init" }).subscribe("1", WHO);
      return [(await socket.receive()).type, ...(await socket.result("1")).types];
    },
    gives: ["connection_ack", ...RESULT],
    reference: { gives: 4401, because: "the package reads on while it looks the token up; the contract reads messages in order" },
  },
  closesOn("Subscribe", "without an id it is invalid", { type: "subscribe", payload: { query: WHO } }),
  closesOn("Subscribe", "an empty id is invalid", subscribeMessage({ query: WHO }, "")),
  closesOn("Subscribe", "an id that is a number is invalid", subscribeMessage({ query: WHO }, 1)),
  closesOn("Subscribe", "an id that is null is invalid", subscribeMessage({ query: WHO }, null)),
  closesOn("Subscribe", "without a payload it is invalid", { type: "subscribe", id: "1" }),
  closesOn("Subscribe", "a payload that is a string is invalid", subscribeMessage(WHO)),
  closesOn("Subscribe", "a payload without a query is invalid", subscribeMessage({ variables: {} })),
  closesOn("Subscribe", "a payload with a key in other letters has no query", subscribeMessage({ Query: WHO })),
  closesOn("Subscribe", "a query that is no string is invalid", subscribeMessage({ query: { kind: "Document" } })),
  closesOn("Subscribe", "variables that are an array are invalid", subscribeMessage({ query: WHO, variables: [] })),
  closesOn("Subscribe", "an operation name that is a number is invalid", subscribeMessage({ query: WHO, operationName: 1 })),
  closesOn("Subscribe", "extensions that are a string are invalid", subscribeMessage({ query: WHO, extensions: "x" })),
  {
    of: "Subscribe",
    says: "what is optional in the payload may be null",
    does: async (open) => {
      const optional = { operationName: null, variables: null, extensions: null };
      return (await (await signedIn(open)).subscribe("1", WHO, null, optional).result("1")).types;
    },
    gives: RESULT,
  },
  {
    of: "Subscribe",
    says: "the operation is chosen by its name, its variables are those of the payload",
    does: async (open) => {
      const socket = await signedIn(open);
      const both = `${WHO} ${MACHINE}`;
      const { payload } = await socket.subscribe("1", both, { site, name: "gpu-01" }, { operationName: "Machine" }).result("1");
      return payload.data.machine.name;
    },
    gives: "gpu-01",
  },
  {
    of: "Subscribe",
    says: "an id that is alive is taken, and the connection ends",
    does: async (open) => {
      const socket = await signedIn(open);
      await quiet(socket, "1");
      return socket.subscribe("1", SITE_EVENTS, { site }).closing();
    },
    gives: 4409,
  },
  {
    of: "Subscribe",
    says: "an id that is alive is taken whatever the kind of operation",
    does: async (open) => {
      const socket = await signedIn(open);
      await quiet(socket, "1");
      return socket.subscribe("1", WHO).closing();
    },
    gives: 4409,
  },
  {
    of: "Subscribe",
    says: "an id of 500 bytes is taken as well, with a reason that fits its frame",
    does: async (open) => {
      const socket = await signedIn(open);
      const id = "é".repeat(250);
      await quiet(socket, id);
      return socket.subscribe(id, WHO).closing();
    },
    gives: 4409,
    reference: { gives: 4500, because: "the package puts the whole id into the reason, which then is too long" },
  },
  {
    of: "Subscribe",
    says: "the ids of two connections are two",
    does: async (open) => {
      const sockets = [await signedIn(open), await signedIn(open)];
      for (const socket of sockets) await quiet(socket, "1");
      return Promise.all(sockets.map((socket) => socket.fence()));
    },
    gives: [[], []],
  },
  ...["__proto__", 'a"\\\n', "機械", "0"].map((id) => ({
    of: "Subscribe",
    says: `an id may be ${JSON.stringify(id)}`,
    does: async (open) => (await (await signedIn(open)).subscribe(id, WHO).result(id)).types,
    gives: RESULT,
  })),
  {
    of: "Subscribe",
    says: "an id is free again once the server has completed it",
    does: async (open) => {
      const socket = await signedIn(open);
      const first = await socket.subscribe("1", WHO).result("1");
      return [first.types, (await socket.subscribe("1", WHO).result("1")).types];
    },
    gives: [RESULT, RESULT],
  },
  {
    of: "Subscribe",
    says: "an id is free again once its operation was an error",
    does: async (open) => {
      const socket = await signedIn(open);
      const first = await socket.subscribe("1", "{ nonsense }").result("1");
      return [first.types, (await socket.subscribe("1", WHO).result("1")).types];
    },
    gives: [["error"], RESULT],
  },
  {
    of: "Subscribe",
    says: "an id is free again at once when the client has completed it",
    does: async (open) => {
      const socket = await signedIn(open);
      await quiet(socket, "1");
      return (await socket.complete("1").subscribe("1", WHO).result("1")).types;
    },
    gives: RESULT,
  },
];

const results = [
  {
    of: "Next",
    says: "a query gives one result, then its end",
    does: async (open) => {
      const { types, payload } = await (await signedIn(open)).subscribe("1", WHO).result("1");
      return [types, payload.data.viewer.role];
    },
    gives: [RESULT, "ADMIN"],
  },
  {
    of: "Next",
    says: "a mutation gives one result, then its end",
    does: async (open) => {
      const socket = await signedIn(open);
      const machine = await newMachine();
      const input = { machineId: machine.id, alertId: "Conformance", message: "of a socket" };
      const { types, payload } = await socket.subscribe("1", RAISE, { input }).result("1");
      const healthAlertId = payload.data.raiseHealthAlert.healthAlert.id;
      const cleared = await socket.subscribe("1", CLEAR, { input: { healthAlertId } }).result("1");
      return [types, cleared.payload.data.clearHealthAlert.machine.name === machine.name];
    },
    gives: [RESULT, true],
  },
  {
    of: "Next",
    says: "an error of a field comes in the result, beside the data",
    does: async (open) => {
      const socket = await signedIn(open);
      const keyless = "query ($site: String!) { viewer { role } machine(site: $site) { id } }";
      const { types, payload } = await socket.subscribe("1", keyless, { site }).result("1");
      return [types, payload.data, payload.errors.map(({ path }) => path)];
    },
    gives: [RESULT, { viewer: { role: "ADMIN" }, machine: null }, [["machine"]]],
  },
  {
    of: "Next",
    says: "a stream gives its events in order, each once",
    does: async (open) => {
      const socket = await signedIn(open);
      const machine = await following(socket, "1");
      const texts = Array.from({ length: 10 }, (_, i) => `event ${i}`);
      for (const text of texts) await raise(machine, text);
      return (await raised(socket, "1", texts.length)).join() === texts.join();
    },
    gives: true,
  },
  {
    of: "Next",
    says: "two streams of one connection give each event to each id",
    does: async (open) => {
      const socket = await signedIn(open);
      const machine = await newMachine();
      for (const id of ["a", "b"]) await socket.subscribe(id, MACHINE_EVENTS, { id: machine.id }).receive();
      await raise(machine);
      const heard = {};
      while (!(heard.a && heard.b)) {
        const { id, payload } = await socket.receive();
        heard[id] ||= payload.data.machine.transition?.cause === "HEALTH_ALERT_RAISED";
      }
      return heard;
    },
    gives: { a: true, b: true },
  },
];

/** refuses is a probe of an operation that is not executed, and what follows it. */
const refuses = (says, query, variables, reference) => ({
  of: "Error",
  says,
  does: async (open) => {
    const socket = await signedIn(open);
    const { types, payload } = await socket.subscribe("1", query, variables).result("1");
    const messages = Array.isArray(payload) && payload.every(({ message }) => typeof message === "string" && message !== "");
    return [types, messages && payload.length > 0, kinds(await socket.fence())];
  },
  gives: [["error"], true, []],
  reference,
});

const inResult = {
  gives: [RESULT, false, []],
  because: "graphql-js finds it in executing, which the package tells as a result; either is the protocol's",
};

const errors = [
  refuses("a document that does not parse is an error, and nothing follows", "{ viewer ", undefined, {
    gives: 4500,
    because: "the package lets the parser's exception end the connection",
  }),
  refuses("an empty document is an error, and nothing follows", "", undefined, {
    gives: 4500,
    because: "the package lets the parser's exception end the connection",
  }),
  refuses("a document that is not valid is an error, and nothing follows", "{ viewer { nonsense } nonsense }"),
  refuses("a subscription of two fields is an error", 'subscription { siteEvents(site: "a") { cursor } again: siteEvents(site: "b") { cursor } }'),
  refuses("an operation that is not in the document is an error", `${WHO} ${MACHINE}`),
  refuses("variables that do not fit are an error", MACHINE, { site: 1, name: "gpu-01" }, inResult),
  refuses("a variable that is missing is an error", MACHINE_EVENTS, {}, inResult),
  refuses("a stream that cannot begin is an error", SITE_EVENTS, { site: "no-such-site" }, inResult),
  {
    of: "Error",
    says: "an error of one operation leaves the others alone",
    does: async (open) => {
      const socket = await signedIn(open);
      const machine = await following(socket, "stream");
      const { types } = await socket.subscribe("1", "{ nonsense }").result("1");
      await raise(machine, "still here");
      return [types, await raised(socket, "stream", 1)];
    },
    gives: [["error"], ["still here"]],
  },
];

const complete = [
  {
    of: "Complete",
    says: "the client's ends the stream, and is not answered",
    does: async (open) => {
      const socket = await signedIn(open);
      const machine = await following(socket, "1");
      const completed = await socket.complete("1").fence();
      await socket.subscribe("2", MACHINE_EVENTS, { id: machine.id }).receive();
      await raise(machine, "of the other");
      return [completed.some(({ type }) => type !== "next"), await raised(socket, "2", 1)];
    },
    gives: [false, ["of the other"]],
  },
  {
    of: "Complete",
    says: "the client's leaves other streams alone",
    does: async (open) => {
      const socket = await signedIn(open);
      await quiet(socket, "1");
      const machine = await following(socket, "2");
      socket.complete("1");
      await raise(machine, "of the other");
      return raised(socket, "2", 1);
    },
    gives: ["of the other"],
  },
  {
    of: "Complete",
    says: "of an id that was never there it is ignored",
    does: async (open) => (await signedIn(open)).complete("nobody").fence(),
    gives: [],
  },
  {
    of: "Complete",
    says: "of an id that has ended it is ignored, twice",
    does: async (open) => {
      const socket = await signedIn(open);
      await socket.subscribe("1", WHO).result("1");
      return socket.complete("1").complete("1").fence();
    },
    gives: [],
  },
  {
    of: "Complete",
    says: "right behind a stream's beginning it ends it without an end of the server",
    does: async (open) => {
      const socket = await signedIn(open);
      const machine = await newMachine();
      const crossed = await socket.subscribe("1", MACHINE_EVENTS, { id: machine.id }).complete("1").fence();
      await raise(machine);
      const free = await socket.subscribe("1", WHO).result("1");
      return [crossed.some(({ type }) => type !== "next"), free.types];
    },
    gives: [false, RESULT],
  },
  {
    of: "Complete",
    says: "right behind a query it leaves at most its result, and the connection open",
    does: async (open) => {
      const socket = await signedIn(open);
      for (let i = 0; i < 20; i++) socket.subscribe(`q${i}`, WHO).complete(`q${i}`);
      const heard = kinds(await socket.fence());
      return heard.length === new Set(heard).size && heard.every((kind) => /^(next|complete) q\d+$/.test(kind));
    },
    gives: true,
  },
  {
    of: "Complete",
    says: "the server's comes when a stream ends by itself, behind the last event",
    does: async (open) => {
      const socket = await signedIn(open);
      const machine = await following(socket, "1");
      await remove(machine);
      for (let last; ; ) {
        const message = await socket.receive();
        if (message.type !== "next") return [last, message.type, await socket.fence()];
        last = message.payload.data.machine.__typename;
      }
    },
    gives: ["MachineEnd", "complete", []],
  },
  closesOn("Complete", "without an id it is invalid", { type: "complete" }),
  closesOn("Complete", "an empty id is invalid", { type: "complete", id: "" }),
];

const fromServerOnly = { gives: 4500, because: "the package takes it for a message, which then has no place in its server" };

const invalid = [
  ["no JSON", "hello"],
  ["nothing", ""],
  ["JSON with something behind it", '{"type":"ping"}{"type":"ping"}'],
  ["an array", '[{"type":"ping"}]'],
  ["a string", '"ping"'],
  ["a number", "1"],
  ["null", "null"],
  ["an object without a type", { id: "1" }],
  ["a type that is a number", { type: 1 }],
  ["a type that is empty", { type: "" }],
  ["a type that is not of the protocol", { type: "start", id: "1", payload: { query: WHO } }],
  ["a type in other letters", { type: "PING" }],
  ["a key in other letters", { Type: "ping" }],
  ["a connection_ack of the client", { type: "connection_ack" }, fromServerOnly],
  ["a next of the client", { type: "next", id: "1", payload: {} }, fromServerOnly],
  ["an error of the client", { type: "error", id: "1", payload: [{ message: "x" }] }, fromServerOnly],
].map(([what, message, reference]) => closesOn("Invalid message", `${what} ends the connection`, message, 4400, reference));

const moreInvalid = [
  {
    of: "Invalid message",
    says: "a binary frame ends the connection",
    does: async (open) => (await (await signedIn(open)).send(Buffer.from('{"type":"ping"}')).receive()).type,
    gives: 4400,
    reference: { gives: "pong", because: "the package reads binary frames as text" },
  },
  {
    of: "Invalid message",
    says: "it ends the connection before it is acknowledged as well",
    does: async (open) => (await open()).send("hello").closing(),
    gives: 4400,
  },
  {
    of: "Invalid message",
    says: "nothing that follows it is answered",
    does: async (open) => {
      const socket = await signedIn(open);
      return socket.send("hello").send({ type: "ping" }).receive();
    },
    gives: 4400,
  },
];

export const probes = [
  ...communication,
  ...connectionInit,
  ...pingAndPong,
  ...subscribe,
  ...results,
  ...errors,
  ...complete,
  ...invalid,
  ...moreInvalid,
];
