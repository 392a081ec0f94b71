"""Samplers of a supermodel, and the record of a run."""

from supermodel.sampling.draws import Draws as Draws
from supermodel.sampling.sample import SAMPLERS as SAMPLERS
from supermodel.sampling.sample import sample as sample
