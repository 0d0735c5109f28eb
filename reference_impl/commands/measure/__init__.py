"""Commands that measure this machine, a format for fewer bits, or the gain from drafts."""
