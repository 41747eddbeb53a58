// The product: the binary that `make build` leaves in bin/, with a Postgres of its
// own and the demo site, in a directory that is removed afterwards.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const binary = fileURLToPath(new URL("../bin/fleetgraph", import.meta.url));
const PATIENCE = 60_000; // ms for the start, and for the end

/** start resolves once the server serves, on a free loopback port. */
export async function start() {
  const directory = await mkdtemp(join(tmpdir(), "fleetgraph-conformance-"));
  await chmod(directory, 0o711); // Postgres runs as a user of its own where root starts it
  const tokenFile = join(directory, "token");
  const server = spawn(
    binary,
    ["serve", "--demo", "--listen=127.0.0.1:0", "--log-format=json", "--rate-limit=0", "--auth-failure-limit=0", `--data-dir=${join(directory, "data")}`, `--admin-token-file=${tokenFile}`],
    { stdio: ["ignore", "ignore", "pipe"] },
  );
  const ended = once(server, "exit");
  const log = [];
  const stop = async () => {
    server.kill("SIGTERM");
    const unwilling = setTimeout(() => server.kill("SIGKILL"), PATIENCE);
    const [code] = await ended;
    clearTimeout(unwilling);
    await rm(directory, { recursive: true, force: true });
    return code;
  };
  const address = new Promise((resolve) => {
    createInterface({ input: server.stderr }).on("line", (line) => {
      log.push(line);
      const entry = parsed(line);
      if (entry.msg === "serving") resolve(entry.address);
    });
  });
  const late = new Promise((resolve) => setTimeout(resolve, PATIENCE).unref());
  const serving = await Promise.race([address, ended.then(() => undefined), late]);
  if (!serving) {
    await stop();
    throw new Error(`the server did not start:\n${log.join("\n")}`);
  }
  return { url: `http://${serving}`, token: (await readFile(tokenFile, "utf8")).trim(), stop };
}

function parsed(line) {
  try {
    return JSON.parse(line);
  } catch {
    return {};
  }
}
