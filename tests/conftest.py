"""What every test starts from: double precision, a fixed seed, no display, compiled code kept between runs."""

import os

os.environ.setdefault("MPLBACKEND", "Agg")
os.environ.setdefault("JAX_PLATFORMS", "cpu")
# Matrices here are small. With a worker per core, threads of BLAS that wait for each other took a third of all time.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import jax
import numpy as np
import pytest
from hypothesis import HealthCheck, settings

DEFAULT_SEED = 20160907
SEED = int(os.environ.get("SUPERMODEL_TEST_SEED", DEFAULT_SEED))

# The first example of a property compiles, so no deadline. With the default seed hypothesis repeats itself as the
# keys do; a sweep of SUPERMODEL_TEST_SEED lets it look elsewhere.
settings.register_profile(
    "supermodel",
    deadline=None,
    derandomize="SUPERMODEL_TEST_SEED" not in os.environ,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("supermodel")


def pytest_configure(config):
    # Set here and not in the environment: a test that starts a Python of its own must see what a user sees.
    jax.config.update("jax_enable_x64", True)
    # Tracing is paid each time, compiling once: the workers of xdist and the next run share what is on disk.
    jax.config.update("jax_compilation_cache_dir", str(config.cache.mkdir("jax")))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)


def pytest_report_header(config):
    return f"SUPERMODEL_TEST_SEED={SEED}"


@pytest.fixture(autouse=True)
def each_comparison_is_a_statement_of_its_own(monkeypatch):
    """After Ctrl-C the next comparison of one script is not begun; tests are many scripts, and one that resumes is another."""
    from supermodel.engine import interrupts

    monkeypatch.setattr(interrupts, "_statement", object)


@pytest.fixture(scope="session")
def seed() -> int:
    """Seed of the whole run, from SUPERMODEL_TEST_SEED."""
    return SEED


@pytest.fixture(scope="session")
def key(seed):
    """The JAX key of the run; split or fold it, never use it twice for what must be independent."""
    return jax.random.key(seed)


@pytest.fixture
def rng(seed) -> np.random.Generator:
    """A fresh NumPy generator for each test."""
    return np.random.default_rng(seed)
