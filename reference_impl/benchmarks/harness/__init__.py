"""How a measurement is taken, kept as JSON and printed."""
