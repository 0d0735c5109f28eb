"""Is the grader right? Releases are checked, and known wrong and right solutions graded."""
