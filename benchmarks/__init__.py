"""What the library claims, measured: evaluations, errors and ratios in one run. `python -m benchmarks [name ...]`."""
