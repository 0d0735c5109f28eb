"""u and v are drawn for all guesses before the first is checked

Hint: When the first guess is rejected, how many random numbers of this round were drawn for nothing?
Caught by: loop-is-exact
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
        for _ in range(k):
            qs.append(draft(text + guesses)[-1])
            guesses.append(pick(qs[-1], rng.random()))
        ps = target(text + guesses)[len(text) - 1 :]
        passes += 1
        accepted = True
        numbers = [(rng.random(), rng.random()) for _ in range(k)]
        for i in range(k):
            accepted, token = accept_or_resample(ps[i], qs[i], guesses[i], *numbers[i])
            text.append(token)
            if not accepted:
                break
        if accepted:
            text.append(pick(ps[k], rng.random()))
    return text[len(prompt) :][:n_tokens], passes
