// The check of the schema itself: what it refuses, and what lets it pass.
import { deepEqual, equal, match } from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "node:test";
import { fileURLToPath } from "node:url";

const repository = new URL("..", import.meta.url);
const changelog = (section, line) => `# Changelog\n\n## [Unreleased]\n\n### ${section}\n\n- ${line}\n\n## [1.0.0]\n\n### Breaking\n\n- \`Site.name\`\n`;

/** check runs the check on the repository's schema with a change, and a change log. */
async function check(change, changes = changelog("Added", "nothing")) {
  const root = await mkdtemp(join(tmpdir(), "fleetgraph-schema-"));
  try {
    await mkdir(join(root, "conformance"));
    const schema = await readFile(new URL("schema.graphql", repository), "utf8");
    await cp(new URL("schema.graphql", repository), join(root, "conformance/released.graphql"));
    await writeFile(join(root, "schema.graphql"), change(schema));
    await writeFile(join(root, "CHANGELOG.md"), changes);
    const { status, stdout, stderr } = spawnSync(process.execPath, [fileURLToPath(new URL("schema.mjs", import.meta.url)), root], { encoding: "utf8" });
    return { status, output: stdout + stderr };
  } finally {
    await rm(root, { recursive: true, force: true });
  }
}

const within = (type, from, to) => (schema) => {
  const start = schema.indexOf(`\n${type} `);
  const end = schema.indexOf("\n}", start);
  const changed = schema.slice(start, end).replace(from, to);
  if (start < 0 || changed === schema.slice(start, end)) throw new Error(`there is no ${from} in ${type}`);
  return schema.slice(0, start) + changed + schema.slice(end);
};
const all = (...changes) => (schema) => changes.reduce((changed, change) => change(changed), schema);
const nullable = within("type Machine", /^  name: String!$/m, "  name: String");

describe("Schema check", () => {
  it("refuses a break, and says what to write", async () => {
    const { status, output } = await check(nullable);
    equal(status, 1, output);
    match(output, /^- `Machine\.name`: Field 'Machine\.name' changed type from 'String!' to 'String'\.$/m);
  });

  it("lets a break pass that the change log tells", async () => {
    const { status, output } = await check(nullable, changelog("Breaking", "`Machine.name` may be null."));
    equal(status, 0, output);
  });

  for (const [where, changes] of Object.entries({
    "another section": changelog("Changed", "`Machine.name` may be null."),
    "the name of another field": changelog("Breaking", "`Machine.nam` may be null."),
  })) {
    it(`refuses a break that the change log tells in ${where}`, async () => equal((await check(nullable, changes)).status, 1));
  }

  it("refuses a break that an older release told", async () => {
    const { status, output } = await check(within("type Site", /^  name: String!$/m, "  name: String"));
    equal(status, 1, output);
    match(output, /`Site\.name`/);
  });

  it("refuses what was removed, renamed, narrowed or became required", async () => {
    const { status, output } = await check(
      all(
        within("type Viewer", /^  role: Role!$/m, "  rights: Role!"),
        within("enum Role", /^  VIEWER$/m, "  READER"),
        within("type Query", /^    serialNumber: String$/m, "    serialNumber: String!"),
        within("input DeleteMachineInput", /^  machineId: ID!$/m, '  machineId: ID!\n  "Why."\n  reason: String!'),
      ),
    );
    equal(status, 1, output);
    const paths = Array.from(output.matchAll(/^- `([^`]+)`: /gm), ([, path]) => path).sort();
    deepEqual(paths, ["DeleteMachineInput.reason", "Query.machine.serialNumber", "Role.VIEWER", "Viewer.role"]);
  });

  it("lets pass what clients are told to expect", async () => {
    const { status, output } = await check(
      all(
        within("enum Role", /^  VIEWER$/m, '  VIEWER\n  "Another."\n  AUDITOR'),
        within("type Query", /^    serialNumber: String$/m, '    serialNumber: String\n    "Another key."\n    assetTag: String'),
        within("input DeleteMachineInput", /^  machineId: ID!$/m, '  machineId: ID!\n  "Why."\n  reason: String! = ""'),
        within("type Viewer", /^  role: Role!$/m, '  role: Role!\n  "Another."\n  since: Time'),
        (schema) => `${schema}\n"A thing."\nunion Thing = Machine | Shelf\n"A shelf."\ntype Shelf { "Its id." id: ID! }\n`,
      ),
    );
    equal(status, 0, output);
  });

  it("refuses what has no description", async () => {
    const { status, output } = await check((schema) => `${schema}\nenum Bare { VALUE }\ninput BareInput { field: Int }\n`);
    equal(status, 1, output);
    for (const path of ["Bare", "Bare.VALUE", "BareInput", "BareInput.field"]) match(output, new RegExp(`: ${path} has no description`));
  });
});
