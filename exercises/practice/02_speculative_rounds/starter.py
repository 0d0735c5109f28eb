import sys

rounds = 0
for line in sys.stdin:
    if not line.strip():
        continue
    rounds += 1
    # Find the draft's and the target's tokens in `line`, then the tokens that this round adds.
    print(f"round {rounds}: +? ?")

print(f"? tokens in {rounds} target passes (? per pass)")
