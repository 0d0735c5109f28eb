"""Only the last token counted, since only its output is used

Hint: The first new token needs keys and values of the whole prompt, so all its tokens have to pass the model.
Caught by: flops-of-a-prompt
"""


def prefill_flops(n_params, n_tokens):
    return 2 * n_params
