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
# # A black-box likelihood
#
# Counts in four detectors. Do they share one rate, or has each its own? Any Python function serves as the likelihood; this
# one takes arrays (`vectorized=True`), so that many points cost one call.

# %%
import numpy as np
from scipy import stats
from scipy.special import gammaln

import supermodel as sm

counts = np.array([3, 9, 4, 7])
prior = stats.gamma(2.3, scale=2.5)


def separate(p):
    rates = np.stack([p[f"rate{i}"] for i in range(4)], axis=-1)
    return stats.poisson.logpmf(counts, rates).sum(axis=-1)


def pooled(p):
    return stats.poisson.logpmf(counts, p["rate"][:, None]).sum(axis=-1)


models = {
    "separate": sm.Model({f"rate{i}": prior for i in range(4)}, separate, vectorized=True),
    "pooled": sm.Model({"rate": prior}, pooled, vectorized=True),
}

# %% [markdown]
# `min_ess` asks for posteriors with as many effective draws, beyond what ln B needs. A line below the cell tells how far it is.

# %%
result = sm.compare(models, seed=0, min_ess=400)
result

# %% [markdown]
# Gamma priors and Poisson counts have a closed form, to check it.


# %%
def closed(n, exposure, shape=2.3, rate=0.4):
    norm = shape * np.log(rate) - gammaln(shape)
    return norm + gammaln(shape + n) - (shape + n) * np.log(rate + exposure)


exact = np.sum(closed(counts, 1.0)) - closed(counts.sum(), 4.0)
print(f"exact ln B(separate : pooled) = {exact:.4f}, found {result.log_bayes_factor('separate', 'pooled')}")

# %% [markdown]
# Every parameter of every model, with what it rests on. It is a pandas table.

# %%
result.summary()

# %%
axes = result.plot()

# %% [markdown]
# Would another prior have changed the answer? No likelihood is called for this.

# %%
result.sensitivity("rate", scales=[0.5, 1, 2])
