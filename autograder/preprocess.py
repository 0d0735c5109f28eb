"""Steps that nbgrader's autograding runs for us, named in the course's `nbgrader_config.py`.

nbgrader counts any output on standard error as a failed test, so a progress bar or a harmless warning would cost a
right answer all of its points. Here only an error is a failure.
"""

from __future__ import annotations

from typing import Any

from nbformat.notebooknode import NotebookNode
from nbgrader.preprocessors import NbGraderPreprocessor


class StderrIsNoFailure(NbGraderPreprocessor):
    """Keep what was printed on standard error, as ordinary output. Belongs between Execute and SaveAutoGrades."""

    def preprocess_cell(self, cell: NotebookNode, resources: Any, cell_index: int) -> tuple[NotebookNode, Any]:
        for output in cell.get("outputs", []):
            if output.output_type == "stream":
                output.name = "stdout"
        return cell, resources
