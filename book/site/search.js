// Search over all sections of the site, with results while the reader types. The texts (searchtext.json, written by
// book/_ext/search_texts.py) come with the first letter; MiniSearch ranks them.

import MiniSearch from "minisearch";
import { h } from "../../interactives/src/shared/dom.js";

const SHOWN = 20;
const WORD = /\d+(?:[.,]\d+)*|[\p{L}_][\p{L}\p{N}_]*/gu;
const tokenize = (text) => text.match(WORD) ?? [];
/** A number is one word, and thousands may be written with or without separators. */
const processTerm = (term) => (/^\d{1,3}(,\d{3})+(\.\d+)?$/.test(term) ? term.replaceAll(",", "") : term.toLowerCase());

/** search(query) gives the best sections: [{page, anchor, title, heading, text, terms}]. `sections`: searchtext.json. */
export function makeSearch(sections) {
  const index = new MiniSearch({
    fields: ["heading", "title", "text"],
    tokenize,
    processTerm,
    searchOptions: {
      boost: { heading: 4, title: 2 },
      prefix: true,
      fuzzy: (term) => (term.length > 5 && !/\d/.test(term) ? 0.2 : false),
    },
  });
  index.addAll(sections.map((section, id) => ({ id, ...section })));
  return (query) => {
    const all = index.search(query, { combineWith: "AND" });
    const found = all.length ? all : index.search(query, { combineWith: "OR" });
    return found.slice(0, SHOWN).map(({ id, terms }) => ({ ...sections[id], terms }));
  };
}

/** Up to 180 characters around the first word that was found, as [text, isFound] parts. */
export function snippet(text, terms) {
  const places = [...text.matchAll(WORD)].map((word) => ({
    at: word.index,
    end: word.index + word[0].length,
    term: processTerm(word[0]),
  }));
  const hits = places.filter(({ term }) => terms.includes(term));
  const start = places.findLast(({ at }) => at <= Math.max(0, (hits[0]?.at ?? 0) - 70))?.at ?? 0;
  const end = places.findLast(({ end: to }) => to <= start + 180)?.end ?? text.length;
  const parts = start > 0 ? [["… ", false]] : [];
  let at = start;
  for (const hit of hits.filter((one) => one.at >= start && one.end <= end)) {
    parts.push([text.slice(at, hit.at), false], [text.slice(hit.at, hit.end), true]);
    at = hit.end;
  }
  parts.push([text.slice(at, end), false]);
  if (end < text.length) parts.push([" …", false]);
  return parts.filter(([part]) => part);
}

function result({ page, anchor, title, heading, text, terms }, root) {
  const address = new URL(page + (anchor ? `#${anchor}` : ""), root);
  const shown = snippet(text, terms).map(([part, isFound]) => (isFound ? h("mark", {}, part) : part));
  return h(
    "li",
    {},
    h("a", { href: address }, heading),
    heading === title ? null : h("span", { class: "search-page" }, ` in ${title}`),
    h("p", {}, shown),
  );
}

/** Answers below the field in `place`; `root` is the site's folder. What stands in the field already is asked at once. */
export function answerBelow(place, root, { onQuery = () => {} } = {}) {
  let loading = null;
  const load = () =>
    (loading ??= fetch(new URL("searchtext.json", root))
      .then((answer) => answer.json())
      .then(makeSearch));
  const field = place.querySelector("#search-field");
  const status = h("p", { class: "search-status", role: "status" });
  const list = h("ol", { class: "search-results" });
  place.append(status, list);

  async function search() {
    const query = field.value.trim();
    onQuery(query);
    if (!query) return show("", []);
    const find = await load().catch(() => null);
    if (field.value.trim() !== query) return undefined; // the reader has typed on
    if (!find) return show("The search texts could not be loaded.", []);
    const found = find(query);
    const number =
      found.length === SHOWN ? `The best ${SHOWN} sections` : `${found.length} section${found.length === 1 ? "" : "s"}`;
    return show(found.length ? `${number} for “${query}”` : `Nothing here holds “${query}”.`, found);
  }
  function show(text, found) {
    status.textContent = text;
    list.replaceChildren(...found.map((one) => result(one, root)));
  }

  field.addEventListener("input", search);
  place.addEventListener("keydown", (event) => {
    const links = [...list.querySelectorAll("a")];
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (event.key === "Enter" && event.target === field) links[0]?.click();
    if (!step || !links.length) return;
    event.preventDefault();
    const next = links.indexOf(document.activeElement) + step;
    (links[next] ?? field).focus();
  });
  search();
}

/** The search page: what the address asks is asked unless the reader has typed, and the address follows the field. */
export function searchPage(place, root) {
  const field = place.querySelector("#search-field");
  field.value ||= new URLSearchParams(location.search).get("q") ?? "";
  field.focus();
  const onQuery = (query) =>
    history.replaceState(null, "", query ? `?q=${encodeURIComponent(query)}` : location.pathname);
  answerBelow(place, root, { onQuery });
}
