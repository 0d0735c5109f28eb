// Changes of a figure move from the old place to the new in 200 ms. A figure is drawn as text and replaced whole; what
// carries data-m="name" in both drawings is moved, and `.fade` fades in only where it was not there before.
import { stillMotion } from "./theme.js";

const DURATION = 200; // milliseconds
const STREAM = 250; // milliseconds: changes that follow each other faster, as those of a slider, are not animated
const SHAPE = { rect: ["x", "y", "width", "height"], circle: ["cx", "cy", "r"] };
const numbers = (element, names) => Object.fromEntries(names.map((name) => [name, Number(element.getAttribute(name))]));

/** Where a named element stands now, also in the middle of an earlier move. */
function placeOf(element) {
  const names = SHAPE[element.localName];
  if (!names) return numbers(element, ["x", "y"]);
  if (!element.getAnimations().length) return numbers(element, names);
  const now = getComputedStyle(element);
  return Object.fromEntries(names.map((name) => [name, Number.parseFloat(now[name])]));
}

function move(element, from) {
  const names = SHAPE[element.localName];
  const to = numbers(element, names ?? ["x", "y"]);
  if (Object.keys(to).every((name) => Math.abs(to[name] - from[name]) < 0.5)) return;
  const lengths = (place) => Object.fromEntries(Object.entries(place).map(([name, value]) => [name, `${value}px`]));
  const frames = names
    ? [lengths(from), lengths(to)]
    : [{ transform: `translate(${from.x - to.x}px,${from.y - to.y}px)` }, { transform: "none" }];
  element.animate(frames, { duration: DURATION, easing: "ease-out" });
}

const fading = (box) => new Set([...box.querySelectorAll(".fade")].map((element) => element.dataset.fade ?? ""));

/** Returns paint(html), which replaces the content of `box`. */
export function painter(box) {
  let last = Number.NEGATIVE_INFINITY;
  return (html) => {
    const now = performance.now();
    const moves = now - last > STREAM && box.childElementCount > 0 && !stillMotion();
    last = now;
    const before = new Map();
    if (moves) for (const one of box.querySelectorAll("[data-m]")) before.set(one.dataset.m, placeOf(one));
    const faded = fading(box);
    box.innerHTML = html;
    if (!moves) return;
    for (const one of box.querySelectorAll("[data-m]")) {
      if (before.has(one.dataset.m)) move(one, before.get(one.dataset.m));
    }
    for (const one of box.querySelectorAll(".fade")) {
      if (!faded.has(one.dataset.fade ?? "")) one.animate([{ opacity: 0 }, { opacity: 1 }], DURATION);
    }
  };
}
