"""What lateness costs, switched on in `nbgrader_config.py`:

c.AssignLatePenalties.plugin_class = "autograder.late.LatePolicy"
c.LatePolicy.per_day = 0.1

It is counted from the submission's own time to the due date and extension in the gradebook, whenever grades leave
(see points.py).
"""

from __future__ import annotations

import math

from nbgrader.plugins import LateSubmissionPlugin
from traitlets import Float, Integer


class LatePolicy(LateSubmissionPlugin):
    """Takes a share of the score for each day that was begun. nbgrader asks it for late submissions only."""

    grace_seconds = Integer(0, help="Seconds after the due date that cost nothing.").tag(config=True)
    per_day = Float(0.1, min=0, max=1, help="Share of the score that each day late costs.").tag(config=True)
    most = Float(1.0, min=0, max=1, help="Largest share of the score that lateness costs.").tag(config=True)

    def late_submission_penalty(self, student_id: str, score: float, total_seconds_late: float) -> float | None:
        """Points to take from a notebook's score; None where lateness costs nothing."""
        late = total_seconds_late - self.grace_seconds
        if late <= 0:
            return None
        days = math.ceil(late / 86400)
        return float(score) * min(self.per_day * days, self.most)
