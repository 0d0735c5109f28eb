"""The private kernel of a course: a kernelspec that names the sandbox, put where Jupyter finds it.

Two lines in `nbgrader_config.py` switch it on for autograde, formgrader and validate alike:

    from autograder import kernelspec
    c.Execute.kernel_name = kernelspec.ensure(root)
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

PROVISIONER = "sandbox-provisioner"  # its entry point in pyproject.toml

KERNEL = "sandboxed-python"
_FOLDER = ".jupyter"  # in the course's folder


def ensure(
    course: Path,
    limits: Mapping[str, int] | None = None,
    allow: Mapping[str, Sequence[str]] | None = None,
) -> str:
    """Write the kernelspec below the course's folder, put that on JUPYTER_PATH, and return the kernel's name.

    `limits` are fields of `sandbox.limits.Limits` to change. `allow` says for an assignment (or "*") which modules of
    packages installed from a local folder, the course's own above all, a learner's code may import. Does nothing that
    could fail for want of a sandbox: the kernel itself refuses to start without one.
    """
    course = course.resolve()
    folder = course / _FOLDER
    stanza = {
        "provisioner_name": PROVISIONER,
        "config": {
            "limits": dict(limits or {}),
            "allow": {assignment: list(modules) for assignment, modules in (allow or {}).items()},
            "hide": [str(course), str(Path(__file__).resolve().parents[1])],
        },
    }
    spec = {
        "argv": [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"],
        "display_name": "Python in a sandbox (grading)",
        "language": "python",
        "interrupt_mode": "message",  # no signal reaches into the sandbox
        "metadata": {"kernel_provisioner": stanza},
    }
    file = folder / "kernels" / KERNEL / "kernel.json"
    text = json.dumps(spec, indent=1)
    if not file.exists() or file.read_text(encoding="utf-8") != text:
        file.parent.mkdir(parents=True, exist_ok=True)
        (folder / ".gitignore").write_text("*\n")  # it names this machine's Python
        # Other processes may read it now, so it is never seen half written.
        fresh = file.with_name(f"kernel-{os.getpid()}.tmp")
        fresh.write_text(text, encoding="utf-8")
        os.replace(fresh, file)
    known = os.environ.get("JUPYTER_PATH", "").split(os.pathsep)
    if str(folder) not in known:
        os.environ["JUPYTER_PATH"] = os.pathsep.join([str(folder), *filter(None, known)])
    return KERNEL
