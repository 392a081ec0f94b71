"""The families of the sky: what JAX traces is what NumPy computes, at draws of the prior."""

import importlib.util

import numpy as np
import pytest

if importlib.util.find_spec("benchmarks") is None:
    pytest.skip("benchmarks/ stands beside the sources, not in a package that is installed", allow_module_level=True)

from benchmarks.sky import FAMILIES  # noqa: E402
from benchmarks.sky.check import traced_agrees  # noqa: E402


@pytest.mark.slow
@pytest.mark.parametrize("name", FAMILIES)
def test_both_sides_of_a_family_are_one_likelihood_in_jax_and_numpy(name):
    """To rounding: sums of at most some thousand terms that cancel a few digits leave 1e-8 of ln L."""
    sides = FAMILIES[name](0).sides
    assert sides
    for label, side in sides.items():
        gap = traced_agrees(side)
        assert np.isfinite(gap) and gap < 1e-8, (name, label, gap)
