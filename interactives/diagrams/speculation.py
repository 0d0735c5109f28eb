"""Diagrams of speculative decoding: one round, what a pass brings, and the exact rule as areas."""

from interactives.diagrams.drawing import Diagram, Drawing
from reference_impl.bounds.arithmetic import expected_tokens
from reference_impl.decoding.greedy import accept_greedy
from reference_impl.decoding.rejection import acceptance, residual


def speculative_round() -> Diagram:
    """A round of the greedy rule: four guesses, one pass of the target, and what comes out."""
    draft, target = ["the", "sheep", "sleep", "all"], ["the", "sheep", "may", "safely", "graze"]
    brought = accept_greedy(draft, target)
    agreed = len(brought) - 1
    drawing = Drawing("speculative-round", height=252)
    left, wide, step = 12.0, 64.0, 68.0
    drawing.text(left, 18, "1. The draft guesses, one small pass each", bold=True)
    drawing.text(left, 84, "2. The target checks all in one pass", bold=True)
    drawing.text(left, 172, f"3. The round brings {len(brought)} tokens", bold=True)
    for i, word in enumerate(target):
        x = left + step * i
        if i < len(draft):
            drawing.label(x, 28, wide, 28, draft[i], "draft")
        drawing.label(x, 94, wide, 28, word, "arithmetic" if i <= agreed else "soft")
        verdict = "agrees" if i < agreed else "corrects" if i == agreed else "dropped"
        drawing.text(x + wide / 2, 140, verdict, "middle", colour="ink" if i <= agreed else "soft")
        if i < len(brought):
            drawing.label(x, 184, wide, 28, brought[i], "arithmetic", bold=i == agreed)
    drawing.text(left, 238, f"At least 1 token, at most {len(draft) + 1}", colour="soft")
    return drawing.finish(
        "One round of speculative decoding",
        f"The draft guesses {' '.join(draft)}. In one pass the target says {' '.join(target)}. The first {agreed} "
        f"agree, {target[agreed]} corrects {draft[agreed]}, and what follows is dropped. The round brings "
        f"{len(brought)} tokens: {' '.join(brought)}.",
        see="The target's row is one pass: it says at each place what it would have written. Up to the first "
        "difference its words are kept.",
        source="The course's accept_greedy on these words.",
    )


def tokens_per_pass() -> Diagram:
    """What each place of a round adds, as likely as it is, for two acceptance rates."""
    k = 4
    drawing = Drawing("tokens-per-pass", height=330)
    told = []
    for row, alpha in enumerate((0.9, 0.7)):
        base = 148 + 158 * row
        total = expected_tokens(alpha, k)
        drawing.text(12, base - 126, f"acceptance {alpha}: {total:.2f} tokens a pass", bold=True)
        for i in range(k + 1):
            x, likely = 12 + 68 * i, alpha**i
            drawing.box(x, base - 96, 60, 96, dashed=True)
            drawing.bar(x, base - 96 * likely, 60, 96 * likely, "arithmetic" if i == 0 else "draft")
            drawing.text(x + 30, base - 96 - 6, f"{likely:.2f}", "middle")
        told.append(f"at acceptance {alpha} the bars are {', '.join(f'{alpha**i:.2f}' for i in range(k + 1))} high")
    drawing.text(12, 324, "token 1", colour="soft")
    drawing.text(348, 324, "token 5", "end", colour="soft")
    return drawing.finish(
        "Tokens that a pass brings",
        f"Five bars for the five tokens of a round with {k} guesses: "
        + "; ".join(told)
        + ". The sum of the bars is the "
        "number of tokens per pass.",
        see="The first token is certain. Token 2 needs one accepted guess, token 5 needs four in a row. Add the bars "
        "up to get the tokens of a pass.",
        source=f"The formula of this section, for k = {k}.",
    )


def acceptance_areas() -> Diagram:
    """The exact rule: the smaller of p and q is accepted, and the rest of p is drawn after a rejection."""
    p, q = [0.5, 0.3, 0.2], [0.2, 0.3, 0.5]
    rest = residual(p, q).tolist()
    share = acceptance(p, q)
    drawing = Drawing("acceptance-areas", height=342)
    base, tall = 192.0, 300.0
    for i, (token, mine, guess) in enumerate(zip("abc", p, q, strict=True)):
        x, common = 24 + 112 * i, min(mine, guess)
        for at, name, whole in ((x, "p", mine), (x + 46, "q", guess)):
            drawing.bar(at, base - tall * common, 40, tall * common, "draft")
            if whole > common:
                top = base - tall * whole
                drawing.bar(at, top, 40, tall * (whole - common), "arithmetic" if name == "p" else "waste")
            drawing.text(at + 20, base - tall * whole - 7, f"{whole}", "middle")
            drawing.text(at + 20, base + 17, name, "middle", colour="soft")
        drawing.text(x + 43, base + 36, f"token {token}", "middle", bold=True)
    for y, colour, words in (
        (252, "draft", f"min(p, q): accepted, {share:.0%} of all guesses"),
        (280, "waste", f"the rest of q: rejected, {1 - share:.0%}"),
        (308, "arithmetic", f"the rest of p: drawn instead, {1 - share:.0%}"),
    ):
        drawing.bar(24, y, 16, 16, colour)  # type: ignore[arg-type]
        drawing.text(50, y + 13, words)
    return drawing.finish(
        "The exact rule as areas",
        f"Bars for tokens a, b and c. Target p: 0.5, 0.3, 0.2. Draft q: 0.2, 0.3, 0.5. What both share adds up to "
        f"{share:.1f} and is accepted. The draft's excess of {q[2] - p[2]:.1f} at c is rejected, and the target's rest "
        f"of {p[0] - q[0]:.1f} at a is drawn instead.",
        see="The hatched part of q is as large as the missing part of p. Each rejected guess is replaced by a draw "
        f"from that missing part, here always token {'abc'[rest.index(max(rest))]}.",
        source="Computed by the course's acceptance and residual for these p and q.",
    )
