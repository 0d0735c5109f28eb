"""The result printed and not returned

Hint: What a function shows on the screen is not what it gives to its caller.
Caught by: flops-of-one-token, flops-of-a-prompt
"""


def prefill_flops(n_params, n_tokens):
    print(2 * n_params * n_tokens)
