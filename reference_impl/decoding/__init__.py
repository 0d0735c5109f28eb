"""Which token comes next? Sampling, and the two acceptance rules of speculative decoding."""
