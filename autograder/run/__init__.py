"""Runs a submission: the learner's cells in their kernel, the tests in a process of the grader's."""
