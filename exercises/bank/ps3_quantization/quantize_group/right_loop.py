"""One loop, a tuple of integers"""


def quantize_group(weights):
    largest = 0.0
    for w in weights:
        largest = max(largest, w, -w)
    scale = largest / 127.0
    q = []
    for w in weights:
        ratio = w / scale if scale > 0 else 0.0
        below = int(ratio // 1)
        rest = ratio - below
        if rest > 0.5 or (rest == 0.5 and below % 2 == 1):
            below += 1
        q.append(below)
    return scale, tuple(q)
