r"""Loops that a likelihood wrote out over the names of its parameters, done at once again.

`sum(p[f"b{i}"] * x[:, i] for i in range(300))` is traced as 300 slices, 300 products and 300 sums, over which XLA takes
seconds or minutes, and again for the gradient. As one product of arrays they take what a vector parameter takes. So
equations of a traced function that do the same to other numbers become one, on a *row* of them: the slices of an array
are a row, what is made alike from rows and constants is a row, and sums, stacks and concatenations take whole rows.
Sums are taken in another order then: results agree to rounding.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np

LOOP = 8  # equations from which on they are a loop: fewer are compiled quickly enough one by one
CALLS = ("jit", "pjit")  # what these call stands in their place: a loop may be in either
JOINED = {"stack": "axis", "concatenate": "dimension"}  # what puts arrays side by side, and its parameter for where
NUMBERS = (bool, int, float, *map(np.dtype, ("bool", "int32", "int64", "float32", "float64")))  # of constants in rows
LONG = ("add", *JOINED)  # what takes whole rows
NESTED = ("add", "concatenate")  # of those, what may be written as one of others


def rolled(trace: Any) -> Callable[..., Any] | None:
    """The function of a closed jaxpr of one output, with its written-out loops done at once; None if it has none."""
    if trace.jaxpr.effects:
        return None
    program = _Program(trace)
    return program if program.is_rolled else None


class _Line(NamedTuple):
    """One equation. Values are known by numbers."""

    equation: Any
    inputs: tuple[int, ...]  # more than two of a sum that was written as many
    outputs: tuple[int, ...]

    @property
    def name(self) -> str:
        return self.equation.primitive.name

    @property
    def is_long(self) -> bool:
        return self.name in LONG and len(self.inputs) >= LOOP

    @property
    def axis(self) -> int | None:
        """The axis of which it takes one element; None where it is no slice, or another one."""
        if self.name != "slice" or self.equation.params["strides"] is not None:
            return None
        sizes, shape = self.equation.outvars[0].aval.shape, self.equation.invars[0].aval.shape
        cut = [axis for axis, (size, whole) in enumerate(zip(sizes, shape, strict=True)) if size != whole]
        return cut[0] if len(cut) == 1 and sizes[cut[0]] == 1 else None

    def apply(self, *inputs: Any) -> list[Any]:
        primitive = self.equation.primitive
        bound = primitive.get_bind_params(self.equation.params)
        functions, parameters = bound if isinstance(bound, tuple) else ((), bound)  # of JAX before 0.10, and since
        result = primitive.bind(*functions, *inputs, **parameters)
        return list(result) if primitive.multiple_results else [result]


class _Place(NamedTuple):
    """Where a value stands: in which row, known by the number of one of its members, and in which lane of it."""

    row: int
    lane: int


class _Program:
    """The lines of a traced function, in groups that are done at once."""

    def __init__(self, trace: Any):
        self.count = 0
        self.constants: dict[int, Any] = {}
        self.places: dict[int, _Place] = {}
        self.stacks: dict[tuple[int, ...], Any] = {}  # of constants: one copy for all that is compiled
        self.arguments = self._new(len(trace.jaxpr.invars))
        lines: list[_Line] = []
        (self.result,) = self._inlined(trace, self.arguments, lines)
        self.groups = list(self._grouped(_merged(_needed(lines, self.result), self.result)))
        self.is_rolled = any(self._is_loop(group) for group in self.groups)

    def __call__(self, *arguments: Any) -> Any:
        values = _Values(self, dict(zip(self.arguments, arguments, strict=True)))
        for group in self.groups:
            values.compute(group)
        return values.read(self.result)

    # -- lines ----------------------------------------------------------------------------------------------------

    def _new(self, n: int) -> tuple[int, ...]:
        self.count += n
        return tuple(range(self.count - n, self.count))

    def _constant(self, value: Any) -> int:
        (number,) = self._new(1)
        self.constants[number] = getattr(value, "val", value)
        return number

    def _inlined(self, trace: Any, inputs: Sequence[int], lines: list[_Line]) -> list[int]:
        """Append all lines of a closed jaxpr, and those of what it calls in their place; the numbers of its outputs."""
        known = dict(zip(trace.jaxpr.constvars, map(self._constant, trace.consts), strict=True))
        known.update(zip(trace.jaxpr.invars, inputs, strict=True))

        def read(variable: Any) -> int:
            return self._constant(variable) if hasattr(variable, "val") else known[variable]

        for equation in trace.jaxpr.eqns:
            numbers = tuple(map(read, equation.invars))
            if equation.primitive.name in CALLS:
                outputs: Sequence[int] = self._inlined(equation.params["jaxpr"], numbers, lines)
            else:
                outputs = self._new(len(equation.outvars))
                lines.append(_Line(equation, numbers, tuple(outputs)))
            known.update(zip(equation.outvars, outputs, strict=True))
        return list(map(read, trace.jaxpr.outvars))

    # -- groups ---------------------------------------------------------------------------------------------------

    def _grouped(self, lines: list[_Line]) -> Iterator[list[_Line]]:
        """Groups in an order in which they can be computed: no line needs another one of its level."""
        level: Counter[int] = Counter()
        for line in lines:
            above = 1 + max((level[number] for number in line.inputs), default=0)
            level.update(dict.fromkeys(line.outputs, above))

        def level_of(line: _Line) -> int:
            return level[line.outputs[0]]

        for _, here in groupby(sorted(lines, key=level_of), level_of):
            alike: dict[Hashable, list[_Line]] = {}
            for line in here:
                alike.setdefault(self._kind(line), []).append(line)
            for group in alike.values():
                if len(group) < LOOP:
                    yield from ([line] for line in group)
                else:
                    self._place(group)
                    yield group

    def _kind(self, line: _Line) -> Hashable:
        """Lines of one kind can be done at once."""
        if line.axis is not None:
            return "slice", line.inputs, line.axis
        parameters = line.equation.params
        try:
            hash(tuple(parameters.values()))
        except TypeError:
            return line.outputs
        # Branches and loops would be done in all lanes if in one, and derivatives of the user's may not take rows.
        if line.is_long or any(hasattr(value, "eqns") or callable(value) for value in parameters.values()):
            return line.outputs
        return line.name, tuple(sorted(parameters.items())), tuple(map(self._kind_of_value, line.inputs))

    def _kind_of_value(self, number: int) -> Hashable:
        if number in self.places:
            return "row", self.places[number].row
        import jax

        value: Any = self.constants.get(number)
        kind = getattr(value, "dtype", type(value))
        if isinstance(value, jax.core.Tracer) or kind not in NUMBERS:
            return "value", number
        return "constant", np.shape(value), str(kind)

    def _place(self, group: list[_Line]) -> None:
        axis = group[0].axis
        for each in zip(*(line.outputs for line in group), strict=True):
            for lane, (number, line) in enumerate(zip(each, group, strict=True)):
                at = lane if axis is None else line.equation.params["start_indices"][axis]
                self.places[number] = _Place(each[0], at)

    def _is_loop(self, group: list[_Line]) -> bool:
        """Whether a group is more than numbers taken out of an array."""
        if len(group) > 1:
            return group[0].axis is None
        return group[0].is_long and any(len(run) >= LOOP for _, run in self.runs(group[0].inputs))

    def runs(self, numbers: Sequence[int]) -> list[tuple[int | None, list[int]]]:
        """Neighbours of one row, with the row; values that are in none stand alone."""

        def row(number: int) -> tuple[int | None, int]:
            place = self.places.get(number)
            return (None, number) if place is None else (place.row, 0)

        return [(key[0], list(run)) for key, run in groupby(numbers, row)]


def _needed(lines: list[_Line], result: int) -> list[_Line]:
    """Lines on which the result depends."""
    wanted, kept = {result}, []
    for line in reversed(lines):
        if wanted.intersection(line.outputs):
            wanted.update(line.inputs)
            kept.append(line)
    return kept[::-1]


def _merged(lines: list[_Line], result: int) -> list[_Line]:
    """Sums that are terms of one other sum, and of nothing else, as one sum of many, where they are many; and joins."""
    uses = Counter(number for line in lines for number in line.inputs)
    uses[result] += 1
    by_output = {line.outputs[0]: line for line in lines if line.name in NESTED}
    made_of: dict[int, list[_Line]] = {}  # of the outermost, itself and all within it
    inputs: dict[int, tuple[int, ...]] = {}
    for number, line in by_output.items():  # each after those within it
        within = [n for n in line.inputs if uses[n] == 1 and n in made_of and _same(by_output[n], line)]
        inputs[number] = tuple(t for n in line.inputs for t in (inputs[n] if n in within else (n,)))
        made_of[number] = [line, *(inner for n in within for inner in made_of.pop(n))]
    long = {number for number in made_of if len(inputs[number]) >= LOOP}
    gone = {inner.outputs[0] for number in long for inner in made_of[number]} - long
    return [
        line._replace(inputs=inputs[line.outputs[0]]) if line.outputs[0] in long else line
        for line in lines
        if line.outputs[0] not in gone
    ]


def _same(one: _Line, other: _Line) -> bool:
    return one.name == other.name and one.equation.params == other.equation.params


class _Values:
    """What is known while a program is run: single values by number, and rows, whose first axis is that of lanes."""

    def __init__(self, program: _Program, single: dict[int, Any]):
        self.program, self.single = program, single
        self.rows: dict[int, Any] = {}
        self.products: dict[int, tuple[Any, Any]] = {}  # rows that are numbers times arrays, not multiplied out

    def read(self, number: int) -> Any:
        if number not in self.single:
            place = self.program.places.get(number)
            known = self.program.constants[number] if place is None else self._row(place.row)[place.lane]
            self.single[number] = known
        return self.single[number]

    def compute(self, group: list[_Line]) -> None:
        """Do all lines of a group."""
        first = group[0]
        if len(group) > 1:
            self._compute_row(group)
        elif first.is_long:
            self.single[first.outputs[0]] = self._sum(first) if first.name == "add" else self._join(first)
        else:
            self.single.update(zip(first.outputs, first.apply(*map(self.read, first.inputs)), strict=True))

    def _compute_row(self, group: list[_Line]) -> None:
        import jax
        import jax.numpy as jnp

        first = group[0]
        if first.axis is not None:
            array = jnp.moveaxis(self.read(first.inputs[0]), first.axis, 0)
            self.rows[first.outputs[0]] = jnp.expand_dims(array, 1 + first.axis)
            return
        arrays, axes = zip(*map(self._together, zip(*(line.inputs for line in group), strict=True)), strict=True)
        if first.name == "mul" and axes == (0, 0) and min(map(np.ndim, arrays)) == 1:
            one, other = sorted(arrays, key=np.ndim)
            self.products[first.outputs[0]] = one, other
        elif set(axes) == {None}:
            each = [jnp.broadcast_to(out, (len(group), *jnp.shape(out))) for out in first.apply(*arrays)]
            self.rows.update(zip(first.outputs, each, strict=True))
        else:
            self.rows.update(zip(first.outputs, jax.vmap(first.apply, axes)(*arrays), strict=True))

    def _row(self, row: int) -> Any:
        if row not in self.rows:
            numbers, arrays = self.products[row]
            self.rows[row] = numbers.reshape(-1, *[1] * (arrays.ndim - 1)) * arrays
        return self.rows[row]

    def _together(self, numbers: tuple[int, ...]) -> tuple[Any, int | None]:
        """One value for each lane, and the axis of lanes; none where all are the same."""
        first, constants = numbers[0], self.program.constants
        if first in self.program.places:
            return self._lanes(numbers), 0
        if all(number == first for number in numbers):
            return self.read(first), None
        if numbers not in self.program.stacks:
            self.program.stacks[numbers] = np.stack([constants[number] for number in numbers])
        stack = self.program.stacks[numbers]
        return (constants[first], None) if stack.ndim == 1 and np.all(stack == stack[0]) else (stack, 0)

    def _lanes(self, numbers: Sequence[int]) -> Any:
        """Members of one row, as an array."""
        return self._taken(self._row(self.program.places[numbers[0]].row), numbers)

    def _taken(self, row: Any, numbers: Sequence[int]) -> Any:
        lanes = [self.program.places[number].lane for number in numbers]
        if lanes == list(range(lanes[0], lanes[0] + len(lanes))):
            return row[lanes[0] : lanes[0] + len(lanes)]
        return row[np.array(lanes)]

    def _sum(self, line: _Line) -> Any:
        import jax.numpy as jnp

        places = self.program.places
        by_row = sorted(line.inputs, key=lambda number: places[number].row if number in places else -1)
        total: Any = None
        for row, run in self.program.runs(by_row):
            if row is None or len(run) < LOOP:
                terms = list(map(self.read, run))
            elif row in self.products:
                numbers, arrays = (self._taken(factor, run) for factor in self.products[row])
                terms = [jnp.tensordot(numbers, arrays, 1)]
            else:
                array = self._lanes(run)
                terms = [array.sum(axis=0, dtype=array.dtype)]
            for term in terms:
                total = term if total is None else total + term
        return total

    def _join(self, line: _Line) -> Any:
        import jax.numpy as jnp

        axis = line.equation.params[JOINED[line.name]]
        parts: list[Any] = []
        for row, run in self.program.runs(line.inputs):
            if row is None or len(run) < LOOP:
                each = list(map(self.read, run))
                parts += [jnp.expand_dims(one, axis) for one in each] if line.name == "stack" else each
                continue
            array = jnp.moveaxis(self._lanes(run), 0, axis)
            if line.name == "concatenate":  # of each lane, as much as it has
                array = array.reshape(*array.shape[:axis], -1, *array.shape[axis + 2 :])
            parts.append(array)
        return parts[0] if len(parts) == 1 else jnp.concatenate(parts, axis)
