"""Guesses are kept exactly where p >= q, without part 6's rule.

Hint: Use accept_or_resample: where p < q, a guess is still kept with probability p / q.
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
        for i in range(k):
            accepted = ps[i][guesses[i]] >= qs[i][guesses[i]]
            token = guesses[i] if accepted else pick(np.maximum(ps[i] - qs[i], 0), rng.random())
            text.append(token)
            if not accepted:
                break
        if accepted:
            text.append(pick(ps[k], rng.random()))
    return text[len(prompt) :][:n_tokens], passes
