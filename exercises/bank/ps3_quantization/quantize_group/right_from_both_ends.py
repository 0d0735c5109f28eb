"""The largest absolute value from the largest and the smallest weight; zero may come with a minus sign"""


def quantize_group(weights):
    scale = max(max(weights), -min(weights)) / 127
    return scale, [round(w / scale) if scale else 0 for w in weights]
