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
# # PyMC models
#
# The data and models of the NumPyro notebook, written in PyMC. Dimensions and coordinates are kept.

# %%
import arviz as az
import numpy as np
import pymc as pm

import supermodel as sm

rng = np.random.default_rng(5)
x = np.linspace(-1, 1, 30)
y = 0.4 + 0.15 * x + 0.3 * rng.standard_normal(30)

with pm.Model(coords={"row": np.arange(30)}) as level:
    a, s = pm.Normal("a", 0, 1), pm.HalfNormal("s", 1)
    pm.Normal("y", a, s, observed=y, dims="row")

with pm.Model(coords={"row": np.arange(30)}) as line:
    a, b, s = pm.Normal("a", 0, 1), pm.Normal("b", 0, 1), pm.HalfNormal("s", 1)
    pm.Normal("y", a + b * x, s, observed=y, dims="row")

models = {"level": sm.from_pymc(level), "line": sm.from_pymc(line)}

# %% [markdown]
# Numerical integration gives ln B(level : line) = 1.729.

# %%
exact = 1.729
result = sm.compare(models, seed=0)
result

# %%
result.drivers()

# %%
idata = result.to_arviz("line")
az.loo(idata)

# %%
result.loo()
