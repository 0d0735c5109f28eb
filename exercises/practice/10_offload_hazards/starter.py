import sys

first, *commands = sys.stdin.read().splitlines()
free_gpu, free_cpu = map(int, first.split())
requests = {}  # name -> [place, number of blocks]

for line in commands:
    if not line.strip():
        continue
    command, *rest = line.split()
    # Carry the command out, or refuse it; then print where the request is.
    print(f"{line}: ?, {free_gpu} and {free_cpu} are free at first")
