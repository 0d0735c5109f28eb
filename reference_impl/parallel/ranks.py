"""Runs one function on several ranks of this machine: processes that can send each other tensors.

`run_ranks(4, function, x)` calls `function(x)` in four processes at once, with a `torch.distributed` process group
between them, and returns the four results. It serves lessons, tests, and one machine with several GPUs; several
machines need torchrun. Two rules hold: a failure names the rank that it began on, and nothing hangs, although a rank
would wait forever for one that died.
"""

from __future__ import annotations

import io
import os
import pickle
import random
import socket
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from multiprocessing import connection, get_context
from multiprocessing.process import BaseProcess
from typing import Any

import torch
import torch.distributed as dist

_GRACE = 1.0  # seconds to wait for the reports of ranks that fail because of another, before blaming the first


class RankError(RuntimeError):
    """A rank failed; the message names it, and `__cause__` is its own exception where there is one."""


@dataclass(frozen=True)
class _Report:
    """What a rank sends when it is done: its result or its exception."""

    result: Any = None
    error: BaseException | None = None
    text: str = ""  # the error's traceback
    failed_at: float = 0.0  # on the machine's monotonic clock; 0 if the rank died without a report


def run_ranks(
    n_ranks: int, function: Callable[..., Any], *arguments: Any, backend: str = "gloo", timeout: float = 600.0
) -> list[Any]:
    """[function(*arguments) on rank 0, on rank 1, ...], each in its own process, where `torch.distributed` works.

    `function` must be importable from a module, arguments and results picklable. Backend "gloo" talks over this
    machine's loopback, "nccl" between GPUs (rank r uses GPU r). Raises RankError if a rank raises or dies, or has no
    result after `timeout` seconds. All processes are gone when this returns.
    """
    if n_ranks < 1:
        raise ValueError(f"n_ranks must be at least 1, got {n_ranks}")
    payload = pickle.dumps((function, arguments))
    # A fork server imports torch once (seconds) and each rank is a fork of it; it has started no threads and no GPU.
    context: Any = get_context("forkserver" if sys.platform == "linux" else "spawn")
    if sys.platform == "linux":
        context.set_forkserver_preload([__name__, "reference_impl.parallel.tensor_parallel"])
    n_threads = max(1, torch.get_num_threads() // n_ranks)
    processes: list[BaseProcess] = []
    receivers: list[connection.Connection] = []
    with tempfile.TemporaryDirectory() as folder:
        setup = _Setup(n_ranks, os.path.join(folder, "store"), backend, timeout, n_threads, dict(os.environ))
        try:
            for rank in range(n_ranks):
                receiver, sender = context.Pipe(duplex=False)
                process = context.Process(target=_run, args=(sender, payload, rank, setup), daemon=True)
                process.start()
                sender.close()
                processes.append(process)
                receivers.append(receiver)
            results = _collect(processes, receivers, timeout)
            for process in processes:
                process.join(_GRACE)
            return results
        finally:
            for process in processes:
                process.kill()
                process.join()
            for receiver in receivers:
                receiver.close()


def run_command(n_ranks: int | None, function: Callable[..., None], device: torch.device, *arguments: Any) -> None:
    """Runs a command on several ranks: function(its device, *arguments) on each. Only rank 0 writes to standard output.

    Starts `n_ranks` on this machine; None if torchrun has started this process as a rank. Raises a rank's ValueError as
    it is.
    """
    backend = "nccl" if device.type == "cuda" else "gloo"
    if dist.is_torchelastic_launched():
        if n_ranks is not None:
            raise ValueError(f"--ranks {n_ranks}: torchrun has started the ranks already")
        local_rank = int(os.environ["LOCAL_RANK"])
        if backend == "nccl":
            torch.cuda.set_device(local_rank)
        dist.init_process_group(backend)  # torchrun names each rank in the environment
        try:
            _run_command(function, device.type, local_rank, *arguments)
        finally:
            dist.destroy_process_group()
        return
    assert n_ranks is not None
    if backend == "nccl" and n_ranks > torch.cuda.device_count():
        raise ValueError(f"--ranks {n_ranks}: this machine has {torch.cuda.device_count()} GPUs")
    try:
        run_ranks(n_ranks, _run_command, function, device.type, None, *arguments, backend=backend, timeout=86_400)
    except RankError as error:
        if isinstance(error.__cause__, ValueError | BrokenPipeError):
            raise error.__cause__ from None
        if isinstance(error.__cause__, ChildProcessError):
            raise ChildProcessError(str(error)) from None
        raise


def same_seed(seed: int | None) -> int:
    """A seed that all ranks agree on: rank 0's, or one that rank 0 draws. Ranks must draw the same tokens."""
    agreed = [random.SystemRandom().getrandbits(63) if seed is None else seed]
    dist.broadcast_object_list(agreed, src=0)
    return agreed[0]


def _run_command(function: Callable[..., None], device: str, gpu: int | None, *arguments: Any) -> None:
    if dist.get_rank() != 0:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 (for the rest of this process)
    elif isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")
    own = torch.device(device, dist.get_rank() if gpu is None else gpu) if device == "cuda" else torch.device(device)
    function(own, *arguments)
    sys.stdout.flush()


@dataclass(frozen=True)
class _Setup:
    n_ranks: int
    store: str  # a file through which the ranks find each other; a port could be in use
    backend: str
    timeout: float
    n_threads: int  # for each rank, so that all together use the cores once
    environment: dict[str, str]


def _run(sender: connection.Connection, payload: bytes, rank: int, setup: _Setup) -> None:
    """The life of one rank."""
    try:
        os.environ.update(setup.environment)  # the fork server has an older environment
        for variable in ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"):
            os.environ.setdefault(variable, _loopback())
        torch.set_num_threads(setup.n_threads)
        if setup.backend == "nccl":
            torch.cuda.set_device(rank)
        dist.init_process_group(
            setup.backend,
            init_method=f"file://{setup.store}",
            rank=rank,
            world_size=setup.n_ranks,
            timeout=timedelta(seconds=setup.timeout),
        )
        function, arguments = pickle.loads(payload)
        data = pickle.dumps(_Report(function(*arguments)))
    except BaseException as error:
        data = _failure(error)
        sender.send_bytes(data)
        return  # without a barrier: the others may be stuck, and the parent ends them
    sender.send_bytes(data)
    dist.barrier()  # no rank leaves while another still waits for it
    dist.destroy_process_group()


def _failure(error: BaseException) -> bytes:
    now, text = time.monotonic(), traceback.format_exc()
    try:
        data = pickle.dumps(_Report(error=error, text=text, failed_at=now))
        pickle.loads(data)  # some exceptions can be pickled but not unpickled
        return data
    except Exception:
        substitute = RuntimeError(f"{type(error).__name__}: {error}")
        return pickle.dumps(_Report(error=substitute, text=text, failed_at=now))


def _collect(processes: list[BaseProcess], receivers: list[connection.Connection], timeout: float) -> list[Any]:
    """The results of all ranks. RankError as soon as one of them can no longer come."""
    waiting = {receiver: rank for rank, receiver in enumerate(receivers)}
    reports: dict[int, _Report] = {}
    failed: dict[int, _Report] = {}
    deadline = time.monotonic() + timeout
    while waiting:
        ready = connection.wait(list(waiting), max(0.0, deadline - time.monotonic()))
        if not ready:
            break
        for receiver in ready:
            assert isinstance(receiver, connection.Connection)
            rank = waiting.pop(receiver)
            try:
                reports[rank] = pickle.loads(receiver.recv_bytes())
            except EOFError:
                reports[rank] = _Report(error=ChildProcessError("died"))
            if reports[rank].error is not None:
                if not failed:
                    deadline = min(deadline, time.monotonic() + _GRACE)
                failed[rank] = reports[rank]
    if failed:
        raise _blame(failed, processes)
    if waiting:
        late = ", ".join(str(rank) for rank in sorted(waiting.values()))
        raise RankError(f"no result from rank {late} of {len(processes)} within {timeout:g} seconds")
    return [reports[rank].result for rank in range(len(processes))]


def _blame(failed: dict[int, _Report], processes: list[BaseProcess]) -> RankError:
    """The error of the rank that failed first. Others mostly failed because they no longer heard from it."""
    rank = min(failed, key=lambda r: failed[r].failed_at)
    first, others = failed[rank], sorted(set(failed) - {rank})
    if first.failed_at == 0.0:
        processes[rank].join(_GRACE)
        problem = f"died without a word (exit status {processes[rank].exitcode})"
    else:
        problem = f"failed: {type(first.error).__name__}: {first.error}"
    after = f" (after it, so did rank {', '.join(map(str, others))})" if others else ""
    error = RankError(f"rank {rank} of {len(processes)} {problem}{after}")
    error.__cause__ = first.error
    if first.text:
        error.add_note(f"On rank {rank}:\n{first.text}")
    return error


def _loopback() -> str:
    """The name of this machine's loopback interface."""
    return next((name for _, name in socket.if_nameindex() if name.startswith("lo")), "lo")
