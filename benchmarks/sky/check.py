"""|ln Z(coarse) - ln Z(fine)| for every family: `python -m benchmarks.sky.check [--smc] [families]`.

With `--smc` also the answer of a sequential Monte Carlo sampler that knows only the priors and the likelihood; it is right to
0.1 or so where no needle hides the peak, and shows a wrong constant or Jacobian.
"""

from __future__ import annotations

import sys
import time

import numpy as np

from benchmarks.sky import FAMILIES
from benchmarks.sky.truths import tempered


def by_sampling(side, seed: int = 0, n: int = 3000, moves: int = 12) -> float:
    """ln Z from the priors and the likelihood alone, in the parameters' unbounded coordinates."""
    import jax
    import jax.numpy as jnp
    from numpyro.distributions.transforms import biject_to

    jax.config.update("jax_enable_x64", True)
    priors = dict(side.priors())
    shapes = {name: tuple(prior.batch_shape) for name, prior in priors.items()}
    maps = {name: biject_to(prior.support.base_constraint if shapes[name] else prior.support) if hasattr(
        prior.support, "base_constraint") else biject_to(prior.support) for name, prior in priors.items()}  # fmt: skip

    def flat(values):
        return np.concatenate([np.asarray(values[name]).reshape(len(values[name]), -1) for name in priors], axis=1)

    def split(x):
        out, at = {}, 0
        for name, shape in shapes.items():
            size = int(np.prod(shape))
            out[name] = x[:, at : at + size].reshape(len(x), *shape)
            at += size
        return out

    def draw(rng, m):
        key = jax.random.PRNGKey(int(rng.integers(2**31)))
        keys = jax.random.split(key, len(priors))
        values = {name: prior.sample(k, (m,)) for k, (name, prior) in zip(keys, priors.items(), strict=True)}
        return np.clip(flat({name: maps[name].inv(value) for name, value in values.items()}), -1e6, 1e6)

    @jax.jit
    def prior_and_values(x):
        u = split(x)
        values = {name: maps[name](u[name]) for name in priors}
        total = jnp.zeros(len(x))
        for name, prior in priors.items():
            term = prior.log_prob(values[name]) + maps[name].log_abs_det_jacobian(u[name], values[name])
            total = total + term.reshape(len(x), -1).sum(axis=1)
        return total, values

    def log_prior(x):
        return np.nan_to_num(np.asarray(prior_and_values(x)[0]), nan=-np.inf)

    def log_like(x):
        values = {name: np.asarray(value, float) for name, value in prior_and_values(x)[1].items()}
        with np.errstate(all="ignore"):
            return np.concatenate([
                side.log_likelihood({name: value[i : i + 2000] for name, value in values.items()}, np)
                for i in range(0, len(x), 2000)
            ])  # fmt: skip

    return tempered(draw, log_prior, log_like, n, np.random.default_rng([5, seed]), moves)[1]


def traced_agrees(side) -> float:
    """The largest gap between the likelihood traced by JAX and the same by NumPy, at points of the prior."""
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)
    keys = jax.random.split(jax.random.PRNGKey(3), 64)
    values = {name: prior.sample(keys[i], (20,)) for i, (name, prior) in enumerate(side.priors().items())}
    traced = jax.vmap(lambda p: side.log_likelihood(p, jnp))(values)
    with np.errstate(all="ignore"):
        plain = side.log_likelihood({name: np.asarray(value, float) for name, value in values.items()}, np)
    assert traced.shape == (20,) and np.shape(plain) == (20,), (traced.shape, np.shape(plain))
    return float(np.max(np.abs(np.asarray(traced) - plain) / (1 + np.abs(plain))))


def main(names: list[str], smc: bool, seeds=(0, 1), n: int = 3000) -> None:
    for name in names or FAMILIES:
        for seed in seeds:
            for label, side in FAMILIES[name](seed).sides.items():
                start = time.time()
                first = side.log_evidence()
                middle = time.time()
                second = side.log_evidence(2.0)
                line = f"{name:24s} {seed} {label:12s} {first:12.4f} {second:12.4f} {second - first:+.1e}"
                line += f"  {middle - start:5.1f} s {time.time() - middle:5.1f} s"
                if smc:
                    began = time.time()
                    line += f"  traced {traced_agrees(side):.0e}"
                    line += f"  sampled {by_sampling(side, n=n) - first:+.3f} ({time.time() - began:.0f} s)"
                print(line, flush=True)


if __name__ == "__main__":
    sizes = [int(a[4:]) for a in sys.argv[1:] if a.startswith("--n=")]
    main([a for a in sys.argv[1:] if not a.startswith("--")], "--smc" in sys.argv, n=(sizes or [3000])[0])
