"""What does one forward pass compute? The decoder, the same in fused steps, and passes that are replayed."""
