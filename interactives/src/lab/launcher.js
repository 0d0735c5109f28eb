// The course in JupyterLab's launcher: its lessons in their order, the learner's problem sets, and the site where it
// was built. The first start tells how a cell is run.
const OPEN = "course:open";
const SITE = "course:site";
const TOLD = "llm-course.lab.told";
const CATEGORY = "Course";

/** "01_prefill_and_decode.ipynb" -> "1 · Prefill and decode"; null for what is no lesson. */
export function lessonTitle(name) {
  const found = /^(\d+)(\w?)_(\w+)\.ipynb$/.exec(name);
  if (!found) return null;
  const words = found[3].replaceAll("_", " ");
  return `${Number(found[1])}${found[2]} · ${words[0].toUpperCase()}${words.slice(1)}`.replace(/\bkv\b/i, "KV");
}

async function entries(contents, folder) {
  try {
    const { content } = await contents.get(folder);
    return content.map(({ name }) => name).sort();
  } catch {
    return []; // JupyterLab was started elsewhere
  }
}

function addCommands(app, base) {
  app.commands.addCommand(OPEN, {
    label: ({ title }) => title,
    iconClass: ({ folder }) => (folder ? "jp-FolderIcon" : "jp-NotebookIcon"),
    execute: ({ path, folder }) => app.commands.execute(folder ? "filebrowser:open-path" : "docmanager:open", { path }),
  });
  app.commands.addCommand(SITE, {
    label: "The site",
    caption: "Lessons with their figures, glossary, practice and progress, in a tab of their own",
    iconClass: "jp-Html5Icon",
    execute: () => open(`${base}course-site/`, "_blank"),
  });
}

function tellOnce(toast) {
  try {
    if (localStorage.getItem(TOLD)) return;
    localStorage.setItem(TOLD, "1");
  } catch {
    return;
  }
  toast("Shift+Enter runs a cell and goes to the next one. A new tab (+) shows the whole course.", {
    autoClose: 15000,
  });
}

export async function addCourse(app, launcher, { Notification }, { PageConfig }) {
  const base = PageConfig.getBaseUrl();
  addCommands(app, base);
  const { contents } = app.serviceManager;
  const lessons = (await entries(contents, "notebooks")).filter(lessonTitle);
  if (lessons.length === 0) return;
  const card = (args, rank) => launcher.add({ command: OPEN, args, category: CATEGORY, rank });
  lessons.forEach((name, i) => card({ title: lessonTitle(name), path: `notebooks/${name}` }, i));
  if ((await entries(contents, "work")).length)
    card({ title: "Problem sets", path: "work", folder: true }, lessons.length);
  const site = await fetch(`${base}course-site/`, { method: "HEAD" }).catch(() => null);
  if (site?.ok) launcher.add({ command: SITE, category: CATEGORY, rank: lessons.length + 1 });
  tellOnce(Notification.info);
}
