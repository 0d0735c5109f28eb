"""Word by word over the line, with room made around the labels."""


def parse_round(line):
    left, right = line.split("|")  # raises ValueError unless there are exactly two parts
    parts = []
    for label, part in (("draft:", left), ("target:", right)):
        begin = part.find(label)
        if begin < 0 or part[:begin].strip():
            raise ValueError(f"no {label} at the start of {part!r}")
        parts.append([word for word in part[begin + len(label) :].split() if word])
    if len(parts[1]) != 1 + len(parts[0]):
        raise ValueError("one more token is needed in the target")
    return parts[0], parts[1]
