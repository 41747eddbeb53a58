// The commands of docs/subscriptions.md, as they stand there.
import { match } from "node:assert/strict";
import { spawn } from "node:child_process";
import { readFile, rm, writeFile } from "node:fs/promises";
import { describe, it } from "node:test";
import { newMachine, raise, remove, url } from "./target.mjs";

const page = await readFile(new URL("../docs/subscriptions.md", import.meta.url), "utf8");
const env = { ...process.env, FLEETGRAPH_URL: new URL(url).origin, FLEETGRAPH_TOKEN: process.env.CONFORMANCE_TOKEN };

/** follows runs a command until it has told of an event that is made once it has begun. */
async function follows(command, args) {
  const machine = await newMachine();
  const child = spawn(command, args, { env, cwd: new URL(".", import.meta.url), stdio: ["ignore", "pipe", "pipe"] });
  let told = "";
  let said = "";
  const tells = (part) =>
    new Promise((resolve, reject) => {
      const late = setTimeout(() => reject(new Error(`${part} did not come: ${told}${said}`)), 20_000);
      const look = (text = "") => {
        told += text;
        if (!told.includes(part)) return;
        clearTimeout(late);
        child.stdout.off("data", look);
        resolve();
      };
      child.stdout.on("data", look);
      look();
    });
  child.stderr.on("data", (text) => (said += text));
  try {
    await tells('"transition":null');
    await raise(machine);
    await tells(`"cause":"HEALTH_ALERT_RAISED","subjectId":"${machine.id}"`);
  } finally {
    child.kill();
    await remove(machine).catch(() => {});
  }
}

describe("docs/subscriptions.md", { concurrency: false }, () => {
  it("follows a site with curl", async () => {
    const [command] = page.match(/^    curl -N (?:[^\n]*\\\n)*[^\n]*/m);
    match(command, /FLEETGRAPH_TOKEN/);
    await follows("sh", ["-c", `exec ${command.trim()}`]);
  });

  it("follows a site with graphql-ws", async () => {
    const [, script] = page.match(/```js\n([^]*?)```/);
    const file = new URL(`follow-${process.pid}.mjs`, import.meta.url);
    await writeFile(file, script);
    try {
      await follows(process.execPath, [file.pathname]);
    } finally {
      await rm(file, { force: true });
    }
  });
});
