"""How the next token is chosen: sampling, and the two acceptance rules of speculative decoding."""
