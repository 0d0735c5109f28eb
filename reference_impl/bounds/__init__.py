"""What do hardware and arithmetic allow? Everything here is computed on paper; nothing runs."""
