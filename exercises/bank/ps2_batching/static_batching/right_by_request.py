"""Request by request, with the end of the current batch corrected as it grows."""


def static_batching(lengths, slots):
    if slots <= 0:
        raise ValueError("slots")
    finish, begin = [], 0
    for i, length in enumerate(lengths):
        if length <= 0:
            raise ValueError(f"length {length}")
        if i % slots == 0:
            begin = finish[-1] if finish else 0
            finish.append(begin + length)
        else:
            end = max(finish[-1], begin + length)
            first = i - i % slots
            finish[first:] = [end] * (i + 1 - first)
    return finish
