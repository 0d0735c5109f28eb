"""Guess, then check: a draft proposes tokens and the target model verifies them in one pass."""
