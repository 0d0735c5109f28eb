"""torch: the text is a tensor, tokens are returned as one."""

import torch


def speculative_generate(target, draft, prompt, k, n_tokens, rng):
    def pick(probabilities):
        running = torch.as_tensor(probabilities, dtype=torch.float64).cumsum(0)
        place = torch.searchsorted(running, running[-1] * rng.random(), right=True)
        return place.clamp(max=len(running) - 1)

    text, passes = torch.tensor(prompt), 0
    while len(text) - len(prompt) < n_tokens:
        longer, q = text, []
        for _ in range(k):
            q.append(draft(longer)[-1])
            longer = torch.cat([longer, pick(q[-1]).reshape(1)])
        p = torch.as_tensor(target(longer))[len(text) - 1 :]
        passes += 1
        done = False
        for i in range(k):
            token = int(longer[len(text)])
            accepted, token = accept_or_resample(p[i].numpy(), q[i], token, rng.random(), rng.random())
            text = torch.cat([text, torch.tensor([int(token)])])
            if not accepted:
                done = True
                break
        if not done:
            text = torch.cat([text, pick(p[-1]).reshape(1)])
    return text[len(prompt) : len(prompt) + n_tokens], passes
