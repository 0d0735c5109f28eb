import sys

for line in sys.stdin:
    if not line.strip():
        continue
    alpha, k, cost = line.split()
    # Turn the three into numbers, then work out E, the speed and the best number of guesses.
    print("? tokens a pass, ? times as fast, best with ?")
