"""What a source notebook says of its tests: what runs before them, and what they take from the learner."""

from __future__ import annotations

import pytest

from autograder.course.source import Source, SourceCell, defined

IMPORTS = "import numpy as np\nfrom math import isclose\nimport json"
HELPERS = "LIMIT = 3\nseconds = time.time()\n\ndef near(a, b):\n    return isclose(a, b)\n\ndef plot():\n    pass"
ANSWER = "import torch\n\ndef double(x):\n    return torch.add(x, x)\n\nscale = 2"
TEST = "for x in np.arange(LIMIT):\n    assert near(double(x), 2 * x)\nassert torch and seconds"


@pytest.fixture
def source() -> Source:
    kinds = {
        "": ("other", IMPORTS),
        "helpers": ("other", HELPERS),
        "double": ("answer", ANSWER),
        "test": ("test", TEST),
    }
    return Source(
        tuple(
            SourceCell(name, kind, text, 1.0, defined(text) if kind == "answer" else frozenset())
            for name, (kind, text) in kinds.items()
        )
    )


def test_imports_and_definitions_of_cells_that_a_learner_may_change_run_before_the_tests(source: Source) -> None:
    assert [cell.source for cell in source.setup_before("test")] == [
        "import numpy as np\nfrom math import isclose",
        "LIMIT = 3\ndef near(a, b):\n    return isclose(a, b)",
        "import torch",
    ]
    assert source.imported == {"numpy", "math", "torch"}


def test_what_a_test_takes_from_the_learner_is_named(source: Source) -> None:
    assert source.taken("test") == (["double"], ["seconds"])
