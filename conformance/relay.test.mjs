// relay-compiler accepts schema.graphql with what a Relay application is made of.
import { equal, ok } from "node:assert/strict";
import { execFile } from "node:child_process";
import { cp, mkdir, mkdtemp, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "node:test";
import { promisify } from "node:util";

const compiler = createRequire(import.meta.url).resolve("relay-compiler/cli.js");

async function compile(change = (source) => source) {
  const project = await mkdtemp(join(tmpdir(), "fleetgraph-relay-"));
  try {
    await mkdir(join(project, "out"));
    await cp(new URL("../schema.graphql", import.meta.url), join(project, "schema.graphql"));
    const source = await readFile(new URL("relay/Machines.js", import.meta.url), "utf8");
    await mkdir(join(project, "src"));
    await writeFile(join(project, "src", "Machines.js"), change(source));
    await writeFile(
      join(project, "relay.config.json"),
      JSON.stringify({ src: "src", schema: "schema.graphql", artifactDirectory: "out", language: "javascript" }),
    );
    const { stdout, stderr, code } = await promisify(execFile)(process.execPath, [compiler], { cwd: project }).then(
      (output) => ({ ...output, code: 0 }),
      (error) => error,
    );
    return { code, output: stdout + stderr, artifacts: await readdir(join(project, "out")) };
  } finally {
    await rm(project, { recursive: true, force: true });
  }
}

describe("relay-compiler", () => {
  it("accepts connections, refetchable fragments, mutations and subscriptions", async () => {
    const { code, output, artifacts } = await compile();
    equal(code, 0, output);
    ok(artifacts.includes("MachinesSitePaginationQuery.graphql.js"), `no query to refetch a site's machines: ${artifacts}`);
    ok(artifacts.includes("MachinesFleetPaginationQuery.graphql.js"), `no query to refetch the fleet's machines: ${artifacts}`);
  });

  it("refuses a field that the schema lacks, so that acceptance means something", async () => {
    const { code, output } = await compile((source) => source.replace("totalCount", "totalNumber"));
    equal(code === 0, false);
    ok(output.includes("totalNumber"), output);
  });
});
