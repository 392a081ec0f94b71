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
# # NumPyro models
#
# The models as they are, with their data. Latent sites become parameters, `obs` sites the likelihood.

# %%
import arviz as az
import numpy as np
import numpyro
import numpyro.distributions as dist

import supermodel as sm

rng = np.random.default_rng(5)
x = np.linspace(-1, 1, 30)
y = 0.4 + 0.15 * x + 0.3 * rng.standard_normal(30)


def level(x, y=None):
    a, s = numpyro.sample("a", dist.Normal(0, 1)), numpyro.sample("s", dist.HalfNormal(1))
    with numpyro.plate("row", len(x)):
        numpyro.sample("y", dist.Normal(a, s), obs=y)


def line(x, y=None):
    a, s = numpyro.sample("a", dist.Normal(0, 1)), numpyro.sample("s", dist.HalfNormal(1))
    b = numpyro.sample("b", dist.Normal(0, 1))
    with numpyro.plate("row", len(x)):
        numpyro.sample("y", dist.Normal(a + b * x, s), obs=y)


models = {"level": sm.from_numpyro(level, x, y=y), "line": sm.from_numpyro(line, x, y=y)}

# %% [markdown]
# Numerical integration gives ln B(level : line) = 1.729.

# %%
exact = 1.729
result = sm.compare(models, seed=0)
result

# %% [markdown]
# The slope, averaged over both models: zero with the probability of `level`.

# %%
result.averaged("b", fixed=0.0)

# %% [markdown]
# Everything goes to ArviZ, plates as dimensions, ln L of each datum included: `az.loo` and `az.compare` work.

# %%
idata = result.to_arviz("line")
az.loo(idata)

# %%
az.compare({name: result.to_arviz(name) for name in result.names})

# %% [markdown]
# LOO and the Bayes factor answer two questions, and say which.

# %%
result.loo()
