import sys


def move(name, size, place, side):
    """A request's next place, and the blocks that it takes on a side; False if too few are free there."""
    if free[side] < size:
        return False
    requests[name] = place, size
    free[side] -= size
    return True


first, *commands = sys.stdin.read().splitlines() or [""]
gpu, cpu = map(int, first.split())  # ValueError unless there are two
if min(gpu, cpu) < 1:
    raise ValueError("line 1 must hold two positive integers")
free, requests = {"gpu": gpu, "cpu": cpu}, {}  # requests: name -> (place, blocks)
for words in map(str.split, filter(str.strip, commands)):
    name = words[1] if len(words) > 1 else ""
    place, size = requests.get(name, ("", 0))
    match words:
        case ["done"]:
            for one, (place, size) in requests.items():
                if place in ("leaving", "arriving"):
                    requests[one] = "on cpu" if place == "leaving" else "on gpu", size
                    free["gpu" if place == "leaving" else "cpu"] += size
        case ["new", _, n] if not place and int(n) > 0:
            good = move(name, int(n), "on gpu", "gpu")
        case ["out", _] if place:
            good = place == "on gpu" and move(name, size, "leaving", "cpu")
        case ["in", _] if place:
            good = place == "on cpu" and move(name, size, "arriving", "gpu")
        case ["use", _] if place:
            good = place == "on gpu"
        case _:
            raise ValueError(f"no such command, or not for {name!r}: {' '.join(words)}")
    said = f"{name}: {requests[name][0] if good else 'refused'}" if name else "done"
    print(f"{said}, {free['gpu']} and {free['cpu']} free")
