// The reference server: the servers of the packages graphql-ws, graphql-sse and
// graphql-http themselves, before a small graph in memory. The suites are proven
// against it before they judge the product.
import { createServer } from "node:http";
import { GraphQLError, buildSchema } from "graphql";
import { createHandler as overHTTP } from "graphql-http/lib/use/http";
import { createHandler as overEvents } from "graphql-sse/lib/use/http";
import { useServer } from "graphql-ws/use/ws";
import { WebSocketServer } from "ws";

const TOKEN = "Bearer reference";
const MAX_MESSAGE = 1 << 20; // bytes; ws itself closes with 1009 above it

const schema = buildSchema(/* GraphQL */ `
  scalar Cursor
  scalar JSON
  type Query { viewer: Viewer! site(name: String!): Site machine(site: String!, name: String): Machine }
  type Viewer { name: String! role: String! }
  type Site { id: ID! name: String! }
  type Machine { id: ID! name: String! }
  type Transition { id: ID! cause: String! message: String! machine: Machine }
  type HealthAlert { id: ID! alertId: String! }

  type Mutation {
    reportInventory(input: ReportInventoryInput!): ReportInventoryPayload!
    raiseHealthAlert(input: RaiseHealthAlertInput!): RaiseHealthAlertPayload!
    clearHealthAlert(input: ClearHealthAlertInput!): ClearHealthAlertPayload!
    deleteMachine(input: DeleteMachineInput!): DeleteMachinePayload!
  }
  input ReportInventoryInput { siteId: ID! bmcMacAddress: String! name: String inventory: JSON! }
  input RaiseHealthAlertInput { machineId: ID! alertId: String! message: String! }
  input ClearHealthAlertInput { healthAlertId: ID! }
  input DeleteMachineInput { machineId: ID! }
  type ReportInventoryPayload { machine: Machine! }
  type RaiseHealthAlertPayload { healthAlert: HealthAlert! }
  type ClearHealthAlertPayload { machine: Machine! }
  type DeleteMachinePayload { deletedMachineId: ID! }

  type Subscription {
    machine(id: ID!, after: Cursor): MachineEvent!
    siteEvents(site: String!, after: Cursor): TransitionEvent!
  }
  union MachineEvent = MachineSnapshot | MachineChange | MachineEnd
  type MachineSnapshot { machine: Machine! cursor: Cursor! }
  type MachineChange { transition: Transition! machine: Machine cursor: Cursor! }
  type MachineEnd { transition: Transition! cursor: Cursor! }
  type TransitionEvent { transition: Transition cursor: Cursor! }
`);

// The graph: machines, alerts, and the history, whose positions are the cursors.
const machines = new Map([["gpu-01", { id: "gpu-01", name: "gpu-01" }]]);
const alerts = new Map();
const history = [];
const followers = new Set();

function record(machine, cause, message = "") {
  history.push({ id: `t${history.length}`, cause, message, machine, cursor: String(history.length + 1) });
  for (const follower of followers) follower(history.at(-1));
}

function present(map, id, what) {
  if (!map.has(id)) throw new GraphQLError(`${what} not found`);
  return map.get(id);
}

// follow is an iterator of a first event and of what each transition after the
// cursor means to its reader: an event, or nothing; the last event is told apart.
function follow(field, after, first, eventOf) {
  const queue = after == null ? [first] : [];
  let ended = false;
  let wake = () => {};
  const take = (transition) => {
    const event = eventOf(transition);
    if (event) queue.push(event);
    if (event?.__typename === "MachineEnd") iterator.stop();
    wake();
  };
  const iterator = {
    [Symbol.asyncIterator]: () => iterator,
    stop() {
      ended = true;
      followers.delete(take);
      wake();
    },
    async next() {
      while (queue.length === 0 && !ended) await new Promise((resolve) => (wake = resolve));
      return queue.length > 0 ? { done: false, value: { [field]: queue.shift() } } : { done: true, value: undefined };
    },
    async return() {
      queue.length = 0;
      iterator.stop();
      return { done: true, value: undefined };
    },
  };
  followers.add(take);
  if (after != null) history.slice(Number(after)).forEach(take);
  return iterator;
}

