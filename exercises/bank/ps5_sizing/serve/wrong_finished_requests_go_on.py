"""A request keeps its slot and is passed on until the whole batch is done

Hint: Once an answer has ended, its text has no place in a pass any more. Do yours leave?
Caught by: serve-fills-the-slots
"""


def serve(model, prompts, slots, most):
    answers = []
    for start in range(0, len(prompts), slots):
        texts = [list(prompt) for prompt in prompts[start : start + slots]]
        group = [[] for _ in texts]
        while not all(END in answer or len(answer) == most for answer in group):
            for text, answer, token in zip(texts, group, model(texts), strict=True):
                text.append(token)
                if END not in answer and len(answer) < most:
                    answer.append(token)
        answers += group
    return answers
