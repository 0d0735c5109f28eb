"""A class through a term: how a course begins, who is in it, when work is due, and how it went."""
