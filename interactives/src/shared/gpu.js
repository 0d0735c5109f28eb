// "My GPU": one choice for every figure and every number of the page, kept in this browser.
import { GPUS } from "../generated/constants.js";

const KEY = "llm-course.gpu";
const EVENT = "llm-course:gpu";
export const DEFAULT_GPU = "h100-sxm";
export { GPUS };
export const isGpu = (key) => Object.hasOwn(GPUS, key);

// A choice that came with a link, or that the browser would not store. Each bundle has a copy of this module, so the
// choice lies where all of them see it.
const SESSION = Symbol.for("llm-course.gpu");

/** The learner's choice, or null where none was made. */
export function chosenGpu() {
  try {
    const kept = globalThis[SESSION] ?? localStorage.getItem(KEY);
    return kept && isGpu(kept) ? kept : null;
  } catch {
    return globalThis[SESSION] ?? null;
  }
}

export function chooseGpu(key, { keep = true } = {}) {
  if (!isGpu(key)) return;
  globalThis[SESSION] = keep ? null : key;
  if (keep) {
    try {
      localStorage.setItem(KEY, key);
    } catch {
      globalThis[SESSION] = key;
    }
  }
  dispatchEvent(new CustomEvent(EVENT, { detail: key }));
}

export function onGpu(callback) {
  const told = (event) => callback(event.detail);
  const elsewhere = (event) => event.key === KEY && event.newValue && isGpu(event.newValue) && callback(event.newValue);
  addEventListener(EVENT, told);
  addEventListener("storage", elsewhere);
  return () => {
    removeEventListener(EVENT, told);
    removeEventListener("storage", elsewhere);
  };
}

export const gpuOptions = () => Object.entries(GPUS).map(([key, gpu]) => [key, gpu.name]);
