// One style sheet for the site out of those that its pages load, without the rules that no page and no script uses:
// node styles.mjs SITE OUT SHEET... (paths within SITE, in the order in which a page loads them).

import { readdir, readFile, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join, posix } from "node:path";

const [modules, site, out, ...sheets] = process.argv.slice(2);
const require = createRequire(join(modules, "x.js"));
const { PurgeCSS } = require("purgecss");
const { transform } = require("esbuild");

/** The text of a sheet with what it imports, the addresses in it seen from where the new one lies. */
async function moved(sheet) {
  const css = await readFile(join(site, sheet), "utf8");
  const parts = css.split(/@import\s+(?:url\()?["']?([^"')]+)["']?\)?\s*;/);
  const texts = parts.map((part, index) => {
    if (index % 2) return moved(posix.join(dirname(sheet), part));
    return part.replace(/url\(\s*(?:"([^"]*)"|'([^']*)'|([^)"']*))\s*\)/g, (whole, ...address) => {
      const named = address[0] ?? address[1] ?? address[2];
      if (/^(?:data:|#|https?:)/.test(named)) return whole;
      return `url(${posix.relative(dirname(out), posix.join(dirname(sheet), named))})`;
    });
  });
  return (await Promise.all(texts)).join("\n");
}

const files = (await readdir(site, { recursive: true })).map(String);
const content = files
  .filter((name) => /\.(html|js)$/.test(name) && !/pyodide|_sources/.test(name))
  .map((name) => join(site, name));
const raw = (await Promise.all(sheets.map(moved))).join("\n").replaceAll(/@charset[^;]*;/g, "");
const [{ css }] = await new PurgeCSS().purge({
  content,
  css: [{ raw }],
  keyframes: true,
  dynamicAttributes: ["open", "data-theme", "data-mode", "data-memory", "data-ready", "aria-current", "aria-expanded"],
  safelist: { standard: [/^isso-/, /^cm-/, /^tok-/], greedy: [/isso/] },
});
await writeFile(join(site, out), (await transform(css, { loader: "css", minify: true, legalComments: "none" })).code);
