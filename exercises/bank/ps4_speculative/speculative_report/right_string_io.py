"""Written into a StringIO; the summary in format()."""

import io


def speculative_report(text):
    out, number, count, total = io.StringIO(), 0, 0, 0
    for line in io.StringIO(text):
        number += 1
        if line.isspace():
            continue
        try:
            draft, target = parse_round(line)
        except ValueError:
            raise ValueError("line {} is malformed".format(number)) from None  # noqa: UP032
        tokens = accept_greedy(draft, target)
        count, total = count + 1, total + len(tokens)
        print(f"round {count}: +{len(tokens)}", *tokens, file=out)
    if count == 0:
        raise ValueError("no round at all")
    out.write(f"{total} tokens in {count} target passes ({format(total / count, '.2f')} per pass)")
    return out.getvalue()
