// What a run of a program says about it: is a case right, and in words why not.

import { firstDifference, sayDifference } from "./compare.js";

const KEPT = "Your code is kept.";

/** One sentence for a run that did not come to its own end; undefined for one that did. */
export function howItEnded({ ended, error }, seconds) {
  return {
    stopped: "You stopped the program.",
    timeout: `The program ran for ${seconds} seconds and was stopped. Is there a loop that never ends?`,
    memory: `The program used up the memory that a browser gives it. Python was started anew. ${KEPT}`,
    broken: `${whyItBroke(error)} Python is started anew at the next run. ${KEPT}`,
    unavailable: whyItDidNotStart(error),
  }[ended];
}

function whyItBroke(error) {
  if (/stack|recursion/i.test(error ?? ""))
    return "Python itself broke down, as it does when a recursion goes too deep.";
  return `Python itself broke down (${error ?? "without a reason"}).`;
}

function whyItDidNotStart(error) {
  const elsewhere = "On your own machine the program runs with `python program.py`.";
  if (error === "no WebAssembly") {
    return `This browser has no WebAssembly, or it is switched off, and Python cannot run here without it. ${elsewhere}`;
  }
  return `Python could not be loaded (${error}). Is the network there? ${elsewhere}`;
}

/** {right, why, difference} of one case and what the program did with its input. */
export function judge(one, outcome, seconds) {
  const { output, error, ended } = outcome;
  if (ended !== "normally") return { right: false, why: howItEnded(outcome, seconds) };
  if (one.refused) {
    if (error !== null) return { right: true };
    return { right: false, why: "this input must end with an error, and your program ended without one" };
  }
  if (error !== null) return { right: false, why: error.trim().split("\n").at(-1) };
  const difference = firstDifference(one.expected, output);
  if (!difference) return { right: true };
  return { right: false, difference, why: sayDifference(one.expected, output, difference) };
}

/** The sentence after a run of several cases. `more`: how many cases there are in all, where these are the samples. */
export function summary({ right, of, firstFault, more, earned }) {
  if (right < of) return `${right} of ${of} right. ${firstFault}`;
  if (more === undefined) return `All ${of} cases are right.${earned ? ` ${earned} XP earned.` : ""}`;
  return `${of === 2 ? "Both" : `All ${of}`} samples are right. Now check all ${more} cases.`;
}
