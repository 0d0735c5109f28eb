// Dragging inside a figure: `moved(what, {x, y})` is told where the pointer is, in the units of the SVG's view box.

/** Listens on `box` for elements with data-drag="what". */
export function draggable(box, moved) {
  let held = null; // {what, svg}
  const place = (event) => {
    const shown = held.svg.getBoundingClientRect();
    const zoom = held.svg.viewBox.baseVal.width / shown.width;
    return { x: (event.clientX - shown.left) * zoom, y: (event.clientY - shown.top) * zoom };
  };
  box.addEventListener("pointerdown", (event) => {
    const handle = event.target.closest("[data-drag]");
    if (!handle) return;
    held = { what: handle.dataset.drag, svg: handle.closest("svg") };
    box.setPointerCapture(event.pointerId);
    event.preventDefault();
    moved(held.what, place(event));
  });
  box.addEventListener("pointermove", (event) => {
    if (!held) return;
    // The figure is drawn anew at each move: the handle lies in another SVG then.
    if (!held.svg.isConnected) held.svg = box.querySelector(`[data-drag="${held.what}"]`)?.closest("svg");
    if (held.svg) moved(held.what, place(event));
  });
  for (const end of ["pointerup", "pointercancel"]) {
    box.addEventListener(end, () => {
      held = null;
    });
  }
}
