"""Regressions, t tests, analyses of variance, correlations and proportions in one line."""
