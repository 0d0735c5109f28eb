"""The sections of the GPU check by name. Each builds what it measures, because each runs in its own process."""

from __future__ import annotations

import time
from functools import partial

import torch

from reference_impl.benchmarks.gpu import card, check, correct, end_to_end, quantized, speculative
from reference_impl.benchmarks.harness.result import Save, Section
from reference_impl.bounds.config import ModelConfig
from reference_impl.model.llama import Llama

CLOCK = time.perf_counter


def measure_section(name: str, save: Save) -> Section:
    """Measures the section of this name on the GPU and returns it. `save` gets the rows so far after each new one."""
    if name in ("int8", "int4"):
        return _quantized(int(name[3:]), save)
    return {
        "card": lambda: card.describe(CLOCK),
        "correctness": lambda: correct.correctness(save=save),
        "decode": lambda: check.decode(_subject(), _ceilings(), _sheet(), save=save),
        "engine": lambda: _end_to_end(save),
        "answers": lambda: correct.answers(save=save),
        "speculative": lambda: _speculative(save),
        "tests": correct.tests,
        "prefill": lambda: check.prefill(_subject(), _ceilings(), save=save),
    }[name]()


def _quantized(bits: int, save: Save) -> Section:
    seconds = lambda model, batch: check.step_seconds(check.Subject(model), batch, card.CONTEXT)[0]
    make = partial(_random_model, _config())
    return quantized.quantized(bits, make, seconds, _ceilings().copy_bandwidth, card.CONTEXT, save=save)


def _end_to_end(save: Save) -> Section:
    subject = _subject()
    replayed = lambda batch, context: check.step_seconds(subject, batch, context)[0]
    return end_to_end.end_to_end(subject.model, replayed, CLOCK, save=save)


def _speculative(save: Save) -> Section:
    if _config().name != speculative.TARGET:
        note = f"Not measured: the card does not hold {speculative.TARGET}, whose vocabulary the draft has."
        return Section("gpu_speculative", "Speculation", {}, notes=[note])
    return speculative.speculative(_subject().model, CLOCK, save=save)


def _config() -> ModelConfig:
    return card.choose_model(torch.cuda.get_device_properties(0).total_memory)


def _random_model(config: ModelConfig) -> Llama:
    """A model of this shape in bfloat16 on the GPU."""
    return Llama(config, torch.bfloat16, "cuda").randomize(torch.Generator("cuda").manual_seed(0))


def _subject() -> check.Subject:
    return check.Subject(_random_model(_config()), CLOCK)


def _ceilings() -> card.Ceilings:
    return card.measure_ceilings(torch.device("cuda"), CLOCK)


def _sheet() -> card.Gpu | None:
    return card.data_sheet(torch.cuda.get_device_properties(0).name)
