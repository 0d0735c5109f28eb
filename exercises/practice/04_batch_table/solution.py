import sys

lines = [*sys.stdin.read().splitlines(), "", ""]
weight_bytes, kv_bytes_per_token, context, bandwidth = map(float, lines[0].split())
batches = [int(token) for token in lines[1].split()]
if not (weight_bytes > 0 and bandwidth > 0 and kv_bytes_per_token >= 0 and context >= 0):
    raise ValueError(f"line 1 holds a number that is too small: {lines[0]!r}")
if not batches or min(batches) < 1:
    raise ValueError(f"line 2 must hold positive integers: {lines[1]!r}")

for batch in batches:
    seconds = (weight_bytes + batch * context * kv_bytes_per_token) / bandwidth
    print(f"batch {batch}: {1000 * seconds:.3f} ms, {batch / seconds:.1f} tokens/s, {1 / seconds:.1f} each")
