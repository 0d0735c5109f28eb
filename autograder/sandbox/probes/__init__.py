"""Attempts to break out of the sandbox, which `doctor` runs on this machine."""
