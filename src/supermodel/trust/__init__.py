"""Putting models, error bars and peers to the test."""
