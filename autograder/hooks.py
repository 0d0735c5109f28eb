"""What nbgrader loads from us by name, switched on by the course's `nbgrader_config.py`.

Two of nbgrader's habits are mended: it counts any output on standard error as a failed test, so that a progress bar
or a harmless warning costs a right answer all of its points; and its feedback pages load a script from another host.
"""

from __future__ import annotations

import re
from typing import Any

from nbconvert.exporters import HTMLExporter
from nbformat.notebooknode import NotebookNode
from nbgrader.preprocessors import NbGraderPreprocessor


class StderrIsNoFailure(NbGraderPreprocessor):
    """Keep what was printed on standard error, as ordinary output. Belongs between Execute and SaveAutoGrades."""

    def preprocess_cell(self, cell: NotebookNode, resources: Any, cell_index: int) -> tuple[NotebookNode, Any]:
        for output in cell.get("outputs", []):
            if output.output_type == "stream":
                output.name = "stdout"
        return cell, resources


class OfflineHTML(HTMLExporter):
    """Feedback pages that ask no other host for a script. TeX in a notebook then shows as it was typed."""

    def from_notebook_node(self, nb: NotebookNode, resources: Any = None, **kwargs: Any) -> tuple[Any, Any]:
        page, resources = super().from_notebook_node(nb, resources, **kwargs)
        return re.sub(r"<script[^>]*\ssrc=[\"']?(https?:)?//[^>]*>\s*</script>", "", page), resources
