"""The default engine: pilots, warps, a tree of two-model supermodels, and the loop that runs until the answer is good."""
