"""Requests, the scheduler that decides which of them run when, the step loop, and the times that a user feels."""
