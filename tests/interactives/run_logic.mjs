// Runs the figures' logic on given inputs. Standard input: [{module, name, args, then?}], where `then` is a list of
// [method, args] to call on the result instead of returning it: "read" reads a property, "step.rate" one of the answer. Standard output: the
// results, infinities as the strings "inf" and "-inf".
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const source = join(dirname(fileURLToPath(import.meta.url)), "..", "..", "interactives", "src");
const fromList = (values) => {
  const left = [...values];
  return () => {
    if (!left.length) throw new Error("asked for more numbers than were given");
    return left.shift();
  };
};
const revive = (value) => (value && typeof value === "object" && "numbers" in value ? fromList(value.numbers) : value);
const modules = new Map();
const results = [];
for (const { module, name, args, then } of JSON.parse(readFileSync(0, "utf8"))) {
  if (!modules.has(module)) modules.set(module, await import(pathToFileURL(join(source, module)).href));
  const result = modules.get(module)[name](...args.map(revive));
  const ask = ([path, given]) => {
    if (path === "read") return result[given[0]];
    const [method, property] = path.split(".");
    const answer = result[method](...given);
    return property ? answer[property] : answer;
  };
  results.push(then ? then.map(ask) : result);
}
process.stdout.write(
  JSON.stringify(results, (_key, value) => (value === Infinity ? "inf" : value === -Infinity ? "-inf" : value)),
);
