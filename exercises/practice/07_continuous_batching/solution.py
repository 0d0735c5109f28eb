import sys


def static(lengths, slots):
    finish, step = [], 0
    for start in range(0, len(lengths), slots):
        batch = lengths[start : start + slots]
        step += max(batch)
        finish += [step] * len(batch)
    return finish


def continuous(lengths, slots):
    busy_until, finish = [0] * slots, []
    for length in lengths:
        slot = busy_until.index(min(busy_until))  # the one that is free first
        busy_until[slot] += length
        finish.append(busy_until[slot])
    return finish


lines = [*sys.stdin.read().splitlines(), "", ""]
slots, lengths = int(lines[0]), [int(token) for token in lines[1].split()]
if slots < 1 or not lengths or min(lengths) < 1:
    raise ValueError("slots and lengths must be positive integers")
for rule in (static, continuous):
    finish = rule(lengths, slots)
    steps, mean = max(finish), sum(finish) / len(finish)
    print(f"{rule.__name__}:", *finish)
    print(f"{steps} steps, mean {mean:.2f}, {100 * sum(lengths) / (slots * steps):.1f} % used")
