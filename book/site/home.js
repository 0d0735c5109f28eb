// The home page: the figure follows its three controls, and the way in leads to the lesson where a reader stopped.

const SLOWER = 500; // a pass takes milliseconds; the figure shows it this many times slower

/** The figure for the controls' choice. All numbers were computed when the site was built. */
function followControls(figure) {
  const numbers = JSON.parse(figure.dataset.numbers);
  const form = figure.querySelector("form");
  const [units, tokens] = [figure.querySelectorAll(".unit"), figure.querySelectorAll(".token")];
  const tell = (name, text) => (figure.querySelector(`[data-home=${name}]`).textContent = text);
  const show = () => {
    const [bits, users, card] = ["bits", "users", "card"].map((name) => form.elements[name].value);
    const now = numbers[`${card} ${bits} ${users}`];
    for (const name of ["weights", "tokens", "idle"]) tell(name, now[name]);
    tell("out", `${users} token${users === "1" ? "" : "s"}`);
    units.forEach((unit, index) => unit.classList.toggle("lit", index < now.lit));
    tokens.forEach((token, index) => token.classList.toggle("shown", index < users));
    figure.style.setProperty("--pass", `${(now.ms * SLOWER) / 1000}s`);
  };
  form.addEventListener("change", show);
  const pause = form.querySelector("button");
  pause.addEventListener("click", () => {
    const stopped = figure.classList.toggle("paused");
    pause.textContent = stopped ? "Go on" : "Pause";
  });
  figure.classList.add("moving");
  show();
}

/** The first lesson whose quiz is not passed, for a reader who has begun. */
async function leadOn(link) {
  if (localStorage.length === 0) return;
  const { KEY, store } = await import("../../interactives/src/shared/store.js");
  if (localStorage.getItem(KEY) === null) return;
  const { quizzes, opening } = store().read();
  const lessons = JSON.parse(link.dataset.lessons);
  if (!lessons.some((lesson) => quizzes[lesson] || opening[lesson])) return;
  const next = lessons.find((lesson) => !quizzes[lesson]?.passed);
  if (!next) return;
  link.href = `notebooks/${next}.html`;
  link.textContent = `Continue with lesson ${next.split("_")[0].replace(/^0(?=.)/, "")}`;
}

export function home() {
  const [figure, link] = [document.querySelector(".home-figure"), document.querySelector(".home-start a")];
  if (figure) followControls(figure);
  if (link) leadOn(link);
}
