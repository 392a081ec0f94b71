"""Closed forms and quadrature: the ground truth for tests, and for users whose problem is small enough."""

from supermodel.exact.alpha_density import (
    ExponentialAlpha,
    HatAlpha,
    Lahiri,
    LineAlpha,
    MixtureAlpha,
    SimplexAlpha,
    cured_log_bayes_factor,
    exponential,
    flat_prior,
    gaussian_prior,
    hats,
    identity,
    intercept,
    log_bayes_factor_from_b,
    log_bayes_factor_from_intercept,
    log_bayes_factor_from_slope,
    printed_b,
    printed_log_bayes_factor,
    slope,
    steep,
)
from supermodel.exact.linear_gaussian import (
    Gaussian,
    LinearGaussian,
    polynomial,
)
from supermodel.exact.nested_pair import (
    CombinedLine,
    Spike,
    combined_likelihood_line,
    combined_model_alpha,
    combined_model_log_density,
    combined_model_spike,
    condition,
    fix,
    log_density_ratio,
    log_likelihood_ratio,
    nested_likelihood_line,
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
