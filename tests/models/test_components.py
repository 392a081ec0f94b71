"""Numbers that may belong to components, by their names and places."""

import numpyro.distributions as dist
import pytest

from supermodel.models.components import families_of, splits
from supermodel.models.space import Space

ONE = dist.Normal(0, 1)


def labels(priors, left_out=()):
    return {
        tuple(entry[0] + str(list(entry[1])) for entry in column.entries)
        for f in families_of(Space(priors), left_out)
        for column in f
    }


@pytest.mark.parametrize(
    ("name", "stem"),
    [("P1", "P#"), ("K_12", "K_#"), ("f[0]", "f[#]"), ("mass_b", "mass_#"), ("x1_y", "x#_y"), ("log10_P2", "log10_P#")],
)
def test_a_name_without_what_tells_components_apart(name, stem):
    assert stem in {each for each, _ in splits(name)}


def test_stems_arrays_and_equal_priors_are_columns():
    assert labels({"P1": ONE, "P2": ONE, "K1": ONE, "K2": ONE}) == {("P1[]", "P2[]"), ("K1[]", "K2[]")}
    assert labels({"log10_P1": ONE, "log10_P2": ONE}) == {("log10_P1[]", "log10_P2[]")}
    assert labels({"a": ONE, "b": ONE, "c": dist.Normal(0, 2)}) == {("a[]", "b[]")}
    assert labels({"x": ONE.expand([2])}) == {("x[0]", "x[1]")}
    assert labels({"x": ONE.expand([2])}, left_out=("x",)) == set()
    assert len(families_of(Space({"L": ONE.expand([3, 2])}), ())) == 2  # along either axis


def test_the_tenth_stands_after_the_second():
    (family,) = families_of(Space({f"P{k}": ONE for k in (10, 2, 1)}), ())
    assert [name for name, _ in family[0].entries] == ["P1", "P2", "P10"]
