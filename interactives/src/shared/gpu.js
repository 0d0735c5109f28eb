// "My GPU": one choice for every figure and every number of the page, kept in this browser.
import { GPUS } from "../generated/constants.js";

const KEY = "llm-course.gpu";
const EVENT = "llm-course:gpu";
export const DEFAULT_GPU = "h100-sxm";
export { GPUS };
export const isGpu = (key) => Object.hasOwn(GPUS, key);

let session = null; // a choice that came with a link, or that the browser would not store

/** The learner's choice, or null where none was made. */
export function chosenGpu() {
  try {
    const kept = session ?? localStorage.getItem(KEY);
    return kept && isGpu(kept) ? kept : null;
  } catch {
    return session;
  }
}

export function chooseGpu(key, { keep = true } = {}) {
  if (!isGpu(key)) return;
  session = keep ? null : key;
  if (keep) {
    try {
      localStorage.setItem(KEY, key);
    } catch {
      session = key;
    }
  }
  // Every bundle has a copy of this module: the event tells the others, the choice included.
  dispatchEvent(new CustomEvent(EVENT, { detail: { key, keep } }));
}

export function onGpu(callback) {
  const told = (event) => {
    session = event.detail.keep ? null : event.detail.key;
    callback(event.detail.key);
  };
  const elsewhere = (event) => event.key === KEY && event.newValue && isGpu(event.newValue) && callback(event.newValue);
  addEventListener(EVENT, told);
  addEventListener("storage", elsewhere);
  return () => {
    removeEventListener(EVENT, told);
    removeEventListener("storage", elsewhere);
  };
}

export const gpuOptions = () => Object.entries(GPUS).map(([key, gpu]) => [key, gpu.name]);
