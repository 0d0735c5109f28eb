"""Makes the learner's distribution: everything a learner needs, and nothing that only an instructor may see.

    python scripts/learner_dist.py            writes dist/learner/ and dist/learner.zip

It holds the wheel of the course's packages, the lessons, the released problem sets and a page that says how to begin.
Solutions, hidden tests, banks, rubrics and the instructor's pages stay where they are, because only named folders are
copied. A Hub installs it for a class; a learner alone unpacks it.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

BEGIN = """# Serving LLMs: for learners

You need Python 3.11, 3.12 or 3.13. In this folder:

```bash
python3 -m venv .venv
.venv/bin/python -m pip install -c constraints.txt "{wheel}[lab]"
.venv/bin/python -m reference_impl fetch-model   # 93 MB; the lessons use it
.venv/bin/jupyter lab lessons
```

On Windows, in PowerShell, write `py -m venv .venv` and `.venv\\Scripts\\python` in place of the first two.

If you only want the problem sets, write `[problem-sets]` in place of `[lab]` and leave `fetch-model` out: that installs
neither PyTorch nor the lessons' model. Work in the notebooks of `problem_sets/`, and check one with

```bash
.venv/bin/python -m autograder check problem_sets/ps1_prefill_decode/ps1_prefill_decode.ipynb
```
"""


def build(target: Path) -> Path:
    """Writes the distribution into `target`, whatever was there before, and returns the path of its zip file."""
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    wheel = build_wheel(target)
    shutil.copytree(ROOT / "exercises" / "release", target / "problem_sets", ignore=shutil.ignore_patterns(".*"))
    (target / "lessons").mkdir()
    for notebook in sorted((ROOT / "notebooks").glob("*.ipynb")):
        shutil.copy(notebook, target / "lessons")
    for name in ("constraints.txt", "LICENSE"):
        shutil.copy(ROOT / name, target)
    (target / "README.md").write_text(BEGIN.format(wheel=wheel.name))
    return Path(shutil.make_archive(str(target), "zip", target.parent, target.name))


def build_wheel(target: Path) -> Path:
    """The course's packages as a wheel. They are copied first, so that no file of an earlier build gets into it."""
    source = target / "source"
    packages = ("reference_impl", "interactives", "autograder", "pyproject.toml", "README.md", "LICENSE")
    listed = subprocess.run(["git", "ls-files", "-z", *packages], cwd=ROOT, capture_output=True, text=True, check=True)
    for name in listed.stdout.split("\0"):
        if name and (ROOT / name).is_file():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, source / name)
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "--quiet", "--no-deps")
    subprocess.run([*pip, "--wheel-dir", str(target), str(source)], check=True)
    shutil.rmtree(source)
    (wheel,) = target.glob("*.whl")
    return wheel


if __name__ == "__main__":
    print(build(ROOT / "dist" / "learner"))
