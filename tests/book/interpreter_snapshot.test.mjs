// Each case starts like a fresh `python program.py`, on the streams of a real program. Run by `node --test` from
// test_page_parts.py, with the Pyodide of the site.

import assert from "node:assert/strict";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { remember } from "../../book/site/interpreter_snapshot.js";
import program from "../../book/site/program.py";

const { loadPyodide } = await import(pathToFileURL(`${process.env.PYODIDE}/pyodide.mjs`).href);
const python = await loadPyodide({ packages: [], indexURL: `${process.env.PYODIDE}/` });
const names = python.toPy({ __name__: "course_program" });
python.runPython(program, { globals: names });
const runProgram = names.get("run");
const restore = remember(python);

/** What a program prints for an input, and the last line of its error. */
function run(source, input = "") {
  const [bytes, decoder] = [new TextEncoder().encode(input), new TextDecoder()];
  let [at, output] = [0, ""];
  const read = (buffer) => {
    const part = bytes.subarray(at, at + buffer.length);
    buffer.set(part);
    at += part.length;
    return part.length;
  };
  const write = (part) => {
    output += decoder.decode(part);
    return part.length;
  };
  python.setStdin({ read });
  python.setStdout({ write });
  python.setStderr({ write });
  const result = runProgram(source);
  const [error] = result.toJs();
  result.destroy();
  restore();
  return error ? error.trim().split("\n").at(-1) : output;
}

for (const [name, first, then, printed] of [
  ["a module", "import math; math.isfinite = lambda x: False", "import math; print(math.isfinite(1.0))", "True\n"],
  ["a builtin", "import builtins; builtins.print = None", "print('here')", "here\n"],
  ["logging", "import logging; logging.basicConfig()", "import logging; print(logging.root.handlers)", "[]\n"],
  ["a file", "open('once.txt', 'x').write('a')", "open('once.txt', 'x'); print('new')", "new\n"],
  ["a folder", "import os; os.mkdir('d'); open('d/f', 'w'); os.chdir('d')", "import os; print(os.listdir())", "[]\n"],
  [
    "a deleted folder",
    "import os; os.rmdir('/home/web_user')",
    "import os; print(os.path.isdir('/home/web_user'))",
    "True\n",
  ],
  ["closed streams", "import sys; sys.stdout.close(); sys.stdin.close()", "print(input())", "first\n"],
  [
    "the decimal context",
    "import decimal; decimal.getcontext().prec = 2",
    "import decimal; print(decimal.getcontext().prec)",
    "28\n",
  ],
  ["the environment", "import os; os.environ['X'] = '1'", "import os; print(os.environ.get('X'))", "None\n"],
  ["much memory", "x = [0] * 10**7", "print('small')", "small\n"],
]) {
  test(`${name} of one case does not reach the next`, () => {
    run(first, "first\n");
    assert.equal(run(then, "first\n"), printed);
  });
}

for (const [source, printed] of [
  ["print(repr(open(0).read()))", "'hello\\nworld\\n'\n"],
  ["import os; print(os.read(0, 9))", "b'hello\\nwor'\n"],
  ["import sys; sys.stdout.buffer.write(b'bytes\\n')", "bytes\n"],
  ["import sys; sys.stdout.reconfigure(encoding='utf-8'); print('ok')", "ok\n"],
  ["import sys; print(sys.stdin.fileno(), sys.stdout.fileno(), sys.stdin.isatty())", "0 1 False\n"],
  ["import sys\nfor line in sys.stdin: print(line.upper(), end='')", "HELLO\nWORLD\n"],
  ["\ufeffprint('after a byte-order mark')", "after a byte-order mark\n"],
  ["import atexit; atexit.register(print, 'bye')", "bye\n"],
  ["import sys; sys.exit()", ""],
  ["import sys; sys.exit('no')", "SystemExit: no"],
  ["print(input()); print(input()); input()", "EOFError: EOF when reading a line"],
]) {
  test(`${JSON.stringify(source)} does what it does in python program.py`, () => {
    assert.equal(run(source, "hello\nworld\n"), printed);
  });
}

test("two runs draw different random numbers", () => {
  const draw = "import random; print(random.random())";
  assert.notEqual(run(draw), run(draw));
});
