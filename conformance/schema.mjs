// The check of the schema, in a clean clone: schema.graphql breaks no client of the
// last release unless the change log says where, and everything in it has a
// description.
//
//   node schema.mjs [ROOT]
//
// Breaking is what graphql-inspector calls so: what clients are told to expect (new
// enum values and union members, arguments and input fields that may be left out) is
// not.
import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { CriticalityLevel, diff } from "@graphql-inspector/core";
import { buildSchema, isEnumType, isInputObjectType, isSpecifiedDirective, isSpecifiedScalarType } from "graphql";

const root = resolve(process.argv[2] ?? fileURLToPath(new URL("..", import.meta.url)));
const [released, schema, changes] = await Promise.all(
  ["conformance/released.graphql", "schema.graphql", "CHANGELOG.md"].map((file) => readFile(resolve(root, file), "utf8")),
);

const before = buildSchema(released);
const after = buildSchema(schema);
const told = breakingIn(changes);
const untold = (await diff(before, after)).filter(
  ({ criticality, path }) => criticality.level === CriticalityLevel.Breaking && !told.has(path),
);
const bare = withoutDescription(after);

if (untold.length > 0) {
  console.error(`schema.graphql breaks clients of the last release. If it must, say so in CHANGELOG.md, "Unreleased", "Breaking":\n`);
  for (const { path, message } of untold) console.error(`- \`${path}\`: ${message}.`);
}
for (const path of bare) console.error(`schema.graphql: ${path} has no description`);
if (untold.length > 0 || bare.length > 0) process.exit(1);
console.log(`schema.graphql breaks no client of the last release${told.size > 0 ? ", but for what the change log tells" : ""}`);

/** breakingIn returns what a change log names in backquotes under "Unreleased", "Breaking". */
function breakingIn(text) {
  const section = (from, level, title) =>
    from.split(new RegExp(`^${level} `, "m")).find((part) => part.split("\n", 1)[0].replace(/[[\]]/g, "").trim() === title) ?? "";
  const breaking = section(section(text, "##", "Unreleased"), "###", "Breaking");
  return new Set(Array.from(breaking.matchAll(/`([^`]+)`/g), ([, path]) => path));
}

/** withoutDescription returns the paths of what has no description. */
function withoutDescription(schema) {
  const missing = [];
  const look = (path, { description }) => {
    if (!description?.trim()) missing.push(path);
  };
  for (const type of Object.values(schema.getTypeMap())) {
    if (type.name.startsWith("__") || isSpecifiedScalarType(type)) continue;
    look(type.name, type);
    if (isEnumType(type)) type.getValues().forEach((value) => look(`${type.name}.${value.name}`, value));
    for (const field of Object.values(type.getFields?.() ?? {})) {
      look(`${type.name}.${field.name}`, field);
      if (!isInputObjectType(type)) field.args.forEach((argument) => look(`${type.name}.${field.name}.${argument.name}`, argument));
    }
  }
  for (const directive of schema.getDirectives().filter((each) => !isSpecifiedDirective(each))) {
    look(`@${directive.name}`, directive);
    directive.args.forEach((argument) => look(`@${directive.name}.${argument.name}`, argument));
  }
  return missing;
}
