"""`supermodel count planets.toml`: how many components the data of a file hold."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from supermodel.counting.result import Count

NUMBERS = {"most": "weigh up to so many components", "least": "and no fewer than so many"}


def add_arguments(sub: argparse.ArgumentParser) -> None:
    """The arguments of the command, without those that other commands have."""
    text = "TOML ([data], [component] and what is behind it: formulas and priors, never run as code)"
    sub.add_argument("file", type=Path, metavar="FILE.toml", help=text)
    for name, text in NUMBERS.items():
        sub.add_argument(f"--{name}", type=int, metavar="N", help=text + " (default: as the file says)")


def asked(args: argparse.Namespace, options: dict[str, Any]) -> Count:
    """The answer to a command line, which goes before the file."""
    from supermodel.spec.count import read_count

    numbers = {name: value for name in NUMBERS if (value := getattr(args, name)) is not None}
    return read_count(args.file, args.data_root).count(**numbers, **options)
