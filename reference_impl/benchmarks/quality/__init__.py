"""What do fewer bits cost? Formats and methods under one evaluation."""
