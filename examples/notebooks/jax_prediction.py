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
# # A prediction in JAX
#
# A prediction and its noise are enough: `predict(p, x)` is given the column `x` of the data, and the likelihood of each datum
# follows. Written with `jax.numpy` it is compiled and differentiated.

# %%
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from scipy import stats

import supermodel as sm

rng = np.random.default_rng(3)
x = np.linspace(0, 2, 25)
data = {"x": x, "y": np.sin(1.9 * x + 0.15) + 0.1 * rng.standard_normal(25)}
noise = sm.Gaussian(0.1)

omega = {"omega": dist.Normal(2, 0.5)}
models = {
    "fixed": sm.Model(omega, predict=lambda p, x: jnp.sin(p["omega"] * x), noise=noise),
    "free": sm.Model(
        {**omega, "phi": dist.Normal(0, 0.3)}, predict=lambda p, x: jnp.sin(p["omega"] * x + p["phi"]), noise=noise
    ),
}

# %%
result = sm.compare(models, data, seed=0)
result

# %% [markdown]
# Two parameters can be integrated by quadrature. The two agree within the error.


# %%
def log_joint(theta, phase):
    """ln of prior times likelihood at rows (omega, phi), in NumPy."""
    means = np.sin(theta[:, :1] * x + (theta[:, 1:2] if phase else 0.0))
    prior = stats.norm.logpdf(theta[:, 0], 2, 0.5) + (stats.norm.logpdf(theta[:, 1], 0, 0.3) if phase else 0.0)
    return prior + stats.norm.logpdf(data["y"], means, 0.1).sum(axis=1)


box = [[-1.0, 5.0], [-2.0, 2.0]]
free = sm.exact.log_evidence_by_quadrature(lambda theta: log_joint(theta, True), box)
fixed = sm.exact.log_evidence_by_quadrature(lambda theta: log_joint(theta, False), box[:1])
exact = free.log_evidence - fixed.log_evidence
print(f"by quadrature ln B(free : fixed) = {exact:.4f}, found {result.log_bayes_factor('free', 'fixed')}")

# %%
axes = result.plot()

# %% [markdown]
# Which data drive the preference? And how well does each model predict a datum that it has not seen?

# %%
result.drivers()

# %%
result.loo()

# %% [markdown]
# For the paper: a paragraph with the numbers of this run, and BibTeX.

# %%
print(result.methods())
print(result.cite())
