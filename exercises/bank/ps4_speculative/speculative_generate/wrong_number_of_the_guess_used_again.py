"""The number that drew the guess also decides on it

Hint: Each number may be used once. A guess that was drawn by a small number would be kept too often.
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
        guesses, qs, us = [], [], []
        for _ in range(k):
            qs.append(draft(text + guesses)[-1])
            us.append(rng.random())
            guesses.append(pick(qs[-1], us[-1]))
        ps = target(text + guesses)[len(text) - 1 :]
        passes += 1
        accepted = True
        for i in range(k):
            accepted, token = accept_or_resample(ps[i], qs[i], guesses[i], us[i], rng.random())
            text.append(token)
            if not accepted:
                break
        if accepted:
            text.append(pick(ps[k], rng.random()))
    return text[len(prompt) :][:n_tokens], passes
