// The frame of a page: light or dark, the two sidebars on a narrow screen, which section is being read, and buttons
// that copy code. It takes the place of the theme's scripts and of Bootstrap, which are forty times as large.

import { h } from "../../interactives/src/shared/dom.js";

const root = document.documentElement;
const WIDE = "(min-width: 992px)"; // where the theme shows the contents beside the page

function themeSwitch() {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const show = () => {
    root.dataset.mode = localStorage.getItem("mode") ?? "auto";
    root.dataset.theme = globalThis.courseTheme();
    const name = { auto: "as the system", light: "light", dark: "dark" }[root.dataset.mode];
    for (const label of document.querySelectorAll(".theme-name")) label.textContent = `Light or dark: ${name}`;
  };
  for (const button of document.querySelectorAll(".theme-switch-button")) {
    button.addEventListener("click", () => {
      const order = dark.matches ? ["auto", "light", "dark"] : ["auto", "dark", "light"];
      localStorage.setItem("mode", order[(order.indexOf(root.dataset.mode) + 1) % 3]);
      show();
    });
  }
  dark.addEventListener("change", show);
  show();
}

/** On a narrow screen a sidebar's content moves into a dialog while that is open. */
function drawer(button, sidebar, dialog) {
  if (!button || !sidebar || !dialog) return;
  const move = (from, to) => {
    to.append(...from.childNodes);
    for (const name of [...from.classList]) {
      from.classList.remove(name);
      to.classList.add(name);
    }
  };
  button.addEventListener("click", () => {
    if (sidebar.id === "pst-primary-sidebar" && matchMedia(WIDE).matches) {
      sidebar.classList.toggle("pst-sidebar-hidden");
      return;
    }
    move(sidebar, dialog);
    dialog.showModal();
  });
  dialog.addEventListener("close", () => {
    move(dialog, sidebar);
    button.focus();
  });
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog || event.target.closest("a")) dialog.close();
  });
}

/** Marks the section that is being read in the contents of the page. */
function markSection() {
  const links = new Map();
  for (const link of document.querySelectorAll("#pst-page-toc-nav a[href^='#']")) {
    const section = document.getElementById(decodeURIComponent(link.hash.slice(1)));
    if (section) links.set(section.querySelector("h2, h3, h4") ?? section, link);
  }
  const near = new IntersectionObserver(
    (entries) => {
      const seen = entries.filter((entry) => entry.isIntersecting).pop();
      if (!seen) return;
      for (const [heading, link] of links) {
        link.classList.toggle("active", heading === seen.target);
        if (heading === seen.target) link.setAttribute("aria-current", "true");
        else link.removeAttribute("aria-current");
      }
    },
    { rootMargin: "0px 0px -70% 0px" },
  );
  for (const heading of links.keys()) near.observe(heading);
}

function showCurrentPage() {
  const [sidebar, current] = [
    document.querySelector("#pst-primary-sidebar"),
    document.querySelector(".bd-docs-nav .current > a"),
  ];
  if (!sidebar || !current) return;
  const below = current.getBoundingClientRect().top - sidebar.getBoundingClientRect().top;
  if (below > innerHeight / 2) sidebar.scrollTop = below - innerHeight / 4;
}

function copyButtons() {
  if (!navigator.clipboard) return; // only where the page comes over https or from this machine
  for (const block of document.querySelectorAll("main .highlight > pre")) {
    const button = h("button", { type: "button", class: "copy-code d-print-none" }, "Copy");
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(block.textContent).catch(() => {});
      button.textContent = "Copied";
      setTimeout(() => (button.textContent = "Copy"), 2000);
    });
    block.parentElement.append(button);
  }
}

/** Wide content that scrolls sideways can be reached by keyboard. */
function reachScrollable() {
  const boxes = "main pre, main .pst-scrollable-table-container, main .cell_output .output, main div.math";
  for (const box of document.querySelectorAll(boxes)) {
    if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
    else if (!box.closest("[data-interactive], .practice")) box.removeAttribute("tabindex");
  }
}

/** Says once on a page that has something to keep that this browser keeps nothing. */
function sayForgetful() {
  const keeps = document.querySelector("[data-interactive], .practice");
  const title = document.querySelector("article h1");
  if (root.dataset.memory !== "none" || !keeps || !title) return;
  const text =
    "This browser does not let the site keep anything. Everything works, but answers, points and programs are lost " +
    "when you leave the page.";
  title.after(h("p", { class: "forgetful", role: "note" }, text));
}

export function frame() {
  themeSwitch();
  drawer(
    document.querySelector(".primary-toggle"),
    document.querySelector("#pst-primary-sidebar"),
    document.querySelector("#pst-primary-sidebar-modal"),
  );
  drawer(
    document.querySelector(".secondary-toggle"),
    document.querySelector("#pst-secondary-sidebar"),
    document.querySelector("#pst-secondary-sidebar-modal"),
  );
  markSection();
  showCurrentPage();
  copyButtons();
  sayForgetful();
  reachScrollable();
  addEventListener("resize", reachScrollable);
}
