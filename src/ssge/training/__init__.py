"""Training: the one loop, what it saves, and what it shows."""
