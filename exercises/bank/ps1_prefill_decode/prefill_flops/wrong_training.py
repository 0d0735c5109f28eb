"""The cost of training (6 per parameter) taken for that of the forward pass

Hint: The factor 6 holds for training, where a backward pass costs twice the forward one. Here nothing is
trained.
Caught by: flops-of-one-token
"""


def prefill_flops(n_params, n_tokens):
    return 6 * n_params * n_tokens
