"""Tables of strings in four dresses: text, Markdown, LaTeX, HTML. What a user named is escaped in each."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from markupsafe import escape

from supermodel.errors import SupermodelError, suggestion
from supermodel.estimation.estimate import Estimate
from supermodel.report.numbers import mean_and_sd, number, probability, shown
from supermodel.verdict.verdict import LEVELS

if TYPE_CHECKING:
    from supermodel.results.comparison import Comparison
    from supermodel.results.posterior import ModelPosterior
    from supermodel.results.ranking import Matrix, Ranking

UNUSABLE = {"fail": "Verdict FAIL: do not use these numbers.", "limit": "Verdict LIMIT: bounds only."}

RESTS = {"fail": "do not use what rests on it", "limit": "only a bound is known of what rests on it"}  # of one model

_LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "±": r"$\pm$", "∞": r"$\infty$", "−": "$-$", "⟨": r"$\langle$", "⟩": r"$\rangle$", "×": r"$\times$",
    "σ": r"$\sigma$",
    "–": "--", "·": r"$\cdot$", "≥": r"$\geq$", "≤": r"$\leq$", "—": "---",
}  # fmt: skip


def level_of(result: Comparison, name: str) -> str:
    """How a model's posterior is shown: by its own verdict, or that of the whole if it is milder (where only its ln Z fails)."""
    return min(result.verdict_of(name).level, result.verdict.level, key=LEVELS.index)


def mark(level: str) -> str:
    """A level beside a number; those that forbid its use are loud."""
    return level.upper() if level in UNUSABLE else level


def heading(result: Comparison, name: str) -> str:
    """A model's name above or beside its posterior, with its level where others can be used and it cannot."""
    level = level_of(result, name)
    return f"{name} ({mark(level)})" if result.excluded and level in UNUSABLE else name


def unusable(level: str, levels: Mapping[str, str] | None = None) -> list[str]:
    """Notes of what is not to be used: all, or with `levels` of each model, those that failed."""
    if not levels:
        return [UNUSABLE[level]] if level in UNUSABLE else []
    found = {each: [name for name, own in levels.items() if own == each] for each in UNUSABLE}
    return [f"Verdict {each.upper()} for {', '.join(names)}: {RESTS[each]}." for each, names in found.items() if names]


def latex_escape(text: str) -> str:
    r"""Text that LaTeX will print as it is.

    >>> print(latex_escape("a_b & 50%"))
    a\_b \& 50\%
    """
    return re.sub(r"(?<![A-Za-z])(-)(?=\d)", "$-$", "".join(_LATEX.get(c, c) for c in text))


