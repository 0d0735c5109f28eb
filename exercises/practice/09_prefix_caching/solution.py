import sys

first, *lines = sys.stdin.read().splitlines() or [""]
(size,) = map(int, first.split())  # ValueError unless there is one
prompts = [line.split() for line in lines if line.strip()]
if size < 1 or not prompts:
    raise ValueError("line 1 must be a positive integer, and there must be a prompt")

known = set()  # beginnings that end with a full block: a block counts with everything before it
n_cached = n_tokens = 0
for number, prompt in enumerate(prompts, start=1):
    cached = 0
    while cached + size < len(prompt) and tuple(prompt[: cached + size]) in known:
        cached += size
    known |= {tuple(prompt[:end]) for end in range(size, len(prompt) + 1, size)}
    print(f"prompt {number}: {cached} cached, {len(prompt) - cached} computed")
    n_cached, n_tokens = n_cached + cached, n_tokens + len(prompt)
print(f"{100 * n_cached / n_tokens:.1f} % cached")
