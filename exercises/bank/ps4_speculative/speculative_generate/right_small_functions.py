"""Small functions; v is drawn only where it is needed; a tuple of tokens."""

import numpy as np


def draw(probabilities, rng):
    edges = np.cumsum(probabilities)
    return int(np.argmax(edges > rng.random() * edges[-1]))


def guess(draft, text, k, rng):
    guesses, distributions = [], []
    for _ in range(k):
        distributions.append(np.asarray(draft([*text, *guesses]))[-1])
        guesses.append(draw(distributions[-1], rng))
    return guesses, distributions


def one_round(target, draft, text, k, rng):
    """The tokens that a round adds."""
    guesses, distributions = guess(draft, text, k, rng)
    rows = np.asarray(target([*text, *guesses]))[len(text) - 1 :]
    added = []
    for token, p, q in zip(guesses, rows, distributions, strict=False):
        if rng.random() * q[token] >= p[token]:
            return [*added, draw(np.maximum(p - q, 0), rng)]
        added.append(token)
    return [*added, draw(rows[-1], rng)]


def speculative_generate(target, draft, prompt, k, n_tokens, rng):
    tokens, passes = (), 0
    while len(tokens) < n_tokens:
        tokens += tuple(one_round(target, draft, [*prompt, *tokens], k, rng))
        passes += 1
    return tokens[:n_tokens], passes
