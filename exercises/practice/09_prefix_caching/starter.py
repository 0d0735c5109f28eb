import sys

first, *lines = sys.stdin.read().splitlines()
block_size = int(first)
prompts = [line.split() for line in lines if line.strip()]

known = set()  # what is in the cache
for number, prompt in enumerate(prompts, start=1):
    # How many tokens does the cache hold of this prompt, from its beginning on?
    print(f"prompt {number}: ? cached, {len(prompt)} in all")
    # Then add the prompt's own full blocks.
print("? % cached")
