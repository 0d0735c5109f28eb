import sys

first, *commands = sys.stdin.read().splitlines()
n_blocks, block_size = map(int, first.split())
free = list(range(n_blocks))
tables = {}  # name of a sequence -> its block numbers
n_tokens = {}  # name of a sequence -> its number of tokens

for line in commands:
    if not line.strip():
        continue
    command, name, *rest = line.split()
    # Carry out the command, then print the sequence's table.
    print(f"{name}: ?, {len(free)} free")
