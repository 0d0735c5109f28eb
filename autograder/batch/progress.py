"""How far a batch is, and about how long it will take: a bar on a terminal, a line for each submission elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable


class Progress:
    """Counts `total` pieces of work; `say` prints a line."""

    def __init__(self, total: int, say: Callable[[str], None]) -> None:
        self.total, self.count, self._say, self._begin = total, 0, say, time.monotonic()
        self._bar = None
        if total and sys.stderr.isatty():
            from tqdm import tqdm

            self._bar = tqdm(total=total, desc="autograde", unit="submission", dynamic_ncols=True)

    def step(self, name: str) -> None:
        """One more is done."""
        self.count += 1
        if self._bar is not None:
            self._bar.set_postfix_str(name, refresh=False)
            self._bar.update()
        else:
            self._say(f"autograde [{self.count}/{self.total}] {name}{self._left()}")

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()

    def _left(self) -> str:
        if self.count < 3 or self.count == self.total:
            return ""
        seconds = (time.monotonic() - self._begin) / self.count * (self.total - self.count)
        return f", about {seconds / 60:.0f} min left" if seconds > 90 else f", about {seconds:.0f} s left"
