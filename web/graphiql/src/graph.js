// Calls the graph of the server that this page came from.

/** Thrown when the server does not accept the token; the message is for people. */
export class SignInNeeded extends Error {}

/** Sends one GraphQL request and returns the response object. */
export async function call(token, request, signal) {
  const response = await fetch("/graphql", {
    method: "POST",
    headers: {
      authorization: `Bearer ${token}`,
      "content-type": "application/json",
      accept: "application/graphql-response+json, application/json",
    },
    body: JSON.stringify(request),
    signal,
  });
  const result = await response.json();
  if (response.status === 401) throw new SignInNeeded(result.errors?.[0]?.message ?? "the token is not accepted");
  return result;
}
