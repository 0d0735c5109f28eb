"""What an assignment is: source notebook, tests, points, seeds, the gradebook."""
