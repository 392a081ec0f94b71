"""The options of `compare`, one row each: what a value must be, and where it may be given.

`compare` checks its arguments by these rows, a TOML file its [run], the command line its flags. A new option is one
row here and one argument of `compare`. Nothing heavy is imported: `supermodel --help` reads this table too.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from supermodel.errors import SupermodelError


class Option(NamedTuple):
    """`read` turns what is given into the argument of `compare`, or raises; `must` says what it then ought to be."""

    name: str
    default: Any
    must: str
    read: Callable[[Any], Any]
    help: str
    words: tuple[str, ...] = ()  # what follows the flag on the command line, as its help shows it
    word: Callable[[str], Any] = str  # each of them as a value
    not_in_toml: str = ""  # the reason, where it is not offered
    not_a_flag: str = ""
    called: str = ""  # on the command line, where that is another name

    @property
    def flag(self) -> str:
        return "--" + (self.called or self.name).replace("_", "-")

    @property
    def flags(self) -> tuple[str, ...]:
        """All names on the command line: also that of the argument of `compare`."""
        return tuple(dict.fromkeys((self.flag, "--" + self.name.replace("_", "-"))))

    def checked(self, value: Any, label: str = "") -> Any:
        """The value as `compare` uses it; an error names the option as the user wrote it."""
        try:
            return self.read(value)
        except (TypeError, ValueError, OverflowError):
            raise SupermodelError(f"`{label or self.name}` must be {self.must}; got {value!r}.") from None

    def from_words(self, words: Sequence[str]) -> Any:
        """The value that stands on the command line after the flag."""
        try:
            values = [self.word(word) for word in words]
        except ValueError:
            values = list(words)  # no number: refused below, as it was written
        return self.checked(values[0] if len(self.words) == 1 else values, self.flag)


def checked(name: str, value: Any) -> Any:
    """An argument of `compare`; None, where that is the default, stays None."""
    option = BY_NAME[name]
    return None if value is None and option.default is None else option.checked(value)


# -- what a value may be --------------------------------------------------------------------------------------------


def _number(value: Any) -> float:
    if isinstance(value, bool | str) or str(getattr(value, "dtype", "")) == "bool":
        raise TypeError
    return float(value)


def _such(value: Any, holds: bool) -> Any:
    if not holds:
        raise ValueError
    return value


def _positive(value: Any) -> float:
    number = _number(value)
    return _such(number, number > 0)  # a limit may be infinite


def _finite(value: Any) -> float:
    return _such(_positive(value), math.isfinite(value))


def _count(value: Any) -> float:
    number = _such(_number(value), _number(value) >= 1)
    return int(number) if math.isfinite(number) else number


def _draws(value: Any) -> float:
    return _such(_positive(value), value <= 50_000)


def _seed(value: Any) -> int:
    return _such(int(value), int(_number(value)) == value and 0 <= value < 2**32)


def _interval(value: Any) -> tuple[float, float]:
    low, high = (_number(end) for end in value)
    return _such((low, high), low <= high)


def _odds(value: Mapping[str, Any]) -> dict[str, float]:
    odds = {name: _number(odd) for name, odd in dict(value).items()}
    return _such(odds, all(odd >= 0 for odd in odds.values()) and 0 < sum(odds.values()) < math.inf)


def _names_or_all(value: Any) -> bool | list[str]:
    if isinstance(value, bool):
        return value
    names = [value] if isinstance(value, str) else list(value)
    return _such(names, all(isinstance(name, str) for name in names))


def _truth(value: Any) -> bool:
    return _such(value, isinstance(value, bool))


def _executor(value: Any) -> Any:
    if isinstance(value, int) and not isinstance(value, bool):
        return _such(value, value >= 1)
    return _such(value, callable(getattr(value, "map", None)))


def one_of(*known: str) -> Callable[[Any], str]:
    """Reads one of these words."""
    return lambda value: _such(value, isinstance(value, str) and value in known)


METHODS = (
    "auto",
    "mixture",
    "product",
    "index",
    "blend",
    "blend_product",
)  # also in embedding: a test holds both together
ON_ERROR = ("raise", "reject")
MISSING = ("raise", "drop", "keep")
EFFORTS = ("auto", "quick", "thrifty", "patient", "thorough")
IN_FILE = "it belongs to the models, and stands in the file beside them"

OPTIONS = (
    Option("seed", 0, "a whole number from 0 to 2^32 - 1", _seed, "seed of all randomness", ("N",), int),
    Option("target_error", 0.1, "a positive number", _finite, "error of ln B at which to stop", ("E",), float),
    Option("decide", None, "two numbers, low <= high", _interval,
           "stop once ln B is surely above HIGH, below LOW or between them", ("LOW", "HIGH"), float),
    Option("method", "auto", f"one of {', '.join(METHODS)}", one_of(*METHODS),
           "auto, or the paper's recipe: " + ", ".join(METHODS[1:]), ("METHOD",)),
    Option("share", True, "true, false, a name or a list of names", _names_or_all, "which parameters the models share",
           not_a_flag=IN_FILE),
    Option("prior_odds", None, "a table of numbers from 0 up, which must not all be zero", _odds,
           "how likely each model was before", not_a_flag=IN_FILE),
    Option("max_evaluations", None, "a number from 1 up", _count, "stop after so many likelihood calls", ("N",), float),
    Option("max_seconds", None, "a positive number", _positive, "stop after this time with what is known", ("S",), float),
    Option("min_ess", None, "a positive number up to 50 000 (no more draws are handed out)", _draws,
           "effective draws that every parameter of every posterior must have", ("N",), float),
    Option("explore", "auto", f"one of {', '.join(EFFORTS)}", one_of(*EFFORTS),
           "how hard to look for every mode: " + ", ".join(EFFORTS), ("EFFORT",)),
    Option("on_error", "raise", f"one of {', '.join(ON_ERROR)}", one_of(*ON_ERROR),
           "where a likelihood is NaN or raises: raise, or reject such points as impossible", ("WHAT",)),
    Option("missing", "raise", f"one of {', '.join(MISSING)}", one_of(*MISSING),
           "where data are missing or infinite: raise, drop rows that miss one, or keep them", ("WHAT",)),
    Option("checkpoint", None, "the path of a file", os.fspath, "keep the run there, and resume from it", ("FILE",),
           not_in_toml="a file that is passed around must not say where to write"),
    Option("executor", None, "a number of worker processes from 1 up, or an executor with `map`, e.g. "
           "concurrent.futures.ThreadPoolExecutor(4)", _executor, "worker processes for plain-Python likelihoods", ("N",), int,
           called="workers", not_in_toml="it is about the machine, not about the comparison"),
    Option("progress", None, "true, false or None", _truth, "whether to show progress",
           not_in_toml="it is about the terminal, not about the comparison",
           not_a_flag="it shows itself on a terminal only, and --json silences it"),
)  # fmt: skip
BY_NAME = {option.name: option for option in OPTIONS}
IN_TOML = tuple(option for option in OPTIONS if not option.not_in_toml)
FLAGS = tuple(option for option in OPTIONS if not option.not_a_flag)
NOT_OF_COUNT = ("decide", "method", "share", "prior_odds")  # they are about models that differ in more than a number
OF_COUNT = tuple(option.name for option in OPTIONS if option.name not in NOT_OF_COUNT)
