"""The last round guesses only as many tokens as are still wanted; loops instead of NumPy."""


def speculative_generate(target, draft, prompt, k, n_tokens, rng):
    def pick(probabilities, v):
        running = 0.0
        for token, probability in enumerate(probabilities):
            running += float(probability)
            if probability > 0:
                last = token
                if running > v:
                    break
        return last

    new, passes = [], 0
    while len(new) < n_tokens:
        length = min(k, n_tokens - len(new) - 1)
        context, q = [*prompt, *new], []
        for _ in range(length):
            q.append(draft(context)[-1])
            context.append(pick(q[-1], rng.random()))
        rows = target(context)[-(length + 1) :]
        passes += 1
        for guess, p_row, q_row in zip(context[len(context) - length :], rows, q, strict=False):
            kept, token = accept_or_resample(p_row, q_row, guess, rng.random(), rng.random())
            new.append(int(token))
            if not kept:
                break
        else:
            new.append(pick(rows[-1], rng.random()))
    return new, passes
