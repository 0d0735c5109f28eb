"""First all rounds are read, then the report is written."""


def speculative_report(text):
    rounds = []
    for i, row in enumerate(text.splitlines()):
        if row.strip() == "":
            continue
        try:
            rounds.append(accept_greedy(*parse_round(row)))
        except ValueError as problem:
            raise ValueError(f"malformed round in line {i + 1} ({problem})") from problem
    if len(rounds) == 0:
        raise ValueError("empty")
    n = sum(map(len, rounds))
    report = ""
    for i, tokens in enumerate(rounds):
        report += "round %d: +%d %s\n" % (i + 1, len(tokens), " ".join(tokens))  # noqa: UP031
    return report + "%d tokens in %d target passes (%.2f per pass)" % (n, len(rounds), n / len(rounds))  # noqa: UP031
