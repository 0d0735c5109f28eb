"""Fewer bits per weight: absmax integers, one scale per group (`groupwise`), and the exercise's program (`report`)."""
