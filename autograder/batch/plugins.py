"""Puts this package's parts into nbgrader's commands: what `collect.use(c, root)` in `nbgrader_config.py` does."""

from __future__ import annotations

from pathlib import Path

import nbgrader.preprocessors
from traitlets.config import Config

from autograder.batch import nbgraders_own
from autograder.course.hand_grades import SaveGrades
from autograder.intake import handin
from autograder.intake.dropped import dropped


def use(config: Config, root: Path) -> None:
    """Take submissions in safely, keep grades by hand, and let no grade leave that is not up to date."""
    handin.use(config, root)
    nbgraders_own.use(config)
    # Configurations list the preprocessors after this call, by nbgrader's names.
    nbgrader.preprocessors.SaveAutoGrades = SaveGrades
    config.GenerateFeedback.force = True  # a page that exists may tell of older grades
    config.ExchangeFactory.release_feedback = "autograder.feedback.release_feedback.ReleaseFeedback"
    config.ExportApp.plugin_class = "autograder.export.Grades"
    if gone := dropped(root):
        config.CourseDirectory.student_id_exclude = ",".join(sorted(gone))
