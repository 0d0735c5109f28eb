// Runs before anything is painted, inside the page. It stands in for localStorage where the browser refuses it, so
// that no later script has to know, and says which theme the page has.

try {
  localStorage.getItem("mode");
} catch {
  const kept = new Map();
  const standIn = {
    getItem: (key) => kept.get(String(key)) ?? null,
    setItem: (key, value) => void kept.set(String(key), String(value)),
    removeItem: (key) => void kept.delete(String(key)),
    clear: () => kept.clear(),
    key: (index) => [...kept.keys()][index] ?? null,
    get length() {
      return kept.size;
    },
  };
  Object.defineProperty(window, "localStorage", { value: standIn, configurable: true });
  document.documentElement.dataset.memory = "none";
}

/** "light" or "dark": the reader's choice, else what the system says. */
window.courseTheme = () => {
  const chosen = localStorage.getItem("mode");
  if (chosen === "light" || chosen === "dark") return chosen;
  return matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
};
