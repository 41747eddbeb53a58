// The bearer token of this browser tab.
//
// It arrives in the URL's fragment, which no browser sends to a server, so it is in
// no access log; it is taken out of the address bar and the history entry at once.
// It is kept in sessionStorage rather than localStorage: it survives a reload, other
// tabs and later sessions do not see it, and it goes with the tab.

const KEY = "fleetgraph.token";

/** Takes a token out of the fragment, if there is one, and returns the tab's token or "". */
export function loadToken() {
  const fragment = new URLSearchParams(location.hash.slice(1));
  const given = fragment.get("token");
  if (given) {
    sessionStorage.setItem(KEY, given);
    fragment.delete("token");
    const rest = fragment.toString();
    history.replaceState(null, "", location.pathname + location.search + (rest ? `#${rest}` : ""));
  }
  return sessionStorage.getItem(KEY) ?? "";
}

export function saveToken(token) {
  sessionStorage.setItem(KEY, token);
}

export function forgetToken() {
  sessionStorage.removeItem(KEY);
}
