// Writes the licence texts of the packages that ended up in a bundle.
import { readFile, readdir, writeFile } from "node:fs/promises";

/** The package directories that the inputs of an esbuild metafile lie in. */
function packages(metafile) {
  const found = new Set();
  for (const input of Object.keys(metafile.inputs)) {
    const match = /^(.*node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(input);
    if (match) found.add(match[1]);
  }
  return [...found].sort();
}

async function licenceText(directory) {
  const names = (await readdir(directory)).filter((name) => /^(licen[cs]e|copying|notice)/i.test(name)).sort();
  const texts = await Promise.all(names.map((name) => readFile(`${directory}/${name}`, "utf8")));
  return texts.map((text) => text.trim()).join("\n\n");
}

export async function writeLicences(metafile, target) {
  const entries = [];
  for (const directory of packages(metafile)) {
    const manifest = JSON.parse(await readFile(`${directory}/package.json`, "utf8"));
    const text = (await licenceText(directory)) || "(the package carries no licence text of its own)";
    entries.push({ title: `${manifest.name} ${manifest.version} (${manifest.license ?? "no licence named"})`, text });
  }
  entries.sort((a, b) => (a.title < b.title ? -1 : 1));
  const line = "-".repeat(78);
  const head = "Licences of the packages bundled into dist/, written by web/graphiql/licences.mjs.\n";
  const body = entries.map(({ title, text }) => `${line}\n${title}\n${line}\n\n${text}\n`).join("\n");
  await writeFile(target, `${head}\n${body}`);
}
