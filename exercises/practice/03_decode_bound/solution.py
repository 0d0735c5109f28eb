import math
import sys

for line in sys.stdin:
    if not line.strip():
        continue
    name, *numbers = line.split()
    billions, bits, bandwidth = map(float, numbers)  # ValueError unless there are three numbers
    if not all(0 < number < math.inf for number in (billions, bits, bandwidth)):
        raise ValueError(f"the numbers must be finite and above 0: {line!r}")
    gigabytes = billions * bits / 8
    seconds = gigabytes / bandwidth
    print(f"{name}: {gigabytes:.2f} GB, {1000 * seconds:.3f} ms, {1 / seconds:.1f} tokens/s")
