"""The course as nbgrader sees it: everything lies beside this file, so the file works wherever it is copied.

`nbgrader` and JupyterLab's formgrader read it when they are started in this folder.
"""

from pathlib import Path

c = get_config()  # noqa: F821 - nbgrader provides it

root = Path(__file__).resolve().parent

c.CourseDirectory.course_id = "llm-serving"
c.CourseDirectory.root = str(root)

# Where assignments are released to and submissions come in. For a class, name a folder that everyone can write to.
c.Exchange.root = str(root / "exchange")
c.Exchange.cache = str(root / "exchange-cache")
c.Exchange.path_includes_course = False

# A test cell that was deleted is put back, and what a right answer prints on standard error costs no points.
c.OverwriteCells.add_missing_cells = True
c.Autograde.autograde_preprocessors = [
    "nbgrader.preprocessors.Execute",
    "autograder.hooks.StderrIsNoFailure",
    "nbgrader.preprocessors.IgnorePattern",
    "nbconvert.preprocessors.ClearMetadataPreprocessor",
    "nbgrader.preprocessors.LimitOutput",
    "nbgrader.preprocessors.SaveAutoGrades",
    "nbgrader.preprocessors.AssignLatePenalties",
    "nbgrader.preprocessors.CheckCellMetadata",
]
c.GenerateFeedback.exporter_class = "autograder.hooks.OfflineHTML"
c.Execute.timeout = 60  # seconds for one cell
c.Execute.extra_arguments = ["--log-level=40"]  # a kernel's own warnings belong in no progress display
