"""An inner generator of rounds."""


def speculative_report(text):
    def rounds():
        for number, line in enumerate(text.replace("\r\n", "\n").split("\n"), 1):
            if line.strip():
                try:
                    yield accept_greedy(*parse_round(line))
                except ValueError as error:
                    raise ValueError(f"line {number}: {error}") from error

    every = list(rounds())
    if not every:
        raise ValueError("line 1: there is no round")
    lines = [" ".join([f"round {i}:", f"+{len(tokens)}", *tokens]) for i, tokens in enumerate(every, 1)]
    total = sum(len(tokens) for tokens in every)
    return "\n".join([*lines, f"{total} tokens in {len(every)} target passes ({total / len(every):.2f} per pass)"])
