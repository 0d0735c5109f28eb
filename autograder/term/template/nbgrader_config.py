"""The course as nbgrader sees it. No path is written out, so the file works wherever it is copied.

`nbgrader` and JupyterLab's formgrader read it when they are started in this folder.
"""

from pathlib import Path

from autograder import collect, kernelspec

c = get_config()  # noqa: F821 - nbgrader provides it

root = Path(__file__).resolve().parent

c.CourseDirectory.course_id = root.name
c.CourseDirectory.root = str(root)

# Several processes write grades at once and wait for each other. For a larger class any SQLAlchemy URL does.
c.CourseDirectory.db_url = f"sqlite:///{root / 'gradebook.db'}?timeout=60"

# Where assignments are released to and submissions come in. For a class, name a folder of mode 1777 that everyone can
# reach, such as /srv/exchange; never one inside the course folder, which nobody else may enter.
c.Exchange.root = str(root.parent / f"{root.name}-exchange")
c.Exchange.cache = str(root / "exchange-cache")
c.Exchange.path_includes_course = False

# Learners' code runs in a sandbox, or not at all; the tests run in a process of their own, which it cannot reach.
collect.use(c, root)  # submissions are taken in as plain files and rebuilt on the released notebook
c.OverwriteCells.add_missing_cells = True  # a test cell that was deleted is put back
c.Autograde.autograde_preprocessors = [
    "autograder.execute.SandboxedExecute",
    "nbgrader.preprocessors.IgnorePattern",
    "nbconvert.preprocessors.ClearMetadataPreprocessor",
    "nbgrader.preprocessors.LimitOutput",
    "nbgrader.preprocessors.SaveAutoGrades",  # leaves grades by hand alone: collect.use sees to that
    "nbgrader.preprocessors.AssignLatePenalties",
    "nbgrader.preprocessors.CheckCellMetadata",
]
c.GenerateFeedback.exporter_class = "autograder.feedback.Feedback"
# What a submission holds is made harmless in formgrader's pages too.
c.HTMLExporter.preprocessors = ["autograder.sanitize.Sanitize"]
c.HTMLExporter.filters = {"markdown2html": "autograder.sanitize.markdown_html"}
# Cells whose points add to the score and not to the maximum; * stands for any letters.
c.Points.bonus = {"warmup": ["bonus-*"]}
# Learners who have answered a question that a person grades may open its model answer and rubric, in
# `python -m autograder check` and on the site. For a class that is graded, say False until the answers are in.
c.ModelAnswers.show = True
c.Execute.kernel_name = kernelspec.ensure(root)
c.Execute.timeout = 60  # seconds for one cell
c.SandboxedExecute.budget = 300  # seconds for all cells of a notebook
c.Execute.extra_arguments = ["--log-level=40"]  # a kernel's own warnings belong in no progress display
