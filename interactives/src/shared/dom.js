// Elements without innerHTML: what a text holds is shown and never becomes markup.

const MATHML = new Set(["math", "mrow", "mi", "mn", "mo", "mtext", "msup", "msub", "msubsup", "mfrac", "msqrt"]);
const TEXT = new Set(["code", "em", "strong"]);

/** An element; attributes that are functions become listeners, null and false ones are left out. */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value !== null && value !== undefined && value !== false)
      element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

/** The nodes of a rich text (interactives/richtext.py). A tag that is not known is shown as its text. */
export function rich(nodes) {
  return (Array.isArray(nodes) ? nodes : [String(nodes)]).map((node) => {
    if (!Array.isArray(node)) return document.createTextNode(String(node));
    const [tag, ...children] = node;
    const element = MATHML.has(tag)
      ? document.createElementNS("http://www.w3.org/1998/Math/MathML", tag)
      : document.createElement(TEXT.has(tag) ? tag : "span");
    element.append(...rich(children));
    return element;
  });
}

/** The words of a rich text, a formula on one line: "10^9", "a/b". As `plain` of interactives/richtext.py. */
export function words(nodes) {
  return (Array.isArray(nodes) ? nodes : [String(nodes)]).map(wordsOf).join("");
}

function wordsOf(node) {
  if (!Array.isArray(node)) return String(node);
  const parts = node.slice(1).map(wordsOf);
  const between = { mfrac: "/", msup: "^", msub: "_" }[node[0]] ?? "";
  return parts.join(between);
}
