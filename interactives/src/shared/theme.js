// Light or dark as the page says: JupyterLab's theme, the site's, else the reader's system.

export function isDark() {
  const lab = document.body?.dataset.jpThemeLight;
  if (lab) return lab === "false";
  const site = document.documentElement.dataset.theme;
  if (site === "dark" || site === "light") return site === "dark";
  return matchMedia("(prefers-color-scheme: dark)").matches;
}

/** Calls back now and at every change; returns a function that stops it. */
export function watchTheme(callback) {
  const tell = () => callback(isDark());
  const watcher = new MutationObserver(tell);
  watcher.observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
  if (document.body) watcher.observe(document.body, { attributes: true, attributeFilter: ["data-jp-theme-light"] });
  const system = matchMedia("(prefers-color-scheme: dark)");
  system.addEventListener("change", tell);
  tell();
  return () => {
    watcher.disconnect();
    system.removeEventListener("change", tell);
  };
}

export const stillMotion = () => matchMedia("(prefers-reduced-motion: reduce)").matches;
