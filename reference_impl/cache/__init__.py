"""Where do keys and values lie? Contiguous slots, paged blocks, shared prefixes, and copies in host memory."""
