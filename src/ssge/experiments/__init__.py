"""Experiments: the only place where data, training and evaluation meet."""
