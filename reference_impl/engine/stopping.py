"""Stop strings in a stream of text: show what is certain, hold back what may still become a stop string.

The one idea: a stop string can span several tokens, so the end of the text is only safe to show when it cannot be the
beginning of a stop string. What is held back is at most one character shorter than the longest stop string.
"""

from collections.abc import Sequence


class StopFinder:
    """Feeds on pieces of text; `stopped` is the stop string that ended the stream, or None.

    The stop string that is completed first ends the text (of two completed by the same character, the longer one), so
    the outcome does not depend on how the text was cut into pieces. Raises ValueError for an empty stop string.
    """

    def __init__(self, stop_strings: Sequence[str] = ()) -> None:
        for stop in stop_strings:
            if not stop:
                raise ValueError("a stop string is empty: it would end every answer before its first character")
        self.stop_strings = tuple(stop_strings)
        self.stopped: str | None = None
        self._held = ""  # ends the text so far, and begins at least one stop string

    def feed(self, text: str) -> str:
        """Takes the next piece and returns what may be shown; nothing once a stop string was found."""
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
        """The generation ended for another reason: what was held back is no stop string after all."""
        held, self._held = self._held, ""
        return held

    def _possible_beginning(self, text: str) -> str:
        longest = max(map(len, self.stop_strings)) - 1
        for start in range(max(0, len(text) - longest), len(text)):
            if any(stop.startswith(text[start:]) for stop in self.stop_strings):
                return text[start:]
        return ""
