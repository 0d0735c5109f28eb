// Draws worked figures without a browser. Standard input: [{name, state}]; standard output: a list of HTML, "" where a
// module draws none. With --write it makes static/NAME.html for the default state of every module.
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const folder = process.env.OUT ?? join(dirname(fileURLToPath(import.meta.url)), "static");

// The figure keeps a white ground: its ink is dark, whatever page it lies on.
const STYLE = `<style>
.still-figure { background: #fff; color: #1b1f24; padding: 0.6rem; border-radius: 8px; }
.still-figure svg { display: block; max-width: 100%; height: auto; }
.still-figure .panels { display: flex; flex-wrap: wrap; gap: 0.6rem 20px; }
.still-figure p { margin: 0.3rem 0; }
.still-figure .sub { font-weight: 650; }
.still-figure .key span { display: inline-flex; align-items: center; gap: 0.4rem; margin-right: 1rem; }
.still-figure .key i { width: 0.9rem; height: 0.9rem; border-radius: 2px; }
.still-table { overflow-x: auto; }
</style>`;

async function draw({ name, state }) {
  const file = join(folder, `${name}.js`);
  if (!existsSync(file)) return "";
  const module = await import(pathToFileURL(file).href);
  if (!module.default?.still) return "";
  const { title, figure, say, table } = module.default.still(state);
  if (!figure) return "";
  return `${STYLE}<p class="still-title"><strong>${title}</strong></p><div class="still-figure">${figure}</div><p>${say}</p><div class="still-table">${table}</div>`;
}

if (process.argv.includes("--write")) {
  for (const file of readdirSync(folder).filter(
    (name) => name.endsWith(".js") && !["host.js", "lab.js"].includes(name),
  )) {
    const name = file.slice(0, -3);
    const html = await draw({ name, state: {} });
    if (html) writeFileSync(join(folder, `${name}.html`), `${html}\n`);
  }
} else {
  const wanted = JSON.parse(readFileSync(0, "utf8"));
  process.stdout.write(JSON.stringify(await Promise.all(wanted.map(draw))));
}
