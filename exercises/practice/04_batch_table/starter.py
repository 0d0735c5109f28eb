import sys

lines = sys.stdin.read().splitlines()
weight_bytes, kv_bytes_per_token, context, bandwidth = map(float, lines[0].split())
for batch in map(int, lines[1].split()):
    # How many bytes does a step of this batch read, and how long does that take?
    print(f"batch {batch}: ? ms, ? tokens/s, ? each")
