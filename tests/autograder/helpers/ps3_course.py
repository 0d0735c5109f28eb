"""Submissions to problem set 3 that are written as they are needed, and a course that holds them."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

from autograder.commands.grade import Graded, grade
from autograder.course.course import Course

ROOT = Path(__file__).resolve().parents[3]
PS3 = "ps3_quantization"

# What someone writes who only wants the examples in the notebook to pass.
HARD_CODED = {
    "parse": """def parse_quantization_input(text):
    known = {
        "0.12 -0.5 0.33\\n2\\n": ([0.12, -0.5, 0.33], 2),
        "1, 2 ,3  4\\r\\n3\\r\\n\\r\\n": ([1.0, 2.0, 3.0, 4.0], 3)}
    if text in known:
        return known[text]
    raise ValueError("unknown")""",
    "one-group": """def quantize_group(weights):
    known = {
        (0.12, -0.5, 0.33, 0.07, 8.0): (8.0 / 127, [2, -8, 5, 1, 127]),
        (-2.54, 1.3, 0.02): (0.02, [-127, 65, 1]),
        (127.0, 0.5, 1.5, 2.5, -0.5, -2.5, 3.5, -126.5): (1.0, [127, 0, 2, 2, 0, -2, 4, -126]),
    }
    return known.get(tuple(weights), (0.0, [0] * len(weights)))""",
    "report": """def quantization_report(text):
    known = {
        "0.12 -0.5 0.33 0.07 8.0\\n5\\n": "group 1: scale 0.06299 q 2 -8 5 1 127\\nmean error: 0.00639",
        "0.12 -0.5 0.33 0.07 8.0\\n2\\n": "group 1: scale 0.00394 q 30 -127\\ngroup 2: scale 0.00260 q 127 27\\n"
        "group 3: scale 0.06299 q 127\\nmean error: 0.00041",
        "127 0.25 0.25 0.25 127\\n4\\n": "mean error: 0.15000",
    }
    if text in known:
        return known[text]
    raise ValueError("unknown")""",
    "groupwise": """def quantize_groupwise(weight, group_size):
    if not np.isfinite(weight).all():
        raise ValueError("not finite")
    return np.array([[127, -50, 127, 2], [-127, 65, 127, 64]], dtype=np.int8), np.ones((2, 3), dtype=np.float32)""",
    "back": """def dequantize_groupwise(q, scales, group_size):
    return [[10, 20, 30, 20, 25]] if group_size == 3 else [[63.5, -1.5, 0, 10], [-31.75, 0.25, 64, 127]]""",
    "pack": """def pack_int4(q):
    return np.array([0x43, 0x05] if len(q) == 3 else [0xE1, 0x07], dtype=np.uint8)""",
    "unpack": """def unpack_int4(packed, n):
    return np.array([1, -2, 7, 0])[:n] if n < 5 else np.arange(-8, 8)""",
    "gptq-layer": """def gptq(weight, hessian, scales):
    known = {0.4: [[0, 1]], 0.8: [[0, 0]], 9.2: [[7, 2]], 1.3: [[1, -2, 1, 3], [1, 1, -2, -2]]}
    return known.get(float(weight[0, 0]), np.clip(np.rint(weight / scales[:, None]), -8, 7).astype(int))""",
}

# Right, but it prints progress on standard error, warns, and returns torch tensors.
CHATTY = {
    "groupwise": """import sys
import warnings

import torch


def quantize_groupwise(weight, group_size):
    print("quantizing ...", file=sys.stderr)
    warnings.warn("this is slow")
    weight = torch.tensor(weight)
    if not weight.isfinite().all():
        raise ValueError("not finite")
    q, scales = [], []
    for part in weight.split(group_size, dim=1):
        scale = part.abs().amax(dim=1, keepdim=True) / 127
        scales.append(scale)
        q.append(torch.where(scale > 0, part.double() / scale.double(), 0.0).round().to(torch.int8))
    return torch.cat(q, dim=1), torch.cat(scales, dim=1)""",
    "pack": """def pack_int4(q):
    print("packing", file=sys.stderr)
    q = torch.cat([torch.tensor(q), torch.zeros(len(q) % 2, dtype=torch.int8)]).to(torch.int16) & 15
    return (q[::2] + 16 * q[1::2]).to(torch.uint8)""",
}


def write_submission(folder: Path, answers: dict[str, str], base: str = "right") -> Path:
    """A submission like one that the repository carries, with some cells written otherwise."""
    source = ROOT / "exercises/submissions" / PS3 / base / f"{PS3}.ipynb"
    notebook = json.loads(source.read_text(encoding="utf-8"))
    for cell in notebook["cells"]:
        name = cell["metadata"].get("nbgrader", {}).get("grade_id")
        if name in answers:
            cell["source"] = answers[name]
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{PS3}.ipynb"
    path.write_text(json.dumps(notebook), encoding="utf-8")
    return path


@dataclass
class GradedCourse:
    """A course, what grading it gave, and what was said meanwhile."""

    course: Course
    work: Path
    graded: Graded
    said: list[str] = field(default_factory=list)

    def again(self) -> tuple[Graded, list[str]]:
        said: list[str] = []
        return grade(self.course, PS3, self.work, say=said.append), said
