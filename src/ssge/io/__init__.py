"""Readers and writers of users' data."""
