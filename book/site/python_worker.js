// A module worker with CPython in it (Pyodide, self-hosted). It runs one program at a time and is thrown away whenever
// it is stopped or broken; runner.js starts the next one.
//
// In: {type: "run", id, source, input}. Out: progress {done, total}, ready, text {id, stream, text},
// done {id, error, memory, cut}, fatal {message}.

import program from "./program.py";

const ROOM = 65_536; // characters of output that are kept
const SIZES = globalThis.PYODIDE_SIZES ?? __PYODIDE_SIZES__; // bytes of each file, known when the site is built
const folder = new URL("pyodide/", import.meta.url);

/** fetch that reports how much of Python has arrived. */
function countingFetch() {
  const total = Object.values(SIZES).reduce((sum, size) => sum + size, 0);
  const plainFetch = globalThis.fetch.bind(globalThis);
  let done = 0;
  return async (request, options) => {
    const response = await plainFetch(request, options);
    const name = new URL(response.url || String(request), folder).pathname.split("/").pop();
    if (!response.ok || !response.body || !(name in SIZES)) return response;
    const counted = new TransformStream({
      transform(chunk, controller) {
        done += chunk.byteLength;
        postMessage({ type: "progress", done: Math.min(done, total), total });
        controller.enqueue(chunk);
      },
    });
    return new Response(response.body.pipeThrough(counted), { headers: response.headers, status: response.status });
  };
}

async function start() {
  const plainFetch = globalThis.fetch;
  globalThis.fetch = countingFetch();
  const { loadPyodide } = await import(new URL("pyodide.mjs", folder).href);
  const python = await loadPyodide({ indexURL: folder.href, packages: [] });
  globalThis.fetch = plainFetch;
  const names = python.toPy({ __name__: "course_program" });
  python.runPython(program, { globals: names, filename: "course_program.py" });
  return names.get("run");
}

const ready = start().then(
  (run) => {
    postMessage({ type: "ready" });
    return run;
  },
  (error) => postMessage({ type: "fatal", message: `Python could not be loaded: ${error.message ?? error}` }),
);

onmessage = async ({ data: { id, source, input } }) => {
  const run = await ready;
  if (!run) return;
  try {
    const result = run(source, input, (stream, text) => postMessage({ type: "text", id, stream, text }), ROOM);
    const [error, memory, cut] = result.toJs();
    result.destroy();
    postMessage({ type: "done", id, error: error ?? null, memory, cut });
  } catch (error) {
    // Not a Python exception: the interpreter itself is broken and must not be used again.
    postMessage({ type: "fatal", message: String(error.message ?? error).split("\n")[0] });
  }
};