const resolvers = {
  Query: {
    viewer: () => ({ name: "reference", role: "ADMIN" }),
    site: ({ name }) => (name === "demo" ? { id: "demo", name } : null),
    machine({ name }) {
      if (name == null) throw new GraphQLError("exactly one key is needed");
      return machines.get(name) ?? null;
    },
  },
  Mutation: {
    reportInventory({ input: { name } }) {
      machines.set(name, { id: name, name });
      record(machines.get(name), "INVENTORY_REPORTED");
      return { machine: machines.get(name) };
    },
    raiseHealthAlert({ input: { machineId, alertId, message } }) {
      const alert = { id: `${machineId}/${alertId}`, alertId, machine: present(machines, machineId, "machine") };
      alerts.set(alert.id, alert);
      record(alert.machine, "HEALTH_ALERT_RAISED", message);
      return { healthAlert: alert };
    },
    clearHealthAlert({ input: { healthAlertId } }) {
      const { machine } = present(alerts, healthAlertId, "alert");
      alerts.delete(healthAlertId);
      record(machine, "HEALTH_ALERT_CLEARED");
      return { machine };
    },
    deleteMachine({ input: { machineId } }) {
      const machine = present(machines, machineId, "machine");
      machines.delete(machineId);
      record(machine, "MACHINE_DELETED");
      return { deletedMachineId: machineId };
    },
  },
  Subscription: {
    machine({ id, after }) {
      const first = { __typename: "MachineSnapshot", machine: present(machines, id, "machine"), cursor: String(history.length) };
      return follow("machine", after, first, (transition) => {
        if (transition.machine.id !== id) return undefined;
        const end = transition.cause === "MACHINE_DELETED";
        return { __typename: end ? "MachineEnd" : "MachineChange", transition, machine: transition.machine, cursor: transition.cursor };
      });
    },
    siteEvents({ site, after }) {
      if (site !== "demo") throw new GraphQLError("site not found");
      const first = { transition: null, cursor: String(history.length) };
      return follow("siteEvents", after, first, (transition) => ({ transition, cursor: transition.cursor }));
    },
  },
};

for (const [type, fields] of Object.entries(resolvers)) {
  for (const [name, resolve] of Object.entries(fields)) {
    const field = schema.getType(type).getFields()[name];
    field[type === "Subscription" ? "subscribe" : "resolve"] = (_, args) => resolve(args);
  }
}

/** start serves on a free loopback port. */
export async function start() {
  const http = overHTTP({ schema });
  const events = overEvents({ schema });
  const server = createServer(async (request, response) => {
    if (request.headers.authorization !== TOKEN) return response.writeHead(401).end();
    const stream = request.headers.accept?.startsWith("text/event-stream");
    if (stream) request.headers.accept = "text/event-stream"; // the package knows a list of types by no other name
    await (stream ? events : http)(request, response).catch((error) => gone(error, response));
  });
  const sockets = new WebSocketServer({ server, path: "/graphql", maxPayload: MAX_MESSAGE });
  console.error = () => {}; // the package prints what the probes provoke
  const disposable = useServer({ schema, onConnect: allowed }, sockets);
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    token: TOKEN.slice("Bearer ".length),
    async stop() {
      await disposable.dispose();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

// gone is what a write to a reader who has left comes to: the end of that answer and
// not of the server. Any other fault is the server's, and ends it.
function gone(error, response) {
  if (!["EPIPE", "ECONNRESET", "ERR_STREAM_DESTROYED"].includes(error.code)) throw error;
  response.destroy();
}

// allowed takes a moment, as looking a token up does.
async function allowed({ connectionParams = {}, extra: { request } }) {
  await new Promise((resolve) => setTimeout(resolve, 20));
  const [, given] = Object.entries(connectionParams).find(([key]) => key.toLowerCase() === "authorization") ?? [];
  return (given ?? request.headers.authorization) === TOKEN;
}
