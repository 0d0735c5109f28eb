// Questions that a person would grade: once an answer is written, its model answer and rubric may be opened. The answer
// is kept with the reader's progress.

import { store } from "../../interactives/src/shared/store.js";

function bring(form) {
  const { written: name, words: fewest } = form.dataset;
  const [box, status] = [form.querySelector("textarea"), form.querySelector("[role=status]")];
  const model = form.parentElement.querySelector(`form[data-written="${name}"] ~ .model-answer`);
  box.value = store().written(name);
  box.addEventListener("change", () => store().keepWritten(name, box.value));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const words = box.value.split(/\s+/).filter(Boolean).length;
    if (words < Number(fewest)) {
      status.textContent = `Write at least ${fewest} words first.`;
      return box.focus();
    }
    store().keepWritten(name, box.value);
    status.textContent = "";
    model.hidden = false;
    model.focus();
  });
}

export function writtenAnswers() {
  for (const form of document.querySelectorAll("form.written")) bring(form);
}
