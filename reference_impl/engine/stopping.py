"""Finds stop strings in a stream of text, and holds back text that may still become one.

A stop string can span several tokens. So the end of the text is shown only once it cannot be the beginning of a stop
string any more. The text held back is always shorter than the longest stop string.
"""

from collections.abc import Sequence


class StopFinder:
    """Takes text piece by piece. `stopped` is the stop string that ended the text, or None.

    The text ends at the stop string that is complete first; if one character completes two, at the longer one. So the
    result does not depend on how the text was cut into pieces. ValueError for an empty stop string.
    """

    def __init__(self, stop_strings: Sequence[str] = ()) -> None:
        for stop in stop_strings:
            if not stop:
                raise ValueError("a stop string is empty: it would end every answer before its first character")
        self.stop_strings = tuple(stop_strings)
        self.stopped: str | None = None
        self._held = ""  # the end of the text so far: the beginning of at least one stop string

    def feed(self, text: str) -> str:
        """Takes the next piece and returns the text that can be shown: nothing once a stop string was found."""
        if self.stopped is not None:
            return ""
        if not self.stop_strings:
            return text
        text = self._held + text
        found = [(text.find(stop) + len(stop), -len(stop), stop) for stop in self.stop_strings if stop in text]
        if found:
            end, _, self.stopped = min(found)
            self._held = ""
            return text[: end - len(self.stopped)]
        self._held = self._possible_beginning(text)
        return text[: len(text) - len(self._held)]

    def flush(self) -> str:
        """The answer ended for another reason: returns the text that was held back."""
        held, self._held = self._held, ""
        return held

    def _possible_beginning(self, text: str) -> str:
        longest = max(map(len, self.stop_strings)) - 1
        for start in range(max(0, len(text) - longest), len(text)):
            if any(stop.startswith(text[start:]) for stop in self.stop_strings):
                return text[start:]
        return ""
