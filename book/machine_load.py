"""How much of the machine other programs took while a lesson was timed.

A lesson's timings are published as they were measured. On a busy machine they can be ten times as long as on a quiet
one, so the build measures the share of others and marks the page when it is large.
"""

import os
from pathlib import Path

BUSY = 0.15  # of the machine's processor time: above it timings are marked


class Others:
    """Measures, from its creation on, the share of the processors that other programs used."""

    def __init__(self, stat: Path = Path("/proc/stat")) -> None:
        self.stat = stat
        self.before = self._now()

    def _now(self) -> tuple[float, float, float] | None:
        """(used by all, available, used by this process and its ended children) in seconds; None where unknown."""
        try:
            fields = [int(text) for text in self.stat.read_text().split("\n", 1)[0].split()[1:9]]
        except (OSError, ValueError):
            return None
        ticks = os.sysconf("SC_CLK_TCK")
        idle = fields[3] + fields[4]  # idle, and waiting for a disk
        return (sum(fields) - idle) / ticks, sum(fields) / ticks, sum(os.times()[:4])

    def share(self) -> float | None:
        """Between 0 and 1; None where the system does not say (it does on Linux)."""
        now = self._now()
        if self.before is None or now is None:
            return None
        used, available, own = (after - before for after, before in zip(now, self.before, strict=True))
        return min(1.0, max(0.0, (used - own) / available)) if available > 0 else None


def note(share: float) -> str:
    """Return the sentence that marks a page's timings, as HTML."""
    return (
        '<p class="measured-busy" role="note">The machine was busy when this lesson was measured: other programs took '
        f"{share:.0%} of its processors. Its timings are longer than on a quiet machine, and ratios may be off.</p>"
    )
