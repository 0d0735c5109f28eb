// What every page does beside showing its text, and as late as possible: practice and discussion where a page has them,
// and, from the first interaction on, keeping the book for reading without a network.

const root = new URL(document.documentElement.dataset.content_root || "./", location.href);

if (document.querySelector(".practice")) import("./practice.js");

const thread = document.querySelector(".discussion");
if (thread) {
  const near = new IntersectionObserver(
    ([entry]) => {
      if (!entry.isIntersecting) return;
      near.disconnect();
      import("./discussion.js").then(({ showDiscussion }) => showDiscussion(thread, root));
    },
    { rootMargin: "150px" },
  );
  near.observe(thread);
}

// The theme prints by an attribute in its HTML, which the page's security policy forbids.
document.addEventListener("click", (event) => {
  if (event.target.closest?.(".btn-download-pdf-button")) print();
});

// Wide content that scrolls sideways can be reached by keyboard.
for (const box of document.querySelectorAll("main pre, main .pst-scrollable-table-container, main .cell_output .output, main div.math")) {
  if (box.scrollWidth > box.clientWidth && !box.hasAttribute("tabindex")) box.tabIndex = 0;
}

const firsts = ["pointerdown", "keydown", "wheel", "scroll"];
function keepForOffline() {
  for (const type of firsts) removeEventListener(type, keepForOffline);
  navigator.serviceWorker.register(new URL("sw.js", root)).catch(() => {}); // a page from a file, or a strict browser
}
if ("serviceWorker" in navigator && location.protocol.startsWith("http")) {
  for (const type of firsts) addEventListener(type, keepForOffline, { passive: true });
}
