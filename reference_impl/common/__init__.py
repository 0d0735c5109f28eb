"""What several rooms share and none owns: command lines, optional packages, errors."""
