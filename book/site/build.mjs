// Bundles the site's own scripts: node build.mjs OUT PYODIDE_SIZES_JSON. Chunks that a page may never need stay apart.

import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const [out, sizes] = process.argv.slice(2);
await build({
  absWorkingDir: here,
  entryPoints: ["site.js", "practice.js", "python_worker.js"],
  outdir: out,
  bundle: true,
  splitting: true,
  minify: true,
  format: "esm",
  charset: "utf8",
  legalComments: "none",
  target: "es2022",
  loader: { ".py": "text" },
  define: { __PYODIDE_SIZES__: sizes },
  nodePaths: [join(here, "..", "node_modules")],
  logLevel: "warning",
});
await build({
  absWorkingDir: here,
  entryPoints: ["head.js"],
  outdir: out,
  bundle: true,
  minify: true,
  format: "iife",
  charset: "utf8",
  target: "es2022",
  logLevel: "warning",
});
