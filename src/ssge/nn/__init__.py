"""Neural network components: encoders, heads, schedules, and the blocks of an embedding."""
