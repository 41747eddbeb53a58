// Follows subscriptions over the WebSocket of the server that this page came from.
import { getOperationAST, parse } from "graphql";
import { createClient } from "graphql-ws";

/** Whether a request runs a subscription. A document with a fault runs nothing: the server says which. */
export function isSubscription({ query, operationName }) {
  try {
    return getOperationAST(parse(query), operationName)?.operation === "subscription";
  } catch {
    return false;
  }
}

/** Runs a subscription: an async iterator of its responses, which ends the connection with itself. */
export function follow(token, request) {
  const client = createClient({
    url: `${location.protocol.replace("http", "ws")}//${location.host}/graphql`,
    connectionParams: { authorization: `Bearer ${token}` },
    retryAttempts: 0, // it would begin again without a cursor
  });
  return client.iterate(request);
}
