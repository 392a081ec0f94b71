"""What must hold inside the file of a comparison before any of it is believed: names, types, lengths, shapes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from supermodel.models.families import FAMILIES
from supermodel.results.odds import checked_odds
from supermodel.results.storage import expect, expect_arrays
from supermodel.verdict.verdict import LEVELS

MOST = 10**6  # numbers in one parameter: a prior's shape is written in a file, and is made before any draw is compared

Check = Callable[[Any], bool]


def _is(*kinds: type) -> Check:
    return lambda value: isinstance(value, kinds) and (bool in kinds or not isinstance(value, bool))


def _each(check: Check) -> Check:
    return lambda value: isinstance(value, list) and all(map(check, value))


def _table(check: Check) -> Check:
    return lambda value: isinstance(value, dict) and all(map(check, value.values()))


def _row(*checks: Check) -> Check:
    return lambda value: isinstance(value, list) and len(value) == len(checks) and all(
        check(part) for check, part in zip(checks, value, strict=True)
    )  # fmt: skip


def _or_none(check: Check) -> Check:
    return lambda value: value is None or check(value)


_text, _number, _whole, _any_table = _is(str), _is(int, float), _is(int), _is(dict)


def _wrap(value: Any) -> bool:
    """The two ways in which a prior of a known family is dressed; any other name is never looked up."""
    if _row(lambda name: name == "expand", _each(_whole))(value):
        return 0 <= math.prod(value[1]) <= MOST
    return _row(lambda name: name == "to_event", _whole)(value)


ATTRIBUTES: dict[str, Check] = {
    "schema": _whole,
    "names": _each(_text),
    "parameters": _each(_each(_text)),
    "edges": _each(_row(_text, _text, _table(_number))),
    "columns": _or_none(_each(_text)),
    "absolute": _is(bool),
    "details": _any_table,
    "verdict": _row(lambda level: level in LEVELS, _each(_row(_text, _text))),
    "evaluations": _table(_number),
    "seed": _whole,
    "prior_odds": _table(_number),
    "settings": _any_table,
    "seconds": _number,
    "priors": _table(_table(_any_table)),
    "versions": _table(_text),
    "fingerprints": _table(_text),
}
LATER: dict[str, Check] = {  # which the first files do not have
    "records": _each(_whole),
    "chain": _or_none(_row(_is(bool), _table(_number))),
    "formulas": _table(_any_table),
    "scopes": _each(_row(lambda level: level in ("", *LEVELS), _each(_text), _each(_text))),
    "labels": _table(_text),
    "units": _table(_text),
}
COUNT: dict[str, Check] = {  # of `count`, which makes a `Count` of the comparison
    "component": _text,
    "parameters": _each(_text),
    "least": _whole,
    "most": _whole,
    "prior": _each(_number),
    "stop": _number,
}
SETTINGS: dict[str, Check] = {
    "target_error": _number,
    "ended": _text,
    "explore": _text,
    "method": _text,
    "dropped": _whole,
    "rows": _whole,
    "pilots": _table(lambda pilot: _any_table(pilot) and _text(pilot.get("method"))),
    "count": lambda told: _any_table(told) and all(check(told.get(key)) for key, check in COUNT.items()),
}
PRIOR: dict[str, Check] = {"description": _text, "shape": _each(_whole)}
FAMILY: dict[str, Check] = {"arguments": _any_table, "wraps": _each(_wrap)}


def check_comparison(groups: Mapping[str, Mapping[str, np.ndarray]], attrs: Mapping[str, Any]) -> None:
    """`Malformed` unless all parts of a comparison are there, of their types, and fit each other."""
    for key, check in ATTRIBUTES.items():
        expect(key in attrs and check(attrs[key]), f"the attribute {key!r} is missing or of another form")
    _check_known(attrs, LATER)
    _check_known(attrs["settings"], SETTINGS)
    names, edges = attrs["names"], attrs["edges"]
    scopes = attrs.get("scopes", attrs["verdict"][1])
    expect(len(scopes) == len(attrs["verdict"][1]), "the findings and what they are of do not fit")
    known = {name for _, *named in attrs.get("scopes", ()) for some in named for name in some}
    expect(known <= set(names), "a finding on a model that is not there")
    expect(names and len(set(names)) == len(names) == len(attrs["parameters"]), "names and parameters do not fit")
    expect(set(attrs["priors"]) <= set(names), "names and priors do not fit")
    checked_odds(attrs["prior_odds"], tuple(names))
    expect_arrays(groups["comparison"], {"log_evidence": (len(names),), "covariance": (len(names),) * 2})
    n_records = max(len(edges), attrs.get("chain") is not None)
    records = attrs.get("records", [-1] * len(names))
    expect(len(records) == len(names) and all(-1 <= r < n_records for r in records), "a posterior of no record")
    for k, parameters in enumerate(attrs["parameters"]):
        _check_posterior(groups[f"posterior_{k}"], len(parameters))
    for e in range(len(edges)):
        _check_edge(groups[f"edge_{e}"])
    if attrs.get("chain") is not None:
        _check_chain(groups["chain"], len(names))
    for i in range(len(attrs["columns"] or ())):
        expect(f"column_{i}" in groups["data"], "a column of the data is missing")
    for priors in attrs["priors"].values():
        for prior in priors.values():
            _check_prior(prior)


def _check_known(attrs: Mapping[str, Any], checks: Mapping[str, Check]) -> None:
    for key, check in checks.items():
        expect(key not in attrs or check(attrs[key]), f"{key!r} is of another form")


def _check_posterior(group: Mapping[str, np.ndarray], n_parameters: int) -> None:
    n = group["log_weights"].size
    expect_arrays(group, dict.fromkeys(("log_weights", "log_likelihood", "log_prior"), (n,)))
    expect_arrays(group, {"chain": (n,)}, "iu")
    expect(group["chain"].min(initial=0) >= 0, "a chain of a negative number")
    for i in range(n_parameters):
        values = group[f"parameter_{i}"]
        expect(
            values.dtype.kind in "biuf" and values.ndim and len(values) == n, f"parameter {i} is no list of {n} draws"
        )


def _check_edge(group: Mapping[str, np.ndarray]) -> None:
    chains, n = group["rung"].shape
    rungs = len(group["table"])
    expect_arrays(group, {"table": (rungs, 2), "log_prior": (rungs,), "log_joints": (chains, n, 2)})
    expect_arrays(group, {"rung": (chains, n)}, "iu")
    expect(group["rung"].min(initial=0) >= 0 and group["rung"].max(initial=0) < rungs, "a rung beyond the ladder")
    if "log_anchor" in group:
        expect_arrays(group, {"log_anchor": (chains, n)})


def _check_chain(group: Mapping[str, np.ndarray], n_models: int) -> None:
    chains, n, _ = group["weights"].shape
    expect_arrays(group, dict.fromkeys(("weights", "log_shares"), (chains, n, n_models)))
    expect_arrays(group, dict.fromkeys(("grid", "density"), (group["grid"].size,)))


def _check_prior(prior: Mapping[str, Any]) -> None:
    expect(all(key in prior and check(prior[key]) for key, check in PRIOR.items()), "a prior of another form")
    expect(0 <= math.prod(prior["shape"]) <= MOST, "a prior of a shape that no parameter has")
    if prior.get("family") in FAMILIES:
        expect(all(key in prior and check(prior[key]) for key, check in FAMILY.items()), "a prior of another form")
