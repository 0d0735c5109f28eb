"""Trains the course's own pair: a small target and a smaller draft, on text that every Python brings along."""
