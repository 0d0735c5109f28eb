// A notice at the lower edge of the page, for what concerns all figures and programs of it: said once.

const TOLD = Symbol.for("llm-course.told"); // each bundle has a copy of this module; they share what was said

/** Show `text` in a box that can be closed, unless this page has said it before. */
export function tellOnce(text) {
  if (!globalThis.document?.body) return;
  globalThis[TOLD] ??= new Set();
  const told = globalThis[TOLD];
  if (told.has(text)) return;
  told.add(text);
  const box = document.createElement("div");
  box.setAttribute("role", "status");
  box.dataset.courseNotice = "";
  box.style.cssText =
    "position:fixed;z-index:9999;left:50%;bottom:1rem;transform:translateX(-50%);width:max-content;max-width:min(92vw,34rem);" +
    "display:flex;gap:.8rem;align-items:center;padding:.6rem .9rem;border:1px solid #57606a;border-radius:8px;" +
    "background:#1b1f24;color:#fff;font:400 .9375rem/1.45 system-ui,sans-serif";
  const words = document.createElement("span");
  const close = document.createElement("button");
  close.textContent = "Close";
  close.style.cssText =
    "font:inherit;color:inherit;background:transparent;border:1px solid #a9b4c0;border-radius:6px;padding:.2rem .7rem;cursor:pointer";
  close.addEventListener("click", () => box.remove());
  box.append(words, close);
  document.body.append(box);
  requestAnimationFrame(() => {
    words.textContent = text; // after the region exists, so that it is spoken
  });
}
