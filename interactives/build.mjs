// Bundles src/NAME/index.js into static/NAME.js, one minified ES module each: anywidget loads a figure as a blob, which
// can import nothing. host.js, for pages, and lab.js, for JupyterLab, are classic scripts. Names on the command line build only those.

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build, transform } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const out = process.env.OUT ?? join(here, "static");
const wanted = process.argv.slice(2);
const names = readdirSync(join(here, "src"))
  .filter((name) => existsSync(join(here, "src", name, "index.js")))
  .filter((name) => wanted.length === 0 || wanted.includes(name));

// A style sheet goes into a figure's shadow root as text, without its comments and spaces.
const smallStyle = {
  name: "small-style",
  setup({ onLoad }) {
    onLoad({ filter: /\.css$/ }, async ({ path }) => {
      const { code } = await transform(readFileSync(path, "utf8"), { loader: "css", minify: true });
      return { contents: code, loader: "text" };
    });
  },
};

await Promise.all(
  names.map((name) =>
    build({
      absWorkingDir: here,
      entryPoints: [join("src", name, "index.js")],
      outfile: join(out, `${name}.js`),
      bundle: true,
      minify: true,
      charset: "utf8",
      legalComments: "none",
      format: ["host", "lab"].includes(name) ? "iife" : "esm",
      target: "es2022",
      plugins: [smallStyle],
      logLevel: "warning",
    }),
  ),
);
