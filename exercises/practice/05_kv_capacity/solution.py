import sys

lines = [*sys.stdin.read().splitlines(), "", "", ""]
shape, sizes, lengths = ([int(token) for token in line.split()] for line in lines[:3])
layers, _, kv_heads, head_size, bytes_of_a_number = shape  # ValueError unless there are five
memory, weights = sizes
if not lengths or min(shape + sizes + lengths) < 1:
    raise ValueError("all numbers must be positive, and there must be a length")
if weights > memory:
    raise ValueError("the weights alone do not fit")

bytes_a_token = 2 * layers * kv_heads * head_size * bytes_of_a_number
print(f"{bytes_a_token} bytes a token")
for length in lengths:
    print(f"{length} tokens: {(memory - weights) // (bytes_a_token * length)} sequences")
