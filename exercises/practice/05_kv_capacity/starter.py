import sys

lines = sys.stdin.read().splitlines()
layers, query_heads, kv_heads, head_size, bytes_of_a_number = map(int, lines[0].split())
memory, weights = map(int, lines[1].split())

# How many bytes does one token keep?
print("? bytes a token")
for length in map(int, lines[2].split()):
    # How many whole sequences of this length fit beside the weights?
    print(f"{length} tokens: ? sequences")
