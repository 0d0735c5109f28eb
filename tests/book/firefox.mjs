// The way of a reader in Firefox: `node firefox.mjs PUPPETEER FIREFOX ADDRESS PROGRAM` prints what was seen as JSON.
// The browser is Debian's own, driven by WebDriver BiDi.

import { readFile } from "node:fs/promises";

const [, , library, executablePath, address, program] = process.argv;
const { default: puppeteer } = await import(library);
const seen = { faults: [], hosts: [] };
const browser = await puppeteer.launch({ browser: "firefox", executablePath, headless: true });
try {
  const page = await browser.newPage();
  await page.setViewport({ width: 1000, height: 900 });
  page.setDefaultTimeout(60_000);
  page.on("console", (message) => message.type() === "error" && seen.faults.push(message.text()));
  page.on("pageerror", (error) => seen.faults.push(String(error)));
  page.on("request", (request) => request.url().startsWith("http") && seen.hosts.push(new URL(request.url()).host));

  await page.goto(`${address}notebooks/01_prefill_and_decode.html`, { waitUntil: "load" });
  const show = async (name) => {
    await page.waitForSelector(`[data-interactive=${name}]`);
    await page.$eval(`[data-interactive=${name}]`, (place) => place.scrollIntoView());
    const place = await page.waitForSelector(`[data-interactive=${name}][data-ready]`);
    return (
      await place.evaluateHandle((box) => [...box.querySelectorAll("*")].find((one) => one.shadowRoot).shadowRoot)
    ).asElement();
  };
  const text = (place) => place.evaluate((element) => element.textContent);
  const find = async (place, selector) => {
    const found = await page.waitForFunction((root, what) => root.querySelector(what), {}, place, selector);
    return found.asElement();
  };
  const press = async (place, label) => {
    const focused = await place.evaluate((element, label) => {
      const button = [...element.querySelectorAll("button")].find((one) => one.textContent.includes(label));
      button?.focus();
      return button !== undefined && button.getRootNode().activeElement === button;
    }, label);
    if (!focused) throw new Error(`no button "${label}" in: ${await text(place)}`);
    await page.keyboard.press("Enter");
  };

  const figure = await show("roofline");
  await press(figure, "Show me");
  const box = await find(figure, "input[aria-label^='Batch, exact value']");
  await box.focus();
  await page.keyboard.down("Control");
  await page.keyboard.press("a");
  await page.keyboard.up("Control");
  await page.keyboard.type("64");
  await page.keyboard.press("Tab");
  await page.waitForFunction(
    (place) => place.querySelector("[role=status]").textContent.includes("batch 64"),
    {},
    figure,
  );
  seen.sentence = await text(await find(figure, "[role=status]"));

  const prediction = await show("predict");
  await (await find(prediction, "input")).type("123456");
  await press(prediction, "Commit");
  seen.prediction = await text(await find(prediction, ".feedback"));

  const quiz = await show("quiz");
  await quiz.evaluate((root) => {
    for (const question of root.querySelectorAll("fieldset.question")) {
      question.querySelector("input[type=radio]")?.click();
      const box = question.querySelector("input[type=text]");
      if (box) {
        box.value = "1";
        box.dispatchEvent(new Event("input", { bubbles: true }));
      }
    }
  });
  await press(quiz, "Check my answers");
  seen.quiz = await text(await find(quiz, ".result"));

  await page.goto(`${address}practice/01_groupwise_int8.html`, { waitUntil: "load" });
  await page.waitForSelector(".practice-editor[data-ready]");
  await (await page.$(".cm-content")).focus();
  await page.waitForFunction(() => document.querySelector(".practice-state").textContent === "Python is ready.");
  const write = async (code) => {
    await page.$eval(".cm-content", (editor) => editor.focus());
    await page.keyboard.down("Control");
    await page.keyboard.press("a");
    await page.keyboard.up("Control");
    await page.evaluate((text) => document.execCommand("insertText", false, text), code);
  };
  const run = async (label) => {
    await press(await page.$(".practice-app"), label);
    await page.waitForFunction(() => {
      const stop = [...document.querySelectorAll("button")].find((one) => one.textContent.includes("Stop"));
      return stop.disabled && document.querySelector(".practice-live").textContent !== "";
    });
    return page.$eval(".practice-live", (live) => live.textContent);
  };
  await write(await readFile(program, "utf8"));
  seen.practice = await run("Check all cases");

  await page.goto(`${address}progress.html`, { waitUntil: "load" });
  seen.progress = await text(await show("progress"));
} finally {
  await browser.close();
}
console.log(JSON.stringify(seen));
