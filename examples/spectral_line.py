"""Is there a line in a noisy spectrum, at an unknown place? The price of searching is in the prior on that place."""

import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist

import supermodel as sm

rng = np.random.default_rng(6)
channel = np.arange(80.0)
sigma = 1.0
profile = 3.2 * np.exp(-0.5 * ((channel - 33.0) / 2.5) ** 2)
data = {"x": channel, "y": 10 + 0.02 * channel + profile + sigma * rng.standard_normal(80), "sigma": sigma}

continuum = {"level": dist.Normal(10, 3), "tilt": dist.Normal(0, 0.1)}
line = {"height": dist.HalfNormal(4), "centre": dist.Uniform(0, 80), "width": dist.LogNormal(jnp.log(2.5), 0.2)}

models = {
    "continuum": sm.Model(continuum, predict=lambda p, x: p["level"] + p["tilt"] * x),
    "continuum and line": sm.Model(
        continuum | line,
        predict=lambda p, x: (
            p["level"] + p["tilt"] * x + p["height"] * jnp.exp(-0.5 * ((x - p["centre"]) / p["width"]) ** 2)
        ),
    ),
}

# Given centre and width the rest is closed; a Gauss rule of 1200 x 24 points over those two.
truth = {"continuum": -137.810, "continuum and line": -121.142}

if __name__ == "__main__":
    result = sm.compare(models, data, seed=0)
    print(result)
    print("\nln Z by quadrature:", truth)
