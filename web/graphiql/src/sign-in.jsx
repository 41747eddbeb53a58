import { useState } from "react";

/** Asks for a token. onToken gets it; reason says why the last one was refused. */
export function SignIn({ reason, busy, onToken }) {
  const [token, setToken] = useState("");
  const submit = (event) => {
    event.preventDefault();
    if (token.trim()) onToken(token.trim());
  };
  return (
    <main className="fg-sign-in">
      <form onSubmit={submit}>
        <h1>
          <img src="/graphiql/icon.svg" alt="" /> fleetgraph
        </h1>
        <label htmlFor="token">Token</label>
        <input
          id="token"
          type="password"
          autoComplete="off"
          spellCheck={false}
          autoFocus
          value={token}
          onChange={(event) => setToken(event.target.value)}
          aria-describedby="reason hint"
        />
        <p id="reason" role="alert">
          {reason}
        </p>
        <button type="submit" disabled={busy || !token.trim()}>
          {busy ? "Signing in…" : "Sign in"}
        </button>
        <p id="hint">
          The server printed the first token when it started on an empty database. Later ones come from{" "}
          <code>issueToken</code>. The token stays in this tab.
        </p>
      </form>
    </main>
  );
}
