"""Closed forms and quadrature: the ground truth for tests, and for users whose problem is small enough."""

from supermodel.exact.alpha_density import (
    MixtureAlpha,
    flat_prior,
    identity,
)
from supermodel.exact.linear_gaussian import (
    Gaussian,
    LinearGaussian,
    polynomial,
)
from supermodel.exact.nested_pair import (
    Spike,
    combined_model_alpha,
    combined_model_log_density,
    combined_model_spike,
    condition,
    fix,
    log_density_ratio,
    prior_correction,
    savage_dickey,
)
from supermodel.exact.quadrature import (
    Density,
    Expectation,
    LogEvidence,
    Moments,
    expectation_by_quadrature,
    log_evidence_by_quadrature,
    moments_by_quadrature,
    prior_box,
)
