"""Speculative decoding: a draft guesses the next tokens, and the target model checks all guesses in one pass."""
