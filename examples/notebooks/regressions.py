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
# # Regressions in one line
#
# Student's sleep data: hours of extra sleep of ten patients under two drugs. R's BayesFactor gives ln B = 2.8483 for a
# difference, with its default prior; so do we.

# %%
import supermodel as sm

first = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0]
second = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4]

test = sm.ttest(second, first, paired=True)
test

# %% [markdown]
# A formula spans all models between the null and the full one. Which terms belong in it is told by the inclusion Bayes factors.

# %%
import numpy as np

rng = np.random.default_rng(0)
dose, age = rng.uniform(0, 3, 40), rng.uniform(20, 60, 40)
data = {"dose": dose, "age": age, "y": 1 + 0.8 * dose + 0.5 * rng.standard_normal(40)}

result = sm.regression("y ~ dose * age", data)
result

# %%
result.inclusion()

# %% [markdown]
# A sentence for the paper.

# %%
print(test.apa())
print(result.sentence())
