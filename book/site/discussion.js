// The thread under a lesson: Isso on the site's own server, or giscus where the site was built for it. Loaded when the
// reader comes near; a page whose server does not answer says so in one line and goes on without.

function quietly(place, text) {
  place.replaceChildren(
    Object.assign(document.createElement("p"), { className: "discussion-note", textContent: text }),
  );
}

const ISSO = {
  issoLang: "en",
  issoAvatar: "false",
  issoVote: "false",
  issoFeed: "false",
  issoReplyNotifications: "false",
  issoRequireAuthor: "true",
  issoPostboxTextTextEn: "Your question or answer; Markdown works",
  issoPostboxAuthorPlaceholderTextEn: "",
  issoPostboxEmailPlaceholderTextEn: "",
  issoPostboxWebsitePlaceholderTextEn: "",
  issoNoCommentsTextEn: "No questions yet",
  issoNumCommentsTextEn: "1 post\n{{ n }} posts",
  issoCommentQueuedTextEn: "Waiting for a moderator; until then only you see it.",
};

async function isso(place, settings, root) {
  const server = new URL(settings.address, root);
  const script = new URL("js/embed.min.js", server);
  const answer = await fetch(script, { method: "HEAD" });
  if (!answer.ok) throw new Error(`${script} answers ${answer.status}`);
  place.replaceChildren();
  const thread = document.createElement("section");
  thread.id = "isso-thread";
  thread.dataset.issoId = settings.thread;
  thread.dataset.title = settings.title;
  place.append(thread);
  const element = document.createElement("script");
  element.dataset.isso = server.href.replace(/\/$/, "");
  Object.assign(element.dataset, ISSO);
  element.src = script;
  await new Promise((resolve, reject) => {
    element.onload = resolve;
    element.onerror = () => reject(new Error(`cannot load ${script}`));
    document.head.append(element);
  });
  nameFields(thread);
}

/** Isso's text area has no name, and each reply's form has the same ids again; readers who hear a page need both right. */
function nameFields(thread) {
  let count = 0;
  const name = () => {
    for (const area of thread.querySelectorAll(".isso-textarea:not([aria-label])"))
      area.setAttribute("aria-label", "Your question or answer");
    for (const wrapper of thread.querySelectorAll(".isso-input-wrapper:not([data-named])")) {
      const [label, input] = [wrapper.querySelector("label"), wrapper.querySelector("input")];
      wrapper.dataset.named = "";
      if (label && input) label.htmlFor = input.id = `isso-field-${++count}`;
    }
  };
  new MutationObserver(name).observe(thread, { childList: true, subtree: true });
  name();
}

function giscus(place, settings) {
  const element = document.createElement("script");
  const values = {
    repo: settings.repo,
    repoId: settings.repo_id,
    category: settings.category,
    categoryId: settings.category_id,
    mapping: "specific",
    term: settings.title,
    strict: "1",
    reactionsEnabled: "0",
    inputPosition: "top",
    lang: "en",
    theme: document.documentElement.dataset.theme === "dark" ? "dark" : "light",
  };
  Object.assign(element.dataset, values);
  element.src = settings.script;
  element.crossOrigin = "anonymous";
  return new Promise((resolve, reject) => {
    element.onload = resolve;
    element.onerror = () => reject(new Error(`cannot load ${settings.script}`));
    place.replaceChildren(element);
  });
}

export async function showDiscussion(section, root) {
  const settings = JSON.parse(section.dataset.discussion);
  const place = section.querySelector(".discussion-place");
  quietly(place, "Loading the discussion …");
  try {
    await (settings.server === "giscus" ? giscus(place, settings) : isso(place, settings, root));
  } catch {
    quietly(place, "The discussion cannot be reached from here. Everything else works without it.");
  }
}
