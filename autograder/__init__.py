"""Grading of notebook assignments with nbgrader. Nothing here knows the course, so it can serve another one."""
