"""What does one forward pass compute? The decoder itself, and passes recorded once and replayed."""
