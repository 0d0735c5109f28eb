import sys

first, *lines = sys.stdin.read().splitlines()
longest_ttft, longest_tpot = map(int, first.split())

for line in lines:
    if not line.strip():
        continue
    arrival, *tokens = map(int, line.split())
    # Did this request keep the promise?
    print(f"? ms, ? ms after {arrival}")
# How many per second were answered, and how many kept the promise?
print("? answered per second, goodput ?")
