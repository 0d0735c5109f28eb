// Puts the interpreter back to how it was just after it started, so that every case begins like a fresh
// `python program.py`: modules, builtins, files and open streams of one case do not reach the next.
//
// WebAssembly keeps all of CPython in one block of memory. A copy of it, taken once, is laid back in a few
// milliseconds; starting another interpreter takes seconds. Files and open streams are Emscripten's, outside of that
// memory, and are put back beside it.

const OUTSIDE = ["/dev", "/proc"]; // devices, not files

/** Every file and folder as [path, node]. */
function* walk(fs, folder = "") {
  for (const name of fs.readdir(folder || "/")) {
    const path = `${folder}/${name}`;
    if (name === "." || name === ".." || OUTSIDE.includes(path)) continue;
    const { node } = fs.lookupPath(path, { follow: false });
    yield [path, node];
    if (fs.isDir(node.mode)) yield* walk(fs, path);
  }
}

/** Deletes the files and folders that are new, and writes those anew that were changed or deleted. */
function putFilesBack(fs, before) {
  fs.chdir("/");
  for (const [path, node] of [...walk(fs)].reverse()) {
    if (before.get(path)?.isFolder === fs.isDir(node.mode)) continue;
    fs.chmod(path, 0o777, true);
    if (fs.isDir(node.mode)) fs.rmdir(path);
    else fs.unlink(path);
  }
  for (const [path, { isFolder, mode, mtime, bytes }] of before) {
    if (!fs.analyzePath(path).exists && isFolder) fs.mkdir(path);
    fs.chmod(path, mode);
    if (isFolder || (fs.analyzePath(path).exists && fs.lookupPath(path).node.mtime === mtime)) continue;
    fs.writeFile(path, bytes);
    before.get(path).mtime = fs.lookupPath(path).node.mtime;
  }
}

/** Remembers how `python`, a Pyodide that runs nothing, is now; the function returned puts it back there. */
export function remember(python) {
  const { FS: fs, _module: module } = python;
  const memory = new Uint8Array(module.HEAP8.buffer).slice();
  const streams = [...fs.streams];
  const folder = fs.cwd();
  const files = new Map();
  for (const [path, { mode, mtime }] of walk(fs)) {
    const isFolder = fs.isDir(mode);
    files.set(path, { isFolder, mode, mtime, bytes: isFolder ? null : fs.readFile(path) });
  }
  return () => {
    fs.streams.length = 0; // a program may have closed these and opened others
    streams.forEach((stream, fd) => {
      fs.streams[fd] = stream;
      if (stream) stream.fd = fd;
    });
    putFilesBack(fs, files);
    fs.chdir(folder);
    const now = new Uint8Array(module.HEAP8.buffer); // it may have grown, and never shrinks
    now.set(memory);
    now.fill(0, memory.length);
  };
}
