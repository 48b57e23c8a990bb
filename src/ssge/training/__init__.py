"""Training: the loop, mini-batches, checkpoints and progress."""
