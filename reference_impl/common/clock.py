"""The type of a clock. Functions that measure time take one as an argument, so tests can pass in their own."""

from collections.abc import Callable

Clock = Callable[[], float]  # seconds from an arbitrary zero, such as `time.perf_counter`
