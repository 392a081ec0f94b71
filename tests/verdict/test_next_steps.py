"""After a fail there is something to do, for the right model and in the right order; after anything else there is nothing."""

import inspect

import pytest

from made_result import made_result
from supermodel.engine import judge
from supermodel.report.html import page
from supermodel.report.text import text
from supermodel.verdict.next_steps import MOST, STEPS, next_steps
from supermodel.verdict.rules import NEVER, RULES
from supermodel.verdict.verdict import CODES, Reason, Verdict

CAN_FAIL = {rule.code for rule in RULES for bar in (rule.ladder, rule.chain) if bar and bar.fail < NEVER} | {
    "never_visited", "quadrature", "looks_disagree", "pilot_disagrees", "vague_looks", "posterior_rhat", "rough",
    "target_not_reached", "interrupted",
}  # fmt: skip


def test_every_code_that_can_fail_has_a_step_and_every_step_a_code():
    asked = set().union(*(step.after for step in STEPS))
    assert CAN_FAIL <= asked <= set(CODES)
    said = [line for line in inspect.getsource(judge).splitlines() if '"fail"' in line and "Reason(" in line]
    assert all(any(f'"{code}"' in line for code in CAN_FAIL) or "code" in line for line in said) and len(said) >= 4


def failed(*reasons):
    return Verdict("fail", tuple(Reason(*each) for each in reasons))


def test_the_steps_name_the_models_in_order_and_are_few():
    verdict = failed(
        ("looks_disagree", "ln Z of 'curve' is 1 ± 2; the looks at it gave 3 ± 1."),
        ("posterior_rhat", "R-hat of 'a' under 'line' is 1.3"),
    )
    steps = next_steps(verdict, ("line", "curve", "level"))
    assert len(steps) == MOST and steps[0].startswith("compare(..., explore=\"thorough\"): looks at 'line' and 'curve'")
    assert [step.split(":")[0] for step in steps[1:3]] == ["an ordering", "another form"]
    assert "'level'" not in "".join(steps) and "'a'" not in "".join(steps)
    noisy = failed(("rough", "ln L of 'line' scatters"), ("rhat", "between 'line' and 'curve': ..."))
    assert next_steps(noisy, ("line", "curve"))[0].startswith("mend the likelihood: fix the random numbers of 'line',")


def test_steps_are_of_what_failed_and_of_the_models_that_it_concerns():
    between = "between 'line' and 'curve': split R-hat of the share is 1.4"
    verdict = failed(("rhat", between, "fail", ("curve",)), ("rough", "ln L of 'line' scatters", "caution", ("line",)))
    steps = next_steps(verdict, ("line", "curve"))
    assert steps[0].startswith("compare(..., explore=\"thorough\"): looks at 'curve' with")
    assert not any("'line'" in step or "mend" in step for step in steps)
    unnamed = failed(("looks_disagree", "the chains did not meet.", "fail", ("curve",)))
    assert "looks at 'curve' with" in next_steps(unnamed, ("line", "curve"))[0]
    old = failed(("looks_disagree", "the chains did not meet."))  # of a file that does not say what a finding is of
    assert "looks at the models with" in next_steps(old, ("line", "curve"))[0]


@pytest.mark.parametrize("level", ["ok", "caution", "limit"])
def test_other_levels_have_none(level):
    assert next_steps(Verdict(level, (Reason("rhat", "between 'a' and 'b'"),)), ("a", "b")) == []


def test_they_are_in_the_text_and_in_the_report():
    result = made_result(verdict=failed(("looks_disagree", "ln Z of 'curve' is 1 ± 2")))
    for shown in (text(result), page(result)):
        assert "What to do next, in this order:" in shown and "an ordering" in shown
    assert "What to do next" not in text(made_result()) + page(made_result())
