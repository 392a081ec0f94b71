"""Thousands of data sets, one choice between models: `compare_many`."""
