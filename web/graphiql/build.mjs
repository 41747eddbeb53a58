// Bundles GraphiQL and everything it needs into server/graphiql/dist, which the
// server embeds. The output depends on package-lock.json and src/ only.
import { build } from "esbuild";
import { copyFile, mkdir, readFile, rm } from "node:fs/promises";
import { writeLicences } from "./licences.mjs";

const target = new URL("../../server/graphiql/dist/", import.meta.url);
await rm(target, { recursive: true, force: true });
await mkdir(target, { recursive: true });

// GraphiQL's style sheet carries two fonts as data: URLs, 380 KB. The page uses the
// system's fonts instead, and the content security policy needs no data: fonts.
const withoutFonts = {
  name: "without-fonts",
  setup(bundler) {
    bundler.onLoad({ filter: /\/graphiql\/dist\/style\.css$/ }, async ({ path }) => ({
      contents: (await readFile(path, "utf8")).replaceAll(/@font-face\s*\{[^}]*\}/g, ""),
      loader: "css",
    }));
  },
};

const result = await build({
  entryPoints: { graphiql: "src/main.jsx" },
  outdir: target.pathname,
  bundle: true,
  minify: true,
  format: "iife",
  target: ["es2022"],
  jsx: "automatic",
  plugins: [withoutFonts],
  legalComments: "none", // the licences are in LICENSES
  metafile: true,
  define: { "process.env.NODE_ENV": '"production"' },
  logLevel: "warning",
});
await copyFile("src/index.html", new URL("index.html", target));
await copyFile("src/icon.svg", new URL("icon.svg", target));
await writeLicences(result.metafile, new URL("../../server/graphiql/LICENSES", import.meta.url));
