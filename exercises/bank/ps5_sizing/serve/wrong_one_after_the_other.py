"""One request at a time: the naive loop

Hint: How many texts does each of your passes hold? There are as many slots as the argument says.
Caught by: serve-fills-the-slots
"""


def serve(model, prompts, slots, most):
    return naive_loop(model, prompts, most)
