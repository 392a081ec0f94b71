# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # bilby likelihoods
#
# A bilby `Likelihood` and its `PriorDict`, as they are. The likelihood is a black box to us.

# %%
import numpy as np
from bilby.core.likelihood import GaussianLikelihood
from bilby.core.prior import HalfGaussian, Normal, PriorDict

import supermodel as sm

rng = np.random.default_rng(5)
x = np.linspace(-1, 1, 30)
y = 0.4 + 0.15 * x + 0.3 * rng.standard_normal(30)


def level(x, a):
    return a + 0 * x


def line(x, a, b):
    return a + b * x


shared = {"a": Normal(0, 1, "a"), "sigma": HalfGaussian(1, "sigma")}
models = {
    "level": sm.from_bilby(GaussianLikelihood(x, y, level), PriorDict(dict(shared))),
    "line": sm.from_bilby(GaussianLikelihood(x, y, line), PriorDict({**shared, "b": Normal(0, 1, "b")})),
}

# %% [markdown]
# Numerical integration gives ln B(level : line) = 1.729.

# %%
exact = 1.729
result = sm.compare(models, seed=0)
result

# %%
result.averaged("b", fixed=0.0)

# %%
result.posterior("line").summary()
