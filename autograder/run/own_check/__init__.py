"""The learner's own check of a notebook: the tests that it shows, run where the learner works, told in words."""
