"""All of prefill taken to grow with the square of the prompt

Hint: Only the attention scores grow with the square. Each token passes the weights once, so what do two
tokens cost?
Caught by: flops-of-a-prompt
"""


def prefill_flops(n_params, n_tokens):
    return 2 * n_params * n_tokens**2
