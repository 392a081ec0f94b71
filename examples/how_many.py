"""How many planets? Nobody says where to look: circular orbits are counted in simulated radial velocities."""

import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist

import supermodel as sm

rng = np.random.default_rng(4)
t = np.sort(rng.uniform(0, 120, 50))  # days
two = 9.0 * np.sin(2 * np.pi * t / 9.3 + 0.7) + 5.0 * np.sin(2 * np.pi * t / 31.0 - 1.1)
data = {"t": t, "y": 1.5 + two + 2.2 * rng.standard_normal(50), "error": np.full(50, 2.2)}  # m/s


def orbit(p, t):
    angle = 2 * jnp.pi * t / p["P"]
    return p["a"] * jnp.sin(angle) + p["b"] * jnp.cos(angle)


size = dist.Normal(0, 8)
planet = sm.Component({"P": dist.LogUniform(2, 100), "a": size, "b": size}, orbit, name="planet", period="P")
star = sm.Component({"offset": dist.Normal(0, 10)}, lambda p: p["offset"])

# Given the periods the rest is linear and closed; the middles of 4000 intervals in the logarithm of each period.
truth = {"no planet": -368.553, "1 planet": -184.490, "2 planets": -133.586}

if __name__ == "__main__":
    result = sm.count(planet, data, background=star, noise=sm.Gaussian("error"), most=3, seed=0)
    print(result)
    print("\nln Z by quadrature:", truth)
