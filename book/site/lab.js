// "Open in JupyterLab": the lesson's own notebook in the JupyterLab that the reader runs, wherever that is. Its address
// is asked once and kept in this browser; until then it is the one that `make lab` prints on most machines.

import { h } from "../../interactives/src/shared/dom.js";

const KEY = "llm-course.lab";

/** The part of a JupyterLab address before /lab or /tree; null where the text is no http address. */
export function labBase(text) {
  let address;
  try {
    address = new URL(text.trim().replace(/^(?!\w+:\/\/)/, "http://"));
  } catch {
    return null;
  }
  if (!/^https?:$/.test(address.protocol)) return null;
  const path = address.pathname.replace(/\/(?:lab|tree|notebooks|doc)(?:\/.*)?$/, "").replace(/\/+$/, "");
  return address.origin + path;
}

/** Makes `link` follow the reader's address. Its own is the default. */
export function openInLab(link) {
  const path = `/lab/tree/${link.dataset.lab}`;
  const standard = labBase(link.href);
  const follow = () => (link.href = (localStorage.getItem(KEY) ?? standard) + path);
  const field = h("input", { id: "lab-address", type: "url", value: localStorage.getItem(KEY) ?? standard });
  const told = h("span", { role: "status" });
  field.addEventListener("change", () => {
    const base = labBase(field.value);
    told.textContent = base ? `Kept: lessons open at ${base}.` : "This is no address such as http://localhost:8889.";
    if (!base) return;
    localStorage.setItem(KEY, base);
    field.value = base;
    follow();
  });
  const why = "The address that JupyterLab shows in your browser, for example http://localhost:8889/lab";
  link.nextElementSibling.append(h("label", { for: "lab-address" }, why), field, told);
  follow();
}
