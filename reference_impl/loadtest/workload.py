"""What a load test sends and when: arrival times, prompts, answer lengths and cancels, all decided beforehand.

The plan is a pure function of its settings and a seed, so two servers can be given exactly the same load. Arrivals are
a Poisson process (independent users) or come from a trace: this course's own JSON lines, the Azure LLM inference traces
(Patel et al. 2024, "Splitwise", CSV), or Mooncake's (Qin et al. 2024, JSON lines).
"""

from __future__ import annotations

import csv
import json
import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

# Common words; most are one token in any vocabulary.
_COMMON = (
    "the a of and to in is it you that he was for on are with as his they be at one have this from or had by hot word "
    "but what some we can out other were all there when up use your how said an each she which do their time if will "
    "way about many then them write would like so these her long make thing see him two has look more day could go "
    "come did number sound no most people my over know water than call first who may down side been now find any new"
)
WORDS = _COMMON.split()


@dataclass(frozen=True)
class Planned:
    """One planned request. Times in seconds: `at` after the start, `cancel_after` after it was sent."""

    at: float
    prompt: str
    max_tokens: int
    cancel_after: float | None = None


@dataclass(frozen=True)
class Arrival:
    """One row of a trace. Values that it lacks are drawn."""

    at: float  # seconds after the first row
    prompt: str | None = None
    prompt_words: int | None = None  # tokens of the trace's prompt, taken as words
    max_tokens: int | None = None


@dataclass(frozen=True)
class Range:
    """Whole numbers from `low` to `high`, all equally likely."""

    low: int
    high: int

    def draw(self, numbers: random.Random) -> int:
        return numbers.randint(self.low, self.high)


@dataclass(frozen=True)
class Workload:
    """The settings of a plan. `prompts`: texts to draw from, instead of made-up ones of `prompt_words` words.

    `shared_words`: this many words begin every made-up prompt. `cancel_fraction` of the requests are cancelled, at a
    time drawn from 0 to `cancel_within` seconds after they were sent.
    """

    prompt_words: Range = Range(32, 128)
    shared_words: int = 0
    max_tokens: Range = Range(16, 128)
    prompts: tuple[str, ...] = ()
    cancel_fraction: float = 0.0
    cancel_within: float = 5.0

    def plan(self, arrivals: Sequence[Arrival], seed: int) -> list[Planned]:
        """The same for the same seed. Each setting has random numbers of its own, so changing one leaves the others."""
        texts, lengths, cancels = (random.Random(f"{seed} {matter}") for matter in ("prompts", "lengths", "cancels"))
        shared = _words(random.Random(f"{seed} shared"), self.shared_words)
        planned = []
        for arrival in arrivals:
            prompt = self._prompt(texts, shared, arrival.prompt_words)
            max_tokens = self.max_tokens.draw(lengths)
            given_up = cancels.random() < self.cancel_fraction
            moment = cancels.uniform(0.0, self.cancel_within)
            planned.append(
                Planned(
                    arrival.at,
                    prompt if arrival.prompt is None else arrival.prompt,
                    max_tokens if arrival.max_tokens is None else arrival.max_tokens,
                    moment if given_up else None,
                )
            )
        return planned

    def _prompt(self, numbers: random.Random, shared: list[str], n_words: int | None) -> str:
        if self.prompts and n_words is None:
            return numbers.choice(self.prompts)
        n_words = self.prompt_words.draw(numbers) if n_words is None else n_words
        return " ".join([*shared, *_words(numbers, n_words)])


def _words(numbers: random.Random, n: int) -> list[str]:
    return [numbers.choice(WORDS) for _ in range(n)]


def poisson_arrivals(rate: float, n: int, seed: int) -> list[Arrival]:
    """`n` arrivals at `rate` per second on average, with exponential gaps. At an infinite rate all come at once."""
    if not rate > 0:
        raise ValueError(f"the rate must be above 0 requests a second, got {rate}")
    numbers = random.Random(f"{seed} arrivals")
    at = 0.0
    arrivals = []
    for _ in range(n):
        at += 0.0 if math.isinf(rate) else numbers.expovariate(rate)
        arrivals.append(Arrival(at))
    return arrivals


