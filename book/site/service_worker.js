// The service worker. It asks the network first, so that a page is never older than its server, and answers from its
// caches where there is no network or none that answers in time. It keeps the pages once a reader has begun to use
// the site, and Python, which is four times as large, once a practice page has loaded it.
//
// Several builds may lie under one origin in different folders. A cache's name therefore holds the folder, and a
// worker deletes only caches of its own folder.

const FILES = JSON.parse(`__FILES__`);
const PYTHON_FILES = JSON.parse(`__PYTHON_FILES__`);
const PATIENCE = 4000; // milliseconds that a network may take while something is kept
const scope = new URL(self.registration.scope);
const BOOK = `course ${scope.pathname} pages __VERSION__`;
const PYTHON = `course ${scope.pathname} python __PYTHON_VERSION__`;

/** Fetches files one small lot after another, so that reading goes on. What fails is fetched when it is visited. */
async function keep(name, files) {
  const cache = await caches.open(name);
  for (let first = 0; first < files.length; first += 6) {
    const lot = files.slice(first, first + 6).map((file) => new URL(file, scope));
    await Promise.allSettled(lot.map(async (file) => (await cache.match(file)) ?? cache.add(file)));
  }
}

self.addEventListener("install", (event) => {
  self.skipWaiting();
  if (!navigator.connection?.saveData) event.waitUntil(keep(BOOK, FILES));
});

self.addEventListener("message", (event) => {
  if (event.data === "keep Python") event.waitUntil(keep(PYTHON, PYTHON_FILES));
});

self.addEventListener("activate", (event) => {
  event.waitUntil(
    (async () => {
      const mine = (await caches.keys()).filter((name) => name.startsWith(`course ${scope.pathname} `));
      await Promise.all(mine.filter((name) => name !== BOOK && name !== PYTHON).map((name) => caches.delete(name)));
      await self.clients.claim();
    })(),
  );
});

const cacheOf = (path) => (PYTHON_FILES.includes(path) ? PYTHON : BOOK);
const pathOf = (request) => decodeURI(request.url.slice(scope.href.length)).replace(/[?#].*/, "");

async function kept(request) {
  const cache = await caches.open(cacheOf(pathOf(request)));
  const anyForm = { ignoreSearch: true, ignoreVary: true };
  const found = await cache.match(request, anyForm);
  if (found || request.mode !== "navigate") return found;
  const isFolder = new URL(request.url).pathname.endsWith("/");
  return (
    (isFolder && (await cache.match(new URL("index.html", request.url), anyForm))) ||
    cache.match(new URL("404.html", scope))
  );
}

async function fromNetwork(request) {
  const answer = await fetch(request);
  if (answer.ok && answer.status === 200 && answer.type === "basic") {
    const copy = answer.clone();
    caches
      .open(cacheOf(pathOf(request)))
      .then((cache) => cache.put(request, copy))
      .catch(() => {});
  }
  return answer;
}

async function answer(request) {
  const network = fromNetwork(request);
  network.catch(() => {});
  const late = new Promise((resolve) => setTimeout(resolve, PATIENCE));
  const first = await Promise.race([network.catch(() => undefined), late]);
  if (first) return first;
  return (await kept(request)) ?? network;
}

self.addEventListener("fetch", (event) => {
  const { request } = event;
  if (request.method !== "GET" || !request.url.startsWith(scope.href) || pathOf(request).startsWith("isso/")) return;
  event.respondWith(answer(request));
});
