"""max over a range, with the smaller length preferred."""


def best_draft_length(alpha, cost):
    def speed(k):
        return expected_tokens(alpha, k) / (1 + cost * k)

    return max(range(3000), key=lambda k: (speed(k), -k))
