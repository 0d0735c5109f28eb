import sys

for line in sys.stdin:
    if not line.strip():
        continue
    name, billions, bits, bandwidth = line.split()
    # How many bytes are the weights? How long does the memory need for them?
    print(f"{name}: ? GB, ? ms, ? tokens/s")
