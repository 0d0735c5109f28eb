"""Who runs when? Requests, the scheduler, the step loop, and the times that a user feels."""
