import math
import sys


def read_input(text):
    lines = [line.strip() for line in text.split("\n")] + [""]
    weights = [float(token) for token in lines[0].replace(",", " ").split()]
    if not weights or not all(map(math.isfinite, weights)):
        raise ValueError("line 1 must hold finite numbers")
    group_size = int(lines[1])
    if group_size < 1:
        raise ValueError("line 2: the group size must be positive")
    if any(lines[2:]):
        raise ValueError("nothing may follow the group size")
    return weights, group_size


def quantize(group):
    scale = max(map(abs, group)) / 127
    return scale, [round(weight / scale) if scale else 0 for weight in group]


weights, group_size = read_input(sys.stdin.read())
total = 0.0
for start in range(0, len(weights), group_size):
    group = weights[start : start + group_size]
    scale, q = quantize(group)
    total += sum(abs(weight - n * scale) for weight, n in zip(group, q, strict=True))
    print(f"group {start // group_size + 1}: scale {scale:.5f} q", *q)
print(f"mean error: {total / len(weights):.5f}")
