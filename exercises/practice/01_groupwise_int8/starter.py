import sys

lines = sys.stdin.read().splitlines()
weights = [float(token) for token in lines[0].replace(",", " ").split()]
group_size = int(lines[1])

# Cut `weights` into groups of `group_size`, quantize each, and print one line for it.
print("group 1: scale ? q ?")

# Then the mean error over all weights.
print(f"mean error: ? over {len(weights)} weights")
