"""A random number of 0 picks the first token, whatever its probability

Hint: A random number may be exactly 0. Which token does it pick where the first one has probability 0?
Caught by: loop-is-exact
"""

import numpy as np


def speculative_generate(target, draft, prompt, k, n_tokens, rng):
    def pick(probabilities, v):
        running = np.cumsum(probabilities)
        index = np.searchsorted(running, v * running[-1], side="left")
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
        for i in range(k):
            accepted, token = accept_or_resample(ps[i], qs[i], guesses[i], rng.random(), rng.random())
            text.append(token)
            if not accepted:
                break
        if accepted:
            text.append(pick(ps[k], rng.random()))
    return text[len(prompt) :][:n_tokens], passes
