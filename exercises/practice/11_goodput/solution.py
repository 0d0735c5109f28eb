import sys

first, *lines = sys.stdin.read().splitlines() or [""]
longest_ttft, longest_tpot = map(int, first.split())  # ValueError unless there are two
requests = [[int(word) for word in line.split()] for line in lines if line.strip()]
if min(longest_ttft, longest_tpot) < 1:
    raise ValueError("line 1 must hold two positive integers")
if any(times != sorted(times) for times in requests):
    raise ValueError("a token comes before the one before it, or before the arrival")
if not any(len(times) > 1 for times in requests):
    raise ValueError("no request got a token")

seconds = (max(max(times[1:], default=0) for times in requests) - min(times[0] for times in requests)) / 1000
if seconds == 0:
    raise ValueError("no time passes from the first arrival to the last token")

answered = kept = 0
for arrival, *tokens in requests:
    if not tokens:
        print("-, -: broken")
        continue
    ttft = tokens[0] - arrival
    tpot = (tokens[-1] - tokens[0]) / (len(tokens) - 1) if len(tokens) > 1 else None
    good = ttft <= longest_ttft and (tpot is None or tpot <= longest_tpot)
    answered, kept = answered + 1, kept + good
    print(f"{ttft} ms, {'-' if tpot is None else f'{tpot:.1f} ms'}: {'kept' if good else 'broken'}")
print(f"{answered / seconds:.2f} answered per second, goodput {kept / seconds:.2f}")
