import sys


def tokens(alpha, k):
    return sum(alpha**i for i in range(k + 1))  # also right at alpha = 1, where the quotient would be 0 / 0


for line in sys.stdin:
    if not line.strip():
        continue
    first, second, third = line.split()  # ValueError unless there are three
    alpha, k, cost = float(first), int(second), float(third)
    if not (0 <= alpha <= 1 and k >= 0 and cost > 0):
        raise ValueError(f"out of range: {line!r}")
    speed = [tokens(alpha, n) / (n * cost + 1) for n in range(k + 1)]
    best = speed.index(max(speed))  # the first of equals
    print(f"{tokens(alpha, k):.4f} tokens a pass, {speed[k]:.2f} times as fast, best with {best}")
