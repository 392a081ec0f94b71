"""How many planets? No, one or two circular orbits in simulated radial velocities, with a fitted jitter."""

import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist

import supermodel as sm

rng = np.random.default_rng(4)
t = np.sort(rng.uniform(0, 60, 45))  # days
reported = 2.0  # m/s, the error bars; the star adds its own jitter
velocity = 12.0 * np.sin(2 * np.pi * t / 9.3 + 0.7) + 5.0 * np.sin(2 * np.pi * t / 23.0 - 1.1) + 1.5
data = {"t": t, "y": velocity + np.hypot(reported, 1.0) * rng.standard_normal(t.size), "sigma": reported}

# Amplitudes of sine and cosine rather than amplitude and phase: no angle that wraps around.
WINDOWS = {1: (8.0, 11.0), 2: (19.0, 28.0)}  # days, around the peaks of a periodogram


def star(n_planets):
    priors = {"offset": dist.Normal(0, 10), "jitter": dist.HalfNormal(3)}
    for k in range(1, n_planets + 1):
        priors |= {f"period{k}": dist.Uniform(*WINDOWS[k]), f"a{k}": dist.Normal(0, 10), f"b{k}": dist.Normal(0, 10)}

    def predict(p, t):
        total = p["offset"] + 0.0 * t
        for k in range(1, n_planets + 1):
            angle = 2 * jnp.pi * t / p[f"period{k}"]
            total = total + p[f"a{k}"] * jnp.sin(angle) + p[f"b{k}"] * jnp.cos(angle)
        return total

    noise = sm.Gaussian(lambda known: jnp.hypot(known["sigma"], known["jitter"]))
    return sm.Model(priors, predict=predict, noise=noise)


models = {"no planet": star(0), "one planet": star(1), "two planets": star(2)}

# Given periods and jitter the rest is linear and closed; Gauss-Legendre rules of 300 x 90 x 90 points over those three.
truth = {"no planet": -171.997, "one planet": -138.300, "two planets": -121.422}

if __name__ == "__main__":
    result = sm.compare(models, data, seed=0)
    print(result)
    print("\nln Z by quadrature:", truth)
