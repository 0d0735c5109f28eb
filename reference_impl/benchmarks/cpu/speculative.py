"""Speculation by look-up: greedy answers to code, with drafts and without, beside transformers' own prompt look-up.

Prediction: tokens a pass, divided by what a pass with k drafts costs (`passes`); the look-up itself costs nothing. So
speculation pays if checking a few tokens costs little more than writing one, which depends on the matrix kernel.
"""

from __future__ import annotations

from collections.abc import Sequence

from reference_impl.benchmarks.cpu.peers import MissingPeerError, Transformers, start
from reference_impl.benchmarks.cpu.setup import Bench
from reference_impl.benchmarks.harness.result import Section, Target
from reference_impl.benchmarks.harness.timing import Run, Samples
from reference_impl.benchmarks.speculation.costs import Decoded, decode
from reference_impl.benchmarks.speculation.measure import Answer
from reference_impl.benchmarks.speculation.prompts import prompts
from reference_impl.common.clock import Clock
from reference_impl.model.llama import Llama
from reference_impl.speculative.ngram import NgramDraft
from reference_impl.speculative.speculator import DraftLength, Speculator

N_PROMPTS = 2
PROMPT, ANSWER = 128, 96  # tokens
WARM_UP = 8  # tokens
PRECISIONS = ("fp32", "int8")
LENGTHS = (4, 6)  # drafted tokens a round
FASTER = 1.4  # times plain decoding of the same int8 model
PEER = "transformers"


def run(bench: Bench) -> Section:
    section = Section(
        "speculative",
        f"Greedy answers of {ANSWER} tokens to {N_PROMPTS} prompts of code, batch 1, drafts by look-up",
        {
            "engine": "engine",
            "dtype": "weights",
            "drafts": "drafts a round",
            "milliseconds": "ms a token",
            "tokens_per_pass": "tokens a pass",
            "faster": "× plain",
            "vs_transformers": "× transformers' look-up",
            "spread": "spread",
        },
    )
    bench.say("speculative decoding")
    found: dict[str, list[Decoded]] = {}
    asked = code_prompts(bench)
    n_tokens = ANSWER // 4 if bench.quick else ANSWER
    runs: dict[str, Run] = {}
    for dtype in PRECISIONS:
        for k in (0, *LENGTHS):
            runs[_name("this engine", dtype, k)] = _ours(bench, dtype, k, asked, n_tokens, found)
            _ours(bench, dtype, k, asked[:1], WARM_UP, {})()
    if PEER in bench.peers:
        try:
            peer = start(PEER, "fp32", bench)
            assert isinstance(peer, Transformers)
            for k in (0, LENGTHS[-1]):
                runs[_name(PEER, "fp32", k)] = _theirs(peer, k, asked, n_tokens)
                peer.answer_seconds(asked[0], WARM_UP, k)
        except MissingPeerError as error:
            section.notes.append(f"Missing: {PEER} fp32: {error}.")
    samples = bench.compare(runs, warm_up=False)  # a whole round would take a minute
    section.notes += [f"Missing: {name}: {reason}." for name, reason in samples.failed.items()]
    _rows(section, samples, found, n_tokens)
    _targets(section, samples)
    return section


def code_prompts(bench: Bench) -> list[list[int]]:
    """The first shipped prompts of code, in the model's tokens."""
    return [bench.encode(text)[-PROMPT:] for text in prompts("code")[:N_PROMPTS]]


def _ours(
    bench: Bench, dtype: str, k: int, asked: Sequence[list[int]], n_tokens: int, found: dict[str, list[Decoded]]
) -> Run:
    model = bench.model(dtype)

    def once() -> float:
        done = [_decode(model, prompt, k, n_tokens, bench.clock) for prompt in asked]
        found[_name("this engine", dtype, k)] = done
        return sum(one.seconds for one in done)

    return once


def _decode(model: Llama, prompt: list[int], k: int, n_tokens: int, clock: Clock) -> Decoded:
    """What the answer says does not matter to `decode`, only how long it is."""
    answer = Answer(tuple(prompt), (0,) * n_tokens)
    return decode(model, [answer], Speculator(NgramDraft(), DraftLength(k)) if k else None, clock)


def _theirs(peer: Transformers, k: int, asked: Sequence[list[int]], n_tokens: int) -> Run:
    return lambda: sum(peer.answer_seconds(prompt, n_tokens, k) for prompt in asked)


def _name(engine: str, dtype: str, k: int) -> str:
    return f"{engine} {dtype}, {k} drafts"


def _rows(
    section: Section,
    samples: Samples,
    found: dict[str, list[Decoded]],
    n_tokens: int,
) -> None:
    peer = _name(PEER, "fp32", LENGTHS[-1])
    for engine, dtype in [*(("this engine", dtype) for dtype in PRECISIONS), (PEER, "fp32")]:
        plain = _name(engine, dtype, 0)
        for k in (0, *LENGTHS):
            name = _name(engine, dtype, k)
            if name not in samples:
                continue
            section.rows.append(
                {
                    "engine": engine,
                    "dtype": dtype,
                    "drafts": k,
                    "milliseconds": samples.median(name) / (N_PROMPTS * (n_tokens - 1)) * 1e3,
                    "tokens_per_pass": _tokens_per_pass(found.get(name, [])),
                    "faster": samples.ratio(plain, name) if plain in samples else None,
                    "vs_transformers": samples.ratio(peer, name) if peer in samples else None,
                    "spread": samples.spread(name),
                }
            )


def _tokens_per_pass(done: Sequence[Decoded]) -> float | None:
    stats = [one.stats for one in done if one.stats is not None]
    n_passes = sum(one.n_passes for one in stats)
    return sum(one.n_tokens for one in stats) / n_passes if n_passes else None


def _targets(section: Section, samples: Samples) -> None:
    def best(dtype: str, base: str) -> float | None:
        names = [_name("this engine", dtype, k) for k in LENGTHS]
        return max((samples.ratio(base, name) for name in names if name in samples), default=None)

    dtype = "int8"
    plain = _name("this engine", dtype, 0)
    value = best(dtype, plain) if plain in samples else None
    section.targets.append(Target("int8: the best look-up, × plain decoding of the same model", value, FASTER))
    peer = _name(PEER, "fp32", LENGTHS[-1])
    value = best("fp32", peer) if peer in samples else None
    section.targets.append(Target("fp32: the best look-up, × transformers' prompt look-up", value, 1.0))
