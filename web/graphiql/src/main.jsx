import "graphiql/style.css";
import "./page.css";

import { useCallback, useEffect, useState } from "react";
import { createRoot } from "react-dom/client";
import { GraphiQL } from "graphiql";

import { follow, isSubscription } from "./follow.js";
import { call, SignInNeeded } from "./graph.js";
import { firstQuery, viewerQuery } from "./queries.js";
import { SignIn } from "./sign-in.jsx";
import { forgetToken, loadToken, saveToken } from "./token.js";

/** The header: whose token it is, and the way out. */
function Header({ viewer, onSignOut }) {
  return (
    <header className="fg-header">
      <img src="/graphiql/icon.svg" alt="" />
      <strong>fleetgraph</strong>
      <span className="fg-viewer" title="Name and role of the token">
        {viewer.name} · {viewer.role.toLowerCase()}
      </span>
      <button type="button" onClick={onSignOut}>
        Sign out
      </button>
    </header>
  );
}

function Console({ token, session, onRefused, onSignOut }) {
  const fetcher = useCallback(
    async (request) => {
      if (isSubscription(request)) return follow(token, request);
      try {
        return await call(token, request);
      } catch (error) {
        if (error instanceof SignInNeeded) onRefused(error.message);
        throw error;
      }
    },
    [token, onRefused],
  );
  return (
    <div className="fg-console">
      <Header viewer={session.viewer} onSignOut={onSignOut} />
      <GraphiQL
        fetcher={fetcher}
        defaultQuery={firstQuery}
        response={session.response}
        isHeadersEditorEnabled={false}
        showPersistHeadersSettings={false}
        defaultEditorToolsVisibility={false}
      >
        <GraphiQL.Logo>
          <></>
        </GraphiQL.Logo>
      </GraphiQL>
    </div>
  );
}

function Page() {
  const [token, setToken] = useState(loadToken);
  const [session, setSession] = useState(null);
  const [reason, setReason] = useState("");

  const refuse = useCallback((why) => {
    forgetToken();
    setSession(null);
    setToken("");
    setReason(why);
  }, []);

  useEffect(() => {
    if (!token) return;
    const abort = new AbortController();
    signIn(token, abort.signal).then(
      (opened) => {
        saveToken(token);
        setReason("");
        setSession(opened);
      },
      (error) => {
        if (!abort.signal.aborted) refuse(error.message);
      },
    );
    return () => abort.abort();
  }, [token, refuse]);

  if (token && session) {
    return <Console token={token} session={session} onRefused={refuse} onSignOut={() => refuse("")} />;
  }
  return <SignIn reason={reason} busy={Boolean(token)} onToken={setToken} />;
}

/** Opens a session: who is calling, and the answer to the first query when no other was left in the editor. */
async function signIn(token, signal) {
  const { data, errors } = await call(token, { query: viewerQuery }, signal);
  if (!data) throw new Error(errors?.[0]?.message ?? "the server gave no answer");
  const first = localStorage.getItem("graphiql:tabState") ? null : await call(token, { query: firstQuery }, signal);
  return { viewer: data.viewer, response: first ? JSON.stringify(first, null, 2) : undefined };
}

createRoot(document.getElementById("root")).render(<Page />);
