"""Regressions, t tests, analyses of variance, correlations, proportions and contingency tables in one line."""
