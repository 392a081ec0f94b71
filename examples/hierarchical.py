"""Do eight schools differ? A hierarchical NumPyro model against a pooled one; evidences by quadrature beside it."""

import numpy as np
import numpyro
import numpyro.distributions as dist
from scipy import stats

import supermodel as sm

effect = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
error = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])


def hierarchical(error, y):
    mu = numpyro.sample("mu", dist.Normal(0, 10))
    tau = numpyro.sample("tau", dist.HalfNormal(10))
    with numpyro.plate("schools", len(error)):
        # Scaled deviations, not the effects themselves: where tau is small, those would be squeezed into a funnel.
        deviation = numpyro.sample("deviation", dist.Normal(0, 1))
        numpyro.sample("y", dist.Normal(mu + tau * deviation, error), obs=y)


def pooled(error, y):
    mu = numpyro.sample("mu", dist.Normal(0, 10))
    numpyro.sample("y", dist.Normal(mu, error), obs=y)


models = {
    "differ": sm.from_numpyro(hierarchical, error, effect),
    "same": sm.from_numpyro(pooled, error, effect),
}


def log_evidence(tau):
    """ln p(y | tau): mu and the deviations are integrated in closed form."""
    return stats.multivariate_normal.logpdf(effect, cov=np.diag(error**2 + tau**2) + 100.0)


taus = np.linspace(0, 100, 4001)
density = np.exp([log_evidence(tau) for tau in taus]) * stats.halfnorm.pdf(taus, scale=10)
truth = {"differ": float(np.log(np.trapezoid(density, taus))), "same": float(log_evidence(0.0))}

if __name__ == "__main__":
    result = sm.compare(models, seed=0)
    print(result)
    print("\nln Z by quadrature:", {name: round(value, 3) for name, value in truth.items()})
