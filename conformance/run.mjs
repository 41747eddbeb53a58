// Starts a server, runs the suites against it, prints a table, and stops the server.
//
//   node run.mjs                  the product, all suites
//   node run.mjs --reference      the packages' own servers, the suites that fit them
//   node run.mjs FILE...          the product, these suites
import { spawn } from "node:child_process";
import { once } from "node:events";
import { parseArgs } from "node:util";

const { values, positionals } = parseArgs({ options: { reference: { type: "boolean" } }, allowPositionals: true });
const target = values.reference ? "reference" : "fleetgraph";
const suites = {
  reference: ["http", "probes", "events", "clients"],
  fleetgraph: ["http", "probes", "events", "clients", "docs", "relay", "schema", "stop"],
};
const files = positionals.length > 0 ? positionals : suites[target].map((name) => `${name}.test.mjs`);

const { start } = await import(`./${target}.mjs`);
const starting = start();
for (const signal of ["SIGINT", "SIGTERM"]) {
  process.once(signal, async () => {
    await (await starting).stop();
    process.exit(1);
  });
}
const server = await starting;
try {
  const tests = spawn(process.execPath, ["--test", "--test-reporter=./table.mjs", ...files], {
    cwd: new URL(".", import.meta.url),
    env: { ...process.env, CONFORMANCE_TARGET: target, CONFORMANCE_URL: server.url, CONFORMANCE_TOKEN: server.token },
    stdio: "inherit",
  });
  process.once("exit", () => tests.kill()); // suites without a server only fail for longer
  const [code] = await once(tests, "exit");
  process.exitCode = code ?? 1;
} finally {
  await server.stop();
}
