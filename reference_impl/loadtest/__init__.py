"""What does a user of a server feel? Requests sent at a chosen rate, and what came back when."""
