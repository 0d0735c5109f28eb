"""What a learner handed in, made safe: archives, files, notebooks rebuilt on the released ones."""
