// The course's extension of JupyterLab: lessons in the launcher, and figures that outlive their kernel. A figure in a saved notebook has lost its model once the kernel was restarted;
// the text/html beside it in the output still holds its start state, so it is brought to life without a kernel, as on a
// page. JupyterLab loads this script as a container of module federation, which is a `get` and an `init`.
import { LocalModel } from "../shared/local_model.js";
import { addCourse } from "./launcher.js";

const NAME = "llm-serving-course";
const VIEW = "application/vnd.jupyter.widget-view+json";
const LOST = "Error displaying widget"; // what ipywidgets' renderer says where it finds no model
const base = document.currentScript?.src.replace(/[^/]*$/, "") ?? "";

const textOf = (data) => (Array.isArray(data) ? data.join("") : String(data ?? ""));

function note(words) {
  const line = document.createElement("p");
  line.className = "course-saved";
  line.style.cssText = "margin:0.5rem 0;color:var(--jp-ui-font-color2);font-family:var(--jp-ui-font-family)";
  line.textContent = words;
  return line;
}

/** The figure that an output's text/html describes: {name, state}, or null. */
function described(html) {
  const box = new DOMParser().parseFromString(html, "text/html").querySelector("[data-interactive]");
  const name = box?.dataset.interactive ?? "";
  return /^[\w-]+$/.test(name) ? { name, state: JSON.parse(box.dataset.state || "{}") } : null;
}

async function revive(node, html) {
  const found = described(html);
  if (!found) return false;
  const place = document.createElement("div");
  const { default: figure } = await import(`${base}${found.name}.js`);
  const words = "Saved with this notebook. To connect the figure to Python again, run the cell above: Shift+Enter.";
  node.replaceChildren(note(words), place);
  figure.render({ model: new LocalModel(found.state), el: place });
  return true;
}

/** Without a figure of ours: the output's own HTML, cleaned by JupyterLab. */
async function showStill(node, model, rendermime) {
  const still = rendermime.createRenderer("text/html");
  await still.renderModel(model);
  node.replaceChildren(note("Saved with this notebook. To use it again, run the cell above: Shift+Enter."), still.node);
}

async function replaceLost(renderer, model, rendermime) {
  const html = textOf(model.data["text/html"]);
  if (!html || !renderer.node.textContent.startsWith(LOST)) return;
  try {
    if (await revive(renderer.node, html)) return;
  } catch (error) {
    console.error(error);
  }
  await showStill(renderer.node, model, rendermime);
}

/** Lets every widget view of a notebook fall back on what is saved beside it. */
export function keepFigures(rendermime) {
  const create = rendermime.createRenderer.bind(rendermime);
  rendermime.createRenderer = (type) => {
    const renderer = create(type);
    if (type !== VIEW) return renderer;
    const render = renderer.renderModel.bind(renderer);
    renderer.renderModel = async (model) => {
      await render(model);
      await replaceLost(renderer, model, rendermime);
    };
    return renderer;
  };
}

function plugins({ INotebookTracker }, { ILauncher }, apputils, coreutils) {
  return [
    {
      id: `${NAME}:figures`,
      description: "Revives the figures of a saved notebook.",
      autoStart: true,
      requires: [INotebookTracker],
      activate(_app, notebooks) {
        const keep = (panel) => keepFigures(panel.content.rendermime);
        notebooks.forEach(keep);
        notebooks.widgetAdded.connect((_, panel) => keep(panel));
      },
    },
    {
      id: `${NAME}:launcher`,
      description: "Puts the course's lessons into the launcher.",
      autoStart: true,
      optional: [ILauncher],
      activate(app, launcher) {
        // Not awaited: JupyterLab is restored only once all extensions are active.
        if (launcher) app.restored.then(() => addCourse(app, launcher, apputils, coreutils));
      },
    },
  ];
}

let shared = {};

/** A module that JupyterLab shares, in the one version that it has. */
async function sharedModule(name) {
  const [{ get }] = Object.values(shared[name]);
  return (await get())();
}

globalThis._JUPYTERLAB ??= {};
globalThis._JUPYTERLAB[NAME] = {
  init: (scope) => {
    shared = scope;
  },
  get: async () => {
    const names = ["notebook", "launcher", "apputils", "coreutils"];
    const found = plugins(...(await Promise.all(names.map((name) => sharedModule(`@jupyterlab/${name}`)))));
    return () => ({ __esModule: true, default: found });
  },
};