def read_trace(path: Path, time_scale: float = 1.0) -> list[Arrival]:
    """The rows of a trace, earliest first. `time_scale` 0.5 makes it twice as fast. ValueError names file and line."""
    text = _text(path)
    rows: Iterator[tuple[int, dict[str, Any] | str]]
    rows = _csv_rows(text) if path.suffix == ".csv" else _json_rows(text)
    arrivals: list[Arrival] = []
    for line, row in rows:
        try:
            arrivals.append(_arrival(row))
        except (ValueError, TypeError) as error:
            raise ValueError(f"{path}: line {line}: {error}") from None
    if not arrivals:
        raise ValueError(f"{path}: holds no request")
    first = min(arrival.at for arrival in arrivals)
    moved = [
        Arrival((arrival.at - first) * time_scale, arrival.prompt, arrival.prompt_words, arrival.max_tokens)
        for arrival in arrivals
    ]
    return sorted(moved, key=lambda arrival: arrival.at)


def read_prompts(path: Path) -> tuple[str, ...]:
    """One prompt a line; in a .jsonl file each line is a string or an object with "prompt"."""
    prompts: list[str] = []
    for line, text in enumerate(_text(path).split("\n"), 1):
        if not text.strip():
            continue
        if path.suffix != ".jsonl":
            prompts.append(text.rstrip("\r"))
            continue
        try:
            row = json.loads(text)
        except ValueError as error:
            raise ValueError(f"{path}: line {line}: not JSON ({error})") from None
        prompt = row.get("prompt") if isinstance(row, dict) else row
        if not isinstance(prompt, str) or not prompt:
            raise ValueError(f'{path}: line {line}: expected a string or an object with "prompt"')
        if any("\ud800" <= character <= "\udfff" for character in prompt):
            raise ValueError(f"{path}: line {line}: half a surrogate pair is no text")
        prompts.append(prompt)
    if not prompts:
        raise ValueError(f"{path}: holds no prompt")
    return tuple(prompts)


def _arrival(row: dict[str, Any] | str) -> Arrival:
    row = json.loads(row) if isinstance(row, str) else row
    if not isinstance(row, dict):
        raise ValueError(f"expected an object, got {row!r}")
    if "arrival" in row:  # ours: seconds
        at = float(row["arrival"])
    elif "TIMESTAMP" in row:  # Azure: date and time
        moment = datetime.fromisoformat(row["TIMESTAMP"])
        at = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    elif "timestamp" in row:  # Mooncake: milliseconds
        at = float(row["timestamp"]) / 1000
    else:
        raise ValueError('no "arrival" (seconds), "TIMESTAMP" (Azure) or "timestamp" (Mooncake, milliseconds)')
    if not math.isfinite(at):
        raise ValueError(f"the arrival is {at}")
    prompt = row.get("prompt")
    if prompt is not None and not isinstance(prompt, str):
        raise ValueError(f"the prompt is no string: {prompt!r}")
    n_prompt = _first_count(row, "prompt_tokens", "ContextTokens", "input_length")
    n_answer = _first_count(row, "max_tokens", "GeneratedTokens", "output_length")
    return Arrival(at, prompt, n_prompt, n_answer)


def _first_count(row: dict[str, Any], *names: str) -> int | None:
    for name in names:
        if row.get(name) is not None:
            count = int(row[name])
            if count < 1:
                raise ValueError(f"{name} must be at least 1, got {count}")
            return count
    return None


def _json_rows(text: str) -> Iterator[tuple[int, dict[str, Any] | str]]:
    return ((line, row) for line, row in enumerate(text.split("\n"), 1) if row.strip())


def _csv_rows(text: str) -> Iterator[tuple[int, dict[str, Any] | str]]:
    reader = csv.DictReader(text.splitlines())
    for row in reader:
        yield reader.line_num, row


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError(f"{path}: not UTF-8 text") from None
