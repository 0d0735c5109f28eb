// KaTeX as a filter: one JSON request a line on standard input, one JSON answer a line on standard output.
// It ends when its input ends, so it cannot outlive the build that asks it.
const katex = require(process.argv[2]);
const { createInterface } = require("node:readline");

createInterface({ input: process.stdin }).on("line", (line) => {
  const { latex, display } = JSON.parse(line);
  let answer;
  try {
    answer = { html: katex.renderToString(latex, { displayMode: display, throwOnError: true, strict: "ignore" }) };
  } catch (error) {
    answer = { error: error.message };
  }
  process.stdout.write(JSON.stringify(answer) + "\n");
});
