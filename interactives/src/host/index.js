// The page's host for the figures: finds them, loads each one's script when the reader is near, and gives it a model
// object as anywidget would. One classic script, so that it also works from a file. Also: every number that follows
// the choice of "my GPU".
import { chooseGpu, chosenGpu, DEFAULT_GPU, gpuOptions, isGpu, onGpu } from "../shared/gpu.js";
import { LocalModel } from "../shared/local_model.js";

const base = document.currentScript?.src.replace(/[^/]*$/, "") ?? "";
const loading = new Map();

function load(name) {
  if (!loading.has(name)) {
    const ready = new Promise((resolve, reject) => {
      const have = () => globalThis.courseInteractives?.[name];
      if (have()) return resolve(have());
      const script = document.createElement("script");
      script.src = `${base}${name}.js`;
      script.onload = () => (have() ? resolve(have()) : reject(new Error(`${script.src} holds no figure ${name}`)));
      script.onerror = () => reject(new Error(`cannot load ${script.src}`));
      document.head.append(script);
    });
    loading.set(name, ready);
  }
  return loading.get(name);
}

function fromText(text, like) {
  if (Array.isArray(like))
    return text === "" ? [] : text.split(",").map((one) => (typeof like[0] === "string" ? one : Number(one)));
  if (typeof like === "boolean") return text === "1";
  if (typeof like === "number") return text === "" ? undefined : Number(text);
  return text;
}
const toText = (value) =>
  Array.isArray(value) ? value.join(",") : typeof value === "boolean" ? (value ? "1" : "0") : String(value);

/** The model of a figure on a page: differences from the start go into the address. */
class PageModel extends LocalModel {
  constructor(state, id) {
    super(state);
    this.id = id;
    this.urlKeys = [];
    this.linked = false; // does the address hold a state of this figure?
    for (const [key, text] of new URLSearchParams(location.search)) {
      const name = key.startsWith(`${id}.`) ? key.slice(id.length + 1) : "";
      if (!Object.hasOwn(state, name)) continue;
      this.linked = true;
      this.state[name] = fromText(text, state[name]) ?? state[name];
    }
  }
  save_changes() {
    super.save_changes();
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.#write(), 250); // browsers limit how often an address may change
  }
  #write() {
    const query = new URLSearchParams(location.search);
    for (const key of this.urlKeys) {
      const [now, start] = [toText(this.state[key]), toText(this.start[key])];
      now === start ? query.delete(`${this.id}.${key}`) : query.set(`${this.id}.${key}`, now);
    }
    const gpu = chosenGpu() ?? DEFAULT_GPU;
    gpu === DEFAULT_GPU ? query.delete("gpu") : query.set("gpu", gpu);
    try {
      const text = query.toString().replaceAll("%2C", ",");
      history.replaceState(history.state, "", `${location.pathname}${text && `?${text}`}${location.hash}`);
    } catch {
      // a page opened from a file may not change its address
    }
  }
}

async function show(box) {
  const name = box.dataset.interactive;
  const model = new PageModel(JSON.parse(box.dataset.state || "{}"), box.dataset.id);
  const place = document.createElement("div");
  try {
    const figure = await load(name);
    const paper = [...box.childNodes];
    box.append(place);
    const end = await figure.render({ model, el: place });
    paper.forEach((node) => node.remove());
    box.dataset.ready = "";
    box.unmount = end;
  } catch (error) {
    place.remove(); // the worked figure stays
    console.error(error);
  }
}

function numbers(key) {
  for (const span of document.querySelectorAll("[data-gpu-number]")) {
    const values = JSON.parse(span.dataset.gpuNumber);
    if (values[key] !== undefined) span.textContent = values[key];
  }
}

function pickers() {
  for (const box of document.querySelectorAll("[data-gpu-choice]")) {
    const select = document.createElement("select");
    select.setAttribute("aria-label", "My GPU");
    for (const [key, name] of gpuOptions()) select.add(new Option(name, key));
    select.value = chosenGpu() ?? DEFAULT_GPU;
    select.addEventListener("change", () => chooseGpu(select.value));
    onGpu((key) => (select.value = key));
    box.replaceChildren(select);
  }
}

function start() {
  const linked = new URLSearchParams(location.search).get("gpu");
  if (linked && isGpu(linked)) chooseGpu(linked, { keep: false });
  numbers(chosenGpu() ?? DEFAULT_GPU);
  onGpu(numbers);
  pickers();
  const seen = {};
  const near = new IntersectionObserver(
    (entries) => {
      for (const { isIntersecting, target } of entries) {
        if (!isIntersecting) continue;
        near.unobserve(target);
        show(target);
      }
    },
    { rootMargin: "800px" },
  );
  for (const box of document.querySelectorAll("[data-interactive]")) {
    const name = box.dataset.interactive;
    seen[name] = (seen[name] ?? 0) + 1;
    box.dataset.id ||= seen[name] > 1 ? `${name}-${seen[name]}` : name;
    near.observe(box);
  }
}

document.readyState === "loading" ? document.addEventListener("DOMContentLoaded", start) : start();