def markdown_escape(text: str) -> str:
    """Text that Markdown will show as it is, inside a table as well."""
    return re.sub(r"([\\`*_\[\]|])", r"\\\1", text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


class Tex(str):
    """A cell that is written otherwise in LaTeX."""

    tex: str

    def __new__(cls, plain: str, tex: str) -> Tex:
        cell = super().__new__(cls, plain)
        cell.tex = tex
        return cell

    def __getnewargs__(self) -> tuple[Any, ...]:  # for copies
        return str(self), self.tex


_NUMBER = r"[+\-−]?\d[\d.]*(?:e[+-]?\d+)?"
_NUMBERS = re.compile(rf"[<>]? ?{_NUMBER}(?: ?(?:±|×) ?<?(?:{_NUMBER}|10\^-?\d+|∞))?(?: × 10\^-?\d+)?")
_HEADS = {
    r"\bln B\b": r"$\ln B$", r"\bln Z\b": r"$\ln Z$", r"⟨ln L⟩": r"$\langle\ln L\rangle$", r"^R-hat$": r"$\hat{R}$",
    r"^P\(model\|data\)$": r"$P(\mathrm{model}\mid\mathrm{data})$", r"^rhat$": r"$\hat{R}$",
}  # fmt: skip


def latex_cell(cell: str) -> str:
    r"""A cell as a journal prints it: numbers in math, exponents as powers of ten.

    >>> print(latex_cell("-5.02 ± 0.01"), latex_cell("1.2e-07"), latex_cell("a_b"), latex_cell("3.1 × 10^12"))
    $-5.02 \pm 0.01$ $1.2 \times 10^{-7}$ a\_b $3.1 \times 10^{12}$
    """
    if isinstance(cell, Tex):
        return cell.tex
    if not _NUMBERS.fullmatch(cell):
        return latex_escape(cell)
    if both := re.fullmatch(r"([+-]?[\d.]+)e([+-]\d+) ± ([\d.]+)e([+-]\d+)", cell):  # one power of ten for both
        (value, error), (a, b) = (float(both[1]), float(both[3])), (int(both[2]), int(both[4]))
        top, decimals = max(a, b), 1 + max(a - b, 0)
        scaled = rf"{value * 10.0 ** (a - top):.{decimals}f} \pm {error * 10.0 ** (b - top):.{decimals}f}"
        return rf"$({scaled}) \times 10^{{{top}}}$"
    text = re.sub(
        r"e([+-]?)0*(\d+)", lambda m: rf" \times 10^{{{m[1].replace('+', '')}{m[2]}}}", cell.replace("−", "-")
    )
    text = re.sub(r"10\^(-?\d+)", r"10^{\1}", text)
    return "$" + text.replace("± <", "± {<}").replace("±", r"\pm").replace("×", r"\times").replace("∞", r"\infty") + "$"


def latex_head(cell: str) -> str:
    """The head of a column: what is mathematics is set as such."""
    for pattern, tex in _HEADS.items():
        before, found, after = _split(pattern, cell)
        if found:
            return latex_escape(before) + tex + latex_escape(after)
    return latex_cell(cell)


def _split(pattern: str, text: str) -> tuple[str, str, str]:
    found = re.search(pattern, text)
    return (text[: found.start()], found.group(), text[found.end() :]) if found else (text, "", "")


SNIPPET_STYLE = (
    "<style>.supermodel table{border-collapse:collapse;margin:.4em 0}"
    ".supermodel td,.supermodel th{padding:.15em .6em;text-align:right}.supermodel p{margin:.3em 0}"
    ".supermodel .name{text-align:left}.supermodel .note,.supermodel .made{opacity:.7;font-size:.9em}</style>"
)


def dressed(head: str, text: str, *parts: str) -> str:
    """What a notebook shows: a headline, a line beneath it, and parts that are HTML already."""
    line = f"<br>{escape(text)}" if text else ""
    above = f"<p><b>{escape(head)}</b>{line}</p>" if head else ""
    return f'{SNIPPET_STYLE}<div class="supermodel">{above}{"".join(parts)}</div>'


@dataclass(frozen=True)
class Cells:
    """A table ready to be printed: strings, with names to the left and numbers to the right."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    left: frozenset[int] = frozenset({0})
    note: str = ""

    def text(self) -> str:
        """Aligned columns of plain text."""
        widths = [max(len(row[i]) for row in (self.header, *self.rows)) for i in range(len(self.header))]
        lines = [
            "  ".join(
                f"{c:<{w}}" if i in self.left else f"{c:>{w}}" for i, (c, w) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in (self.header, *self.rows)
        ]
        return "\n".join(lines + ([self.note] if self.note else []))

    def __str__(self) -> str:
        return self.text()

    __repr__ = __str__

    def markdown(self) -> str:
        """A Markdown table."""
        rule = "|" + "|".join(":---" if i in self.left else "---:" for i in range(len(self.header))) + "|"
        lines = ["| " + " | ".join(markdown_escape(c) for c in row) + " |" for row in (self.header, *self.rows)]
        return (
            "\n".join([lines[0], rule, *lines[1:]] + ([f"\n{markdown_escape(self.note)}"] if self.note else [])) + "\n"
        )

    def only(self, columns: Sequence[str] | None) -> Cells:
        """These columns, by their heads or the beginnings of those, in this order."""
        if columns is None:
            return self
        places = []
        for wanted in columns:
            found = [i for i, head in enumerate(self.header) if head == wanted] or [
                i for i, head in enumerate(self.header) if head.startswith(wanted)
            ]
            if not found:
                raise SupermodelError(
                    f"the table has no column {wanted!r}; its columns are {', '.join(map(repr, self.header))}. "
                    f"{suggestion(wanted, self.header)}"
                )
            places.append(found[0])
        return Cells(
            tuple(self.header[i] for i in places), tuple(tuple(row[i] for i in places) for row in self.rows),
            frozenset(new for new, old in enumerate(places) if old in self.left), self.note,
        )  # fmt: skip

    def latex(self) -> str:
        """A LaTeX tabular for the package booktabs, numbers in math."""
        columns = "".join("l" if i in self.left else "r" for i in range(len(self.header)))
        heads = [map(latex_head, self.header), *(map(latex_cell, row) for row in self.rows)]
        lines = [" & ".join(row) + r" \\" for row in heads]
        body = [
            rf"\begin{{tabular}}{{{columns}}}",
            r"\toprule",
            lines[0],
            r"\midrule",
            *lines[1:],
            r"\bottomrule",
            r"\end{tabular}",
        ]
        return "\n".join(body + ([f"% {' '.join(self.note.split())}"] if self.note else [])) + "\n"

    def _repr_html_(self) -> str:
        return dressed("", "", self.html())

    def html(self) -> str:
        """An HTML table."""

        def row(cells: Sequence[str], tag: str) -> str:
            side = [' class="name"' if i in self.left else "" for i in range(len(cells))]
            return (
                "<tr>" + "".join(f"<{tag}{s}>{escape(c)}</{tag}>" for c, s in zip(cells, side, strict=True)) + "</tr>"
            )

        body = "".join(row(r, "td") for r in self.rows)
        note = f'<p class="note">{escape(self.note)}</p>' if self.note else ""
        return (
            f'<div class="wide"><table><thead>{row(self.header, "th")}</thead><tbody>{body}</tbody></table></div>{note}'
        )


def ranking_cells(ranking: Ranking) -> Cells:
    """The ranking; columns that nobody filled are left out."""
    trusted = ranking.level not in UNUSABLE or bool(ranking.excluded)
    columns: list[tuple[str, list[str]]] = [("model", [row.model for row in ranking])]
    if any(row.log_evidence is not None for row in ranking):
        columns.append(("ln Z", [shown(row.log_evidence) if row.log_evidence is not None else "–" for row in ranking]))
    if len(ranking) > 1:
        columns.append(
            (
                f"ln B vs {ranking.reference}",
                [_against(row.log_bayes_factor, row.model == ranking.reference) for row in ranking],
            )
        )
        against = [row.level for row in ranking if row.model != ranking.reference]
        if len(set(against)) > 1:
            marks = ["–" if row.model == ranking.reference else mark(row.level) for row in ranking]
            columns.append(("verdict", marks))
        columns.append(("P(model|data)", [probability(row.probability) if trusted else "–" for row in ranking]))
    columns += [
        ("params", [str(row.n_parameters) for row in ranking]),
        ("fit ⟨ln L⟩", [number(row.fit) for row in ranking]),
        ("Occam", [number(row.occam) for row in ranking]),
        ("ESS", [number(row.effective_size, ".0f") for row in ranking]),
        ("R-hat", [number(row.rhat) for row in ranking]),
        ("crossings", [number(row.crossings, ".0f") for row in ranking]),
    ]
    kept = [(name, cells) for i, (name, cells) in enumerate(columns) if i == 0 or set(cells) != {"–"}]
    note = UNUSABLE.get(ranking.level, "")
    if ranking.excluded:
        note = f"P(model|data) is among the models that could be weighed; not weighed: {', '.join(ranking.excluded)}."
    return Cells(tuple(n for n, _ in kept), tuple(zip(*(c for _, c in kept), strict=True)), note=note)


def _against(estimate: Estimate, is_reference: bool) -> str:
    if is_reference:
        return "–"
    if math.isinf(estimate.error) and math.isfinite(estimate.value):  # the value itself is the limit
        return f"{'>' if estimate.value >= 0 else '<'} {estimate.value:.1f}"
    return shown(estimate, sign=True)


def matrix_cells(matrix: Matrix) -> Cells:
    """ln B of the row's model over the column's, each with its own level where they differ."""
    rows, n = [], len(matrix.names)
    differ = len(set(matrix.levels[~np.eye(n, dtype=bool)])) > 1
    for i, name in enumerate(matrix.names):
        cells = [_against(Estimate(matrix.values[i, j], matrix.errors[i, j]), i == j) for j in range(n)]
        marks = [f" {mark(level)}" if differ and level != "ok" else "" for level in matrix.levels[i]]
        rows.append((name, *(cell + each for cell, each in zip(cells, marks, strict=True))))
    return Cells(("ln B(row : column)", *matrix.names), tuple(rows))


def prior_cells(result: Comparison) -> Cells:
    """Every parameter and its prior in every model: who shares what, and with which prior."""
    parameters = list(dict.fromkeys(p for priors in result.priors.values() for p in priors))
    rows = []
    for parameter in parameters:
        cells = [getattr(result.priors.get(name, {}).get(parameter), "description", "–") for name in result.names]
        own = [c for c in cells if c != "–"]
        said = "one model" if len(own) == 1 else ("shared" if len(set(own)) == 1 else "shared name, different priors")
        rows.append((result.name_of(parameter), *cells, said))
    return Cells(("parameter", *result.names, "who has it"), tuple(rows), left=frozenset(range(len(result.names) + 2)))


def parameter_cells(result: Comparison, most: int = 40) -> Cells:
    """Posterior mean and standard deviation of every scalar, model by model, and averaged over models."""
    labels = list(dict.fromkeys((p, index) for n in result.names for p, index in all_scalars(result.posteriors[n])))
    rows = []
    for parameter, index in labels[:most]:
        cells = []
        for name in result.names:
            posterior = result.posteriors[name]
            if (parameter, index) not in all_scalars(posterior):
                cells.append("–")
                continue
            cells.append(mean_and_sd(float(posterior.mean(parameter)[index]), float(posterior.sd(parameter)[index])))
        rows.append((result.name_of(parameter, index), *cells))
    note = f"{len(labels) - most} more: result.summary() has all." if len(labels) > most else ""
    heads = (heading(result, name) for name in result.names)
    return Cells(("parameter (mean ± sd)", *heads), tuple(rows), note=note)


def scalars(posterior: ModelPosterior) -> list[tuple[str, tuple[int, ...]]]:
    """(parameter, index) of each number in a model's parameters; the index of a scalar is ()."""
    return [(p, index) for p, values in posterior.parameters.items() for index in np.ndindex(*values.shape[1:])]


MOST_DERIVED = 64  # numbers of a deterministic site that tables show: more are mostly a curve at the data


def all_scalars(posterior: ModelPosterior) -> list[tuple[str, tuple[int, ...]]]:
    """The same, and those of deterministic sites that are not too many."""
    derived = getattr(posterior, "derived", {}).items()
    few = [(name, values.shape[1:]) for name, values in derived if np.prod(values.shape[1:]) <= MOST_DERIVED]
    return scalars(posterior) + [(name, index) for name, shape in few for index in np.ndindex(*shape)]


def scalar_values(posterior: ModelPosterior, parameter: str, index: tuple[int, ...]) -> np.ndarray:
    """(n,): the draws of one number."""
    values: Any = posterior.parameters[parameter] if parameter in posterior.parameters else posterior.derived[parameter]
    return values[:, *index]


def straight_values(posterior: ModelPosterior, parameter: str, index: tuple[int, ...]) -> np.ndarray:
    """(n,): the same for tables and pictures; of a number that goes round a circle, within half a turn of its mean."""
    if parameter in getattr(posterior, "circles", {}):
        return posterior.straight(parameter)[:, *index]
    return scalar_values(posterior, parameter, index)


def symmetry_lines(posteriors: Mapping[str, Any]) -> list[str]:
    """Of each model, in sentences: its symmetries and the order of its labels; and what goes round a circle."""
    lines = []
    for name, posterior in posteriors.items():
        lines += [f"{name}: {sentence}." for sentence in posterior.symmetries if not is_plain_circle(sentence)]
        if posterior.unfolder is not None:
            lines.append(f"{name}: ln Z counts all its images, and posterior({name!r}).unfolded() has them all.")
    circles = list(dict.fromkeys(p for posterior in posteriors.values() for p in posterior.circles))
    if circles:
        goes = "goes" if len(circles) == 1 else "go"
        lines.append(
            f"{', '.join(circles)} {goes} round a circle: mean, sd and quantiles are about the circular mean, and a number beyond "
            "the prior's ends is the same angle."
        )
    return lines


def is_plain_circle(sentence: str) -> bool:
    """Whether a sentence on a symmetry says no more than that a parameter goes round."""
    return " goes round a circle of " in sentence and " repeats " not in sentence


def scalar_label(parameter: str, index: tuple[int, ...]) -> str:
    """`beta[2]`."""
    return parameter + (f"[{','.join(map(str, index))}]" if index else "")


def weighted_quantiles(values: np.ndarray, weights: np.ndarray, levels: tuple[float, ...]) -> np.ndarray:
    """Quantiles of weighted draws (n,)."""
    order = np.argsort(values)
    below = np.cumsum(weights[order])
    return np.interp(levels, (below - 0.5 * weights[order]) / below[-1], values[order])
