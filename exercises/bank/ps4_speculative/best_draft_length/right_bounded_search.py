"""All k until even 1 / (1 - alpha) tokens could not be fast enough."""


def best_draft_length(alpha, cost):
    best, best_speed, power, tokens, k = 0, 1.0, 1.0, 1.0, 0
    while (1 / (1 - alpha)) / (1 + k * cost) >= best_speed:
        k += 1
        power *= alpha
        tokens += power
        if tokens / (1 + k * cost) > best_speed:
            best, best_speed = k, tokens / (1 + k * cost)
    return best
