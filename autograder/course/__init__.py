"""What an assignment is: source notebook, tests, points, seeds, the gradebook."""

CONFIG = "nbgrader_config.py"  # a course's configuration, in its folder
