// The clients that users bring: each runs a query, follows a machine from its
// snapshot to its end, and follows a site.
import { deepEqual, equal, ok } from "node:assert/strict";
import { describe, it } from "node:test";
import { ApolloClient, ApolloLink, HttpLink, InMemoryCache, gql } from "@apollo/client";
import { GraphQLWsLink } from "@apollo/client/link/subscriptions";
import { Client as Urql, fetchExchange, subscriptionExchange } from "@urql/core";
import { OperationTypeNode } from "graphql";
import { createClient as createEventClient } from "graphql-sse";
import { createClient as createSocketClient } from "graphql-ws";
import { WebSocket } from "ws";
import { MACHINE_EVENTS, SITE_EVENTS, WHO } from "./documents.mjs";
import { authorization, clear, newMachine, raise, remove, site, socketURL, url } from "./target.mjs";

const headers = { authorization };
const TIMEOUT = { timeout: 30_000 };

const overSocket = () =>
  createSocketClient({ url: socketURL, webSocketImpl: WebSocket, connectionParams: headers, retryAttempts: 0, lazyCloseTimeout: 0 });

/** iterator turns an observable, which is given a sink, into an iterator. */
function iterator(subscribe) {
  const queue = [];
  let over, failure, subscription;
  let wake = () => {};
  const put = (change) => (value) => {
    change(value);
    wake();
  };
  const iterable = {
    [Symbol.asyncIterator]: () => iterable,
    async next() {
      while (queue.length === 0 && !over) await new Promise((resolve) => (wake = resolve));
      if (queue.length > 0) return { done: false, value: queue.shift() };
      if (failure) throw failure;
      return { done: true, value: undefined };
    },
    async return() {
      // urql lets the rejection of an aborted fetch escape while it hands out a result.
      await new Promise(setImmediate);
      subscription.unsubscribe();
      return { done: true, value: undefined };
    },
  };
  subscription = subscribe({
    next: put((value) => queue.push(value)),
    error: put((error) => ((failure = error), (over = true))),
    complete: put(() => (over = true)),
  });
  return iterable;
}

// What the suite needs of a client: one result, an iterator of results, an end.
const clients = {
  "graphql-ws"() {
    const client = overSocket();
    return {
      async query(query) {
        for await (const result of client.iterate({ query })) return result;
      },
      follow: (query, variables) => client.iterate({ query, variables }),
      end: () => client.dispose(),
    };
  },

  "graphql-sse, distinct connections"() {
    const client = createEventClient({ url, headers, singleConnection: false, retryAttempts: 0 });
    return {
      async query(query) {
        for await (const result of client.iterate({ query })) return result;
      },
      follow: (query, variables) => client.iterate({ query, variables }),
      end: () => client.dispose(),
    };
  },

  "urql over graphql-ws"() {
    const sockets = overSocket();
    const forward = ({ query, variables }) => ({
      subscribe: (sink) => ({ unsubscribe: sockets.subscribe({ query, variables }, sink) }),
    });
    return urql([subscriptionExchange({ forwardSubscription: forward }), fetchExchange], {}, () => sockets.dispose());
  },

  "urql over server-sent events": () => urql([fetchExchange], { fetchSubscriptions: true }, () => {}),

  "Apollo Client over graphql-ws"() {
    const sockets = overSocket();
    const link = ApolloLink.split(
      ({ operationType }) => operationType === OperationTypeNode.SUBSCRIPTION,
      new GraphQLWsLink(sockets),
      new HttpLink({ uri: url, headers }),
    );
    const client = new ApolloClient({ link, cache: new InMemoryCache(), defaultOptions: { query: { fetchPolicy: "no-cache" } } });
    return {
      query: (query) => client.query({ query: gql(query) }),
      follow: (query, variables) =>
        iterator((sink) => client.subscribe({ query: gql(query), variables, fetchPolicy: "no-cache" }).subscribe(sink)),
      async end() {
        client.stop();
        await sockets.dispose();
      },
    };
  },
};

function urql(exchanges, options, end) {
  const client = new Urql({ url, exchanges, preferGetMethod: false, fetchOptions: { headers }, ...options });
  return {
    query: (query) => client.query(query, {}).toPromise(),
    follow: (query, variables) =>
      iterator((sink) => {
        let last;
        const { unsubscribe } = client.subscription(query, variables).subscribe(({ data, error, hasNext }) => {
          if (error) sink.error(error);
          else if (data !== last) sink.next({ data }); // the end comes with the last result, again
          last = data;
          if (!hasNext) sink.complete();
        });
        return { unsubscribe };
      }),
    end,
  };
}

/** take reads on to the next event that the condition finds. */
async function take(events, condition) {
  for (;;) {
    const { done, value } = await events.next();
    ok(!done, "the stream has ended");
    ok(!value.errors && !value.error, JSON.stringify(value));
    const [event] = Object.values(value.data);
    if (condition(event)) return event;
  }
}

describe("Clients", { concurrency: 3 }, () => {
  for (const [name, create] of Object.entries(clients)) {
    const using = (says, does) =>
      it(`${name}: ${says}`, TIMEOUT, async () => {
        const client = create();
        try {
          await does(client);
        } finally {
          await client.end();
        }
      });

    using("a query", async (client) => {
      const { data, error, errors } = await client.query(WHO);
      deepEqual([error, errors], [undefined, undefined]);
      equal(data.viewer.role, "ADMIN");
    });

    using("a machine from its snapshot over its changes to its end", async (client) => {
      const machine = await newMachine();
      const events = client.follow(MACHINE_EVENTS, { id: machine.id });
      const snapshot = await take(events, () => true);
      deepEqual([snapshot.__typename, snapshot.machine.name], ["MachineSnapshot", machine.name]);

      await clear(await raise(machine, name));
      const raised = await take(events, ({ transition }) => transition?.cause === "HEALTH_ALERT_RAISED");
      deepEqual([raised.__typename, raised.transition.message, raised.now.name], ["MachineChange", name, machine.name]);
      await take(events, ({ transition }) => transition?.cause === "HEALTH_ALERT_CLEARED");

      await remove(machine);
      equal((await take(events, ({ __typename }) => __typename === "MachineEnd")).transition.cause, "MACHINE_DELETED");
      deepEqual(await events.next(), { done: true, value: undefined });
    });

    using("a machine from where another connection left it", async (client) => {
      const machine = await newMachine();
      const before = client.follow(MACHINE_EVENTS, { id: machine.id });
      const { cursor } = await take(before, () => true);
      await before.return();
      await raise(machine, "while nobody looked");
      const events = client.follow(MACHINE_EVENTS, { id: machine.id, after: cursor });
      const raised = await take(events, ({ __typename, transition }) => __typename !== "MachineChange" || transition.cause === "HEALTH_ALERT_RAISED");
      equal(raised.transition?.message, "while nobody looked");
      await events.return();
    });

    using("the changes of a site, until the client leaves", async (client) => {
      const machine = await newMachine();
      const events = client.follow(SITE_EVENTS, { site });
      equal((await take(events, () => true)).transition, null);
      await raise(machine, name);
      const raised = await take(events, ({ transition }) => transition.machine?.id === machine.id && transition.cause === "HEALTH_ALERT_RAISED");
      equal(raised.transition.message, name);
      await events.return();
    });

    using("a stream that cannot begin is an error", async (client) => {
      const events = client.follow(SITE_EVENTS, { site: "no-such-site" });
      const problem = await events.next().then(({ value }) => value?.errors ?? value?.error, (error) => error);
      ok(problem, "there is no error");
    });
  }
});
