// What every page does beside showing its text: the frame, search, practice and discussion where a page has them, and,
// from the first interaction on, keeping the book for reading without a network.

import { frame } from "./chrome.js";
import { openSearch } from "./search_dialog.js";

const root = new URL(document.documentElement.dataset.content_root || "./", location.href);
frame();

if (document.querySelector(".practice")) import("./practice.js");
if (document.querySelector("form.written")) import("./written.js").then(({ writtenAnswers }) => writtenAnswers());
if (document.querySelector(".home-start")) import("./home.js").then(({ home }) => home());

const lab = document.querySelector("a[data-lab]");
if (lab) import("./lab.js").then(({ openInLab }) => openInLab(lab));

const searching = document.querySelector(".search-place");
const search = () => import("./search.js");
if (searching) search().then(({ searchPage }) => searchPage(searching, root));
else {
  const open = (event) => {
    event.preventDefault();
    openSearch((dialog) => search().then(({ answerBelow }) => answerBelow(dialog, root)));
  };
  for (const button of document.querySelectorAll(".course-search")) button.addEventListener("click", open);
  addEventListener("keydown", (event) => (event.ctrlKey || event.metaKey) && event.key === "k" && open(event));
}

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

const firsts = ["pointerdown", "keydown", "wheel", "scroll"];
function keepForOffline() {
  for (const type of firsts) removeEventListener(type, keepForOffline);
  navigator.serviceWorker.register(new URL("sw.js", root)).catch(() => {}); // a page from a file, or a strict browser
}
if ("serviceWorker" in navigator && location.protocol.startsWith("http")) {
  for (const type of firsts) addEventListener(type, keepForOffline, { passive: true });
}
