"""The first requests are put into all slots, though there may be fewer requests than slots.

Hint: Try one request on three slots. Which index goes too far?
Caught by: continuous-more-slots-than-requests
"""


def continuous_batching(lengths, slots):
    if slots < 1 or any(length < 1 for length in lengths):
        raise ValueError("slots and lengths must be at least 1")
    busy_until = [lengths[slot] for slot in range(slots)]
    finish = list(busy_until)
    for length in lengths[slots:]:
        slot = busy_until.index(min(busy_until))
        busy_until[slot] += length
        finish.append(busy_until[slot])
    return finish
