"""Which variables matter? Logistic regression with every subset of two doubtful variables beside a sure one."""

from itertools import combinations

import numpy as np
import numpyro.distributions as dist

import supermodel as sm

rng = np.random.default_rng(3)
n = 120
columns = {name: rng.standard_normal(n) for name in ("dose", "age", "weight")}
log_odds = 0.3 + 1.4 * columns["dose"] - 0.9 * columns["age"]  # weight has no part in it
data = {**columns, "y": (rng.random(n) < 1 / (1 + np.exp(-log_odds))).astype(float)}


def logistic(variables):
    def predict(p, data):
        return p["intercept"] + sum(p[f"slope of {name}"] * data[name] for name in variables)

    priors = {"intercept": dist.Normal(0, 2)} | {f"slope of {name}": dist.Normal(0, 1) for name in variables}
    return sm.Model(priors, predict=lambda p, everything: predict(p, everything), noise=sm.Binomial())


doubtful = ("age", "weight")
subsets = [("dose", *chosen) for k in range(3) for chosen in combinations(doubtful, k)]
models = {" + ".join(variables): logistic(variables) for variables in subsets}

# Gauss-Hermite rules of 14 points in each parameter, about the mode.
truth = {"dose": -64.674, "dose + age": -60.103, "dose + weight": -65.622, "dose + age + weight": -60.894}

if __name__ == "__main__":
    result = sm.compare(models, data, seed=0)
    print(result)
    print("\nln Z by quadrature:", truth)
    # A variable's own probability is the sum over the models that have it.
    for variable in doubtful:
        print(f"P({variable} matters) = {sum(p for name, p in result.probabilities.items() if variable in name):.3f}")
