// The frame that quizzes share with the figures: a shadow root in their style, light or dark as the page is.

import asking from "./asking.css";
import { h } from "./dom.js";
import style from "./style.css";
import { watchTheme } from "./theme.js";

/** {frame, say, end}: `say` speaks in a live region, `end` removes all. */
export function makeFrame(el, label, name) {
  el.setAttribute("data-lm-suppress-shortcuts", "true"); // JupyterLab's single-key shortcuts: "d d" deletes a cell
  const host = h("div");
  el.append(host);
  const root = host.attachShadow({ mode: "open" });
  const frame = h("div", { class: "x q", role: "group", "aria-label": label, "data-figure": name });
  const live = h("p", { class: "unseen", role: "status", "aria-live": "polite" });
  root.append(h("style", {}, style, asking), frame, live);
  const stop = watchTheme((dark) => frame.toggleAttribute("data-dark", dark));
  return {
    frame,
    say(text) {
      live.textContent = "";
      requestAnimationFrame(() => (live.textContent = text)); // the same sentence twice is spoken twice
    },
    end() {
      stop();
      host.remove();
    },
  };
}
