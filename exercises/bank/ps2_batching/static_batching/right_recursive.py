"""Recursion: the first batch, then the rest shifted by its end."""


def static_batching(lengths, slots):
    if slots < 1 or any(length < 1 for length in lengths):
        raise ValueError("slots and lengths must be at least 1")
    if not lengths:
        return []
    end = max(lengths[:slots])
    rest = static_batching(lengths[slots:], slots)
    return [end for _ in lengths[:slots]] + [end + step for step in rest]
