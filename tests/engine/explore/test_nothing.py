"""A model without parameters."""

import numpy as np

import supermodel as sm
from engine_problems import meter
from supermodel.engine.explore.nothing import look_at_nothing
from supermodel.engine.policy import EFFORTS
from supermodel.models.joint import Joint


def test_its_evidence_is_its_likelihood():
    joint, counter = Joint("m", sm.Model({}, lambda p: -7.25)), meter()
    known = joint.probe(np.random.default_rng(0), 8, lambda x: counter.likelihood(joint, x))
    pilot = look_at_nothing(joint, known, 0, 0, counter, EFFORTS["auto"])
    assert pilot.looks[0].log_evidence == -7.25 and pilot.looks[0].error == 0.0
    assert pilot.reference.is_standard_normal and pilot.spread == 0.0 and pilot.points.shape == (8, 0)
    assert np.all(pilot.log_joint == -7.25) and pilot.evaluations == counter.evaluations == 8
