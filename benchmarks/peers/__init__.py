"""Ours beside its peers: the same questions, one counter, true errors. `make bench-peers`."""
