"""Neural parts: encoders."""
