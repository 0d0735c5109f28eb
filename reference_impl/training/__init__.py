"""How were the course's own models made? A small target and a smaller draft, trained on text of every Python."""
