"""What can be wrong with a user's input, told in five parts: what, where, the value, why it matters, what to do.

Numerical trouble is never raised from here: it is a sentence in the verdict of a result.
"""

import difflib
from collections.abc import Iterable


def suggestion(word: str, known: Iterable[str]) -> str:
    """Did you mean ...? Empty where nothing is near."""
    names = sorted(known)
    near = difflib.get_close_matches(word, names, n=1, cutoff=0.6) or [n for n in names if n.lower() == word.lower()]
    return f"Did you mean {near[0]!r}?" if near else ""


class SupermodelError(ValueError):
    """Anything that `supermodel` refuses."""


class ModelError(SupermodelError):
    """A model whose parts do not fit: names, shapes, a likelihood that returns the wrong thing."""


class PriorError(SupermodelError):
    """A prior that is improper, unnormalised, discrete, or of a kind that is not understood."""


class DataError(SupermodelError):
    """Data that are missing, of the wrong shape, or not the same for all models."""


class CoordinateError(SupermodelError):
    """A coordinate alpha whose map does not reach the models, or whose prior is not a density."""


class StorageError(SupermodelError):
    """A file that is damaged, foreign, or belongs to another run."""
