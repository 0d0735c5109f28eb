// The search over any page, as a dialog. Its field is there at once; the search itself comes after, and then answers
// what was typed meanwhile.

import { h } from "../../interactives/src/shared/dom.js";

let dialog;
let field;

function makeDialog() {
  field = h("input", { type: "search", id: "search-field", name: "q", autocomplete: "off", spellcheck: "false" });
  const close = h("button", { type: "button", class: "search-close", click: () => dialog.close() }, "Close");
  const label = h("label", { for: "search-field" }, "Search the course: words, numbers, code");
  dialog = h("dialog", { class: "search-dialog", "aria-label": "Search" }, close, label, field);
  dialog.addEventListener("click", (event) => (event.target === dialog || event.target.closest("a")) && dialog.close());
  document.body.append(dialog);
}

/** Opens the dialog; `answer(dialog)` is called the first time. */
export function openSearch(answer) {
  const first = !dialog;
  if (first) makeDialog();
  if (!dialog.open) dialog.showModal();
  field.focus();
  field.select();
  if (first) answer(dialog);
}
