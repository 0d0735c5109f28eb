"""Pure Python loops; the acceptance without a division."""


def accept_or_resample(p, q, token, u, v):
    if u * q[token] < p[token]:
        return True, token
    residual = [max(float(a) - float(b), 0.0) for a, b in zip(p, q, strict=True)]
    total, running, last = sum(residual), 0.0, 0
    for candidate, part in enumerate(residual):
        if part > 0:
            running += part / total
            last = candidate
            if v < running:
                break
    return False, last
