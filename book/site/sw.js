// The service worker: the network first, so that a page is never older than its server; what was kept, where there is
// no network or it does not answer in time. The whole book is kept once a reader has begun to use it, Python when it
// was loaded once.

const VERSION = "__VERSION__";
const FILES = __FILES__;
const BOOK = `book-${VERSION}`;
const PATIENCE = 4000; // milliseconds that a network may take while something is kept
const scope = new URL(self.registration.scope);

self.addEventListener("install", (event) => {
  event.waitUntil(
    (async () => {
      self.skipWaiting();
      if (navigator.connection?.saveData) return;
      const cache = await caches.open(BOOK);
      // One after another in small lots: reading goes on meanwhile. A file that fails is fetched when it is visited.
      for (let first = 0; first < FILES.length; first += 6) {
        await Promise.allSettled(FILES.slice(first, first + 6).map((file) => cache.add(new URL(file, scope))));
      }
    })(),
  );
});

self.addEventListener("activate", (event) => {
  event.waitUntil(
    (async () => {
      for (const name of await caches.keys()) if (name.startsWith("book-") && name !== BOOK) await caches.delete(name);
      await self.clients.claim();
    })(),
  );
});

async function kept(request) {
  const cache = await caches.open(BOOK);
  const url = new URL(request.url);
  const found = await cache.match(request, { ignoreSearch: true, ignoreVary: true });
  if (found || request.mode !== "navigate") return found;
  return cache.match(new URL(url.pathname.endsWith("/") ? "index.html" : "./404.html", url), { ignoreSearch: true, ignoreVary: true });
}

async function fromNetwork(request) {
  const answer = await fetch(request);
  if (answer.ok && answer.status === 200 && answer.type === "basic") {
    const copy = answer.clone();
    caches.open(BOOK).then((cache) => cache.put(request, copy)).catch(() => {});
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
  const url = new URL(request.url);
  const path = url.href.startsWith(scope.href) ? url.href.slice(scope.href.length) : null;
  if (request.method !== "GET" || path === null || path.startsWith("isso/")) return;
  event.respondWith(answer(request));
});
