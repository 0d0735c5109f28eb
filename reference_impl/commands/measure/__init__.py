"""Commands that measure this machine, a format with fewer bits, or the gain from drafts."""
