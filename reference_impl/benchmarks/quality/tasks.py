"""Four small tasks with known answers, made from a seed, in which damage by quantization can show before perplexity.

Text is mostly easy tokens, which a damaged model still gets right. A sum, a string to copy, a line of code or a number
from 500 tokens earlier leave no room for "about right". Answers are scored token by token, each after the right tokens
before it, so one pass suffices and an early slip does not count for everything that follows.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from reference_impl.benchmarks.quality.evaluate import Item
from reference_impl.checkpoints.tokenizer import Tokenizer
from reference_impl.training.text import Document

_WORDS = (  # noqa: SIM905 (a list of 32 strings is no easier to read)
    "apple river stone window garden paper silver yellow market winter summer bridge candle doctor engine forest "
    "guitar hammer island jacket kitchen ladder mirror needle orange pencil quarter rabbit saddle table uncle valley"
).split()

Part = tuple[str, bool]  # a piece of text, and whether it is an answer


def tasks(
    tokenizer: Tokenizer, texts: Sequence[Document], seed: int = 0, max_context: int = 8192
) -> dict[str, list[Item]]:
    """Items by task: arithmetic, copying, code, long context. texts: documents, whose code is to be continued.

    The long context has some 580 tokens, or as many as a model of `max_context` can take. ValueError if no document has
    20,000 characters of code, which it needs.
    """
    numbers = random.Random(f"{seed} tasks")
    code = [d.text for d in texts if d.kind == "code" and len(d.text) >= 20_000]
    if not code:
        raise ValueError("the long context needs a document of 20,000 characters of code")
    made = {
        "arithmetic": [_arithmetic(numbers) for _ in range(8)],
        "copying": [_copying(numbers) for _ in range(12)],
        "code": [_code(code, numbers) for _ in range(12)],
        "long context": [_long(code, numbers, tokenizer, max_context) for _ in range(3)],
    }
    return {name: [_item(tokenizer, parts) for parts in items] for name, items in made.items()}


def _item(tokenizer: Tokenizer, parts: list[Part]) -> Item:
    tokens: list[int] = []
    scored: list[int] = []
    for text, is_answer in parts:
        piece = tokenizer.encode(text, add_special_tokens=False)
        if is_answer:
            scored += range(len(tokens), len(tokens) + len(piece))
        tokens += piece
    return Item(tokens, scored)


def _arithmetic(numbers: random.Random) -> list[Part]:
    """Twelve sums like "7 + 5 = 12"; the first four show what is wanted."""
    parts: list[Part] = []
    for i in range(12):
        a, b = numbers.randint(2, 9), numbers.randint(2, 9)
        parts += [(f"{a} + {b} = ", False), (str(a + b), i >= 4), ("\n", False)]
    return parts


def _copying(numbers: random.Random) -> list[Part]:
    """Five words and a number, given once, to be repeated."""
    words = " ".join(numbers.sample(_WORDS, 5)) + f" {numbers.randint(1000, 9999)}"
    return [(f"copy: {words}\ncopy:", False), (f" {words}", True)]


def _code(texts: Sequence[str], numbers: random.Random) -> list[Part]:
    """Eight lines of code, and the ninth to write."""
    while True:
        lines = numbers.choice(texts).splitlines()
        start = numbers.randrange(len(lines) - 9)
        answer = lines[start + 8]
        if 20 <= len(answer) <= 80 and not answer.lstrip().startswith("#"):
            return [("\n".join(lines[start : start + 8]) + "\n", False), (answer, True)]


def _long(texts: Sequence[str], numbers: random.Random, tokenizer: Tokenizer, max_context: int) -> list[Part]:
    """Six codes, then some 400 tokens of other text, then the codes asked for in another order."""
    codes = {room: numbers.randint(1000, 9999) for room in numbers.sample(range(10, 100), 6)}
    told: list[Part] = [(f"The code of room {room} is {code}.\n", False) for room, code in codes.items()]
    asked: list[Part] = []
    for room in numbers.sample(list(codes), 6):
        asked += [(f"The code of room {room} is ", False), (str(codes[room]), True), (".\n", False)]
    room_left = max_context - 10 - len(_item(tokenizer, told + asked).tokens)
    text = numbers.choice(texts)
    start = numbers.randrange(len(text) - 4_000)
    filler = tokenizer.encode(text[start : start + 4_000], add_special_tokens=False)[: max(min(400, room_left), 0)]
    return [*told, (tokenizer.decode(filler) + "\n", False), *asked]
