// A module worker with CPython in it (Pyodide, self-hosted). It runs one program at a time and is thrown away whenever
// it is stopped or broken; runner.js starts the next one.
//
// In: {type: "run", id, source, input}. Out: progress {done, total}, ready, text {id, stream, text},
// done {id, error, memory, cut}, fatal {message}.

import { remember } from "./interpreter_snapshot.js";
import program from "./program.py";
import limits from "./program_limits.json";

const SIZES = __PYODIDE_SIZES__; // bytes of each file, known when the site is built
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

/** Standard input: the bytes of a text, then its end. */
function reader(text) {
  const bytes = new TextEncoder().encode(text);
  let at = 0;
  return (buffer) => {
    const part = bytes.subarray(at, at + buffer.length);
    buffer.set(part);
    at += part.length;
    return part.length;
  };
}

/**
 * Standard output or error. The first writes are sent at once, so that a program that hangs has shown them; later ones
 * at most every 50 ms, since a message for each would take longer than the program.
 */
function writer(id, stream) {
  const decoder = new TextDecoder();
  const out = { room: limits.outputCharacters, cut: false };
  let [parts, sent, count] = ["", performance.now(), 0];
  out.flush = () => {
    if (parts) postMessage({ type: "text", id, stream, text: parts });
    [parts, sent] = ["", performance.now()];
  };
  out.write = (bytes) => {
    const text = decoder.decode(bytes, { stream: true });
    parts += text.slice(0, out.room);
    out.cut ||= text.length > out.room;
    out.room -= Math.min(out.room, text.length);
    if (++count <= 100 || performance.now() - sent > 50) out.flush();
    return bytes.length;
  };
  return out;
}

async function start() {
  if (typeof WebAssembly !== "object") throw new Error("no WebAssembly");
  const plainFetch = globalThis.fetch;
  globalThis.fetch = countingFetch();
  const { loadPyodide } = await import(new URL("pyodide.mjs", folder).href);
  const python = await loadPyodide({ indexURL: folder.href, packages: [] });
  globalThis.fetch = plainFetch;
  const names = python.toPy({ __name__: "course_program" });
  python.runPython(program, { globals: names, filename: "course_program.py" });
  return { python, run: names.get("run"), restore: remember(python) };
}

/** Runs one program in an interpreter that is as it was when it started, and puts it back there. */
function runOne({ python, run, restore }, { id, source, input }) {
  const [out, errors] = [writer(id, "output"), writer(id, "errors")];
  python.setStdin({ read: reader(input), isatty: false });
  python.setStdout({ write: out.write, isatty: false });
  python.setStderr({ write: errors.write, isatty: false });
  const result = run(source);
  const [error, memory] = result.toJs();
  result.destroy();
  out.flush();
  errors.flush();
  restore();
  postMessage({ type: "done", id, error: error ?? null, memory, cut: out.cut });
}

const ready = start().then(
  (started) => {
    postMessage({ type: "ready" });
    return started;
  },
  (error) => postMessage({ type: "fatal", message: String(error.message ?? error).split("\n")[0] }),
);

addEventListener("message", async ({ data }) => {
  const started = await ready;
  if (!started) return;
  try {
    runOne(started, data);
  } catch (error) {
    // Not a Python exception: the interpreter itself is broken and must not be used again.
    postMessage({ type: "fatal", message: String(error.message ?? error).split("\n")[0] });
  }
});
