"""One guess less than k in each round

Hint: Count the calls of the draft in one round. The text asks for k.
Caught by: loop-passes
"""

import numpy as np


def speculative_generate(target, draft, prompt, k, n_tokens, rng):
    def pick(probabilities, v):
        running = np.cumsum(probabilities)
        index = np.searchsorted(running, v * running[-1], side="right")
        return int(min(index, np.flatnonzero(probabilities)[-1]))

    text, passes = list(prompt), 0
    while len(text) < len(prompt) + n_tokens:
        guesses, qs = [], []
        for _ in range(k - 1):
            qs.append(draft(text + guesses)[-1])
            guesses.append(pick(qs[-1], rng.random()))
        ps = target(text + guesses)[len(text) - 1 :]
        passes += 1
        accepted = True
        for i in range(len(guesses)):
            accepted, token = accept_or_resample(ps[i], qs[i], guesses[i], rng.random(), rng.random())
            text.append(token)
            if not accepted:
                break
        if accepted:
            text.append(pick(ps[len(guesses)], rng.random()))
    return text[len(prompt) :][:n_tokens], passes
