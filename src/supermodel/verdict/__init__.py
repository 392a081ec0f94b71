"""The verdict: what was measured of a run, and whether its answer is to be trusted."""
