"""An operation as the registry describes it, parsed: operands, scalars, outputs, and how sizes follow from axes."""

from collections.abc import Mapping, Sequence
from keyword import iskeyword
from math import isfinite
from typing import Any, NamedTuple

from forge.errors import BlobCorrupt, IntegrityError
from forge.lookup.sizes import is_size

SCHEMA_VERSION = 1
"""Version of an operation's description that is read. An older Forge refuses a newer one."""
TORCH_NAMES = {
    "fp32": "float32",
    "fp16": "float16",
    "bf16": "bfloat16",
    "fp64": "float64",
    "fp8_e4m3": "float8_e4m3fn",
    "int8": "int8",
    "uint8": "uint8",
    "int32": "int32",
    "int64": "int64",
    "bool": "bool",
}
"""Forge's names of element types -> torch's. A test compares them with those of `forge.domain`."""
_MALFORMED_ERRORS = (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError)
"""Errors that reading a malformed document raises; each becomes a refusal."""
Document = dict[str, Any]  # a published file is JSON: this module turns it into typed values or raises


class OutputBound(NamedTuple):
    """How far a kernel's output may lie from the reference's, for shadow calls."""

    kind: str
    """Kind of comparison: `close`, or one `step` of a coarse grid. `ranked` are positions, which aren't compared."""
    roundings: float
    """Largest difference in unit roundoffs of the value and of its row's root mean square."""
    share: float
    """Further difference that is allowed, as a share of the row's root mean square."""


class Operand(NamedTuple):
    """One operand: an axis that is a number is a fixed size."""

    name: str
    axes: tuple[str, ...]
    element: str | None
    """Element type; None: the type of the call."""
    times: Mapping[str, int]
    per: Mapping[str, int]
    at_most: Mapping[str, int]
    bound: OutputBound | None

    # Any: sizes are integers, or torch's symbols of them while a program is traced
    def sizes(self, shape: Mapping[str, Any]) -> tuple[Any, ...]:
        """Return the operand's sizes when the operation's axes have the sizes in `shape`."""
        return tuple(self._size(axis, shape) for axis in self.axes)

    def _size(self, axis: str, shape: Mapping[str, Any]) -> Any:
        if axis.isdecimal():
            return int(axis)
        size = shape[axis]
        if axis in self.times or axis in self.per:
            size = -(-size * self.times.get(axis, 1) // self.per.get(axis, 1))
        return min(size, self.at_most[axis]) if axis in self.at_most else size


class OperationForm(NamedTuple):
    """One operation."""

    op: str
    dtypes: tuple[str, ...]
    inputs: tuple[Operand, ...]
    scalars: Mapping[str, float]
    outputs: tuple[Operand, ...]
    updates: frozenset[str]
    layouts: frozenset[str]
    entry: str
    reduced_axis: str | None
    unfit: str | None
    """Why it can't be called as a plain function of tensors; None if it can."""
    fixed: Mapping[str, int]
    """Sizes of axes that no operand has."""
    sources: tuple[tuple[str, int, int, int], ...]
    """Axis, and where its size is read: the operand, its dimension, and the number of entries for each position."""

    @property
    def returned(self) -> tuple[Operand, ...]:
        """The outputs that a call returns: all but the operands that it writes in place."""
        return tuple(one for one in self.outputs if one.name not in self.updates)

    # Any: sizes are integers, or torch's symbols of them while a program is traced
    def read_shape(self, sizes: Sequence[Sequence[Any]]) -> dict[str, Any]:
        """Return each axis's size from the operands' sizes, of which the numbers of dimensions are right."""
        return {axis: sizes[operand][dim] // times for axis, operand, dim, times in self.sources}

    def shape_of(self, sizes: Sequence[tuple[int, ...]]) -> dict[str, int] | None:
        """Return each axis's size; None if the operands' sizes don't fit together."""
        if [len(one) for one in sizes] != [len(operand.axes) for operand in self.inputs]:
            return None
        shape: dict[str, int] = {**self.fixed, **self.read_shape(sizes)}
        fits = all(operand.sizes(shape) == tuple(one) for operand, one in zip(self.inputs, sizes, strict=True))
        return shape if fits else None


def parse_described(op: str, untrusted: bytes) -> OperationForm:
    """Return a published description; raise BlobCorrupt for none, IntegrityError for one of a newer schema."""
    import json

    try:
        document = json.loads(untrusted)
        version = document["schema_version"]
        if type(version) is int and version > SCHEMA_VERSION:
            raise IntegrityError(
                f"operation {op!r} is described in schema {version}, expected {SCHEMA_VERSION}: upgrade Forge"
            )
        found = _parsed(document)
        if version != SCHEMA_VERSION or found.op != op:
            raise ValueError(f"it describes {found.op!r} in schema {version!r}")
    except _MALFORMED_ERRORS as error:
        raise BlobCorrupt(
            f"the description of operation {op!r} can't be read: {str(error)[:200]!r}; describe it again",
            hint="forge op describe",
        ) from error
    return found


def _parsed(document: Document) -> OperationForm:
    inputs = tuple(map(_operand, document["inputs"]))
    outputs = tuple(map(_operand, document["outputs"]))
    scalars = {str(name): float(value) for name, value in document["scalars"].items()}
    names = [operand.name for operand in inputs] + list(scalars)
    if not inputs or len(set(names)) != len(names) or not all(map(_is_argument, names)):
        raise ValueError(
            f"its arguments are named {names}: expected at least one input, and a Python name of its own for each"
        )
    if not all(map(isfinite, scalars.values())):
        raise ValueError(f"its scalars are {scalars}: expected finite numbers")
    updates = frozenset(map(str, document["updates"]))
    if not updates <= {operand.name for operand in inputs}:
        raise ValueError(f"it updates {sorted(updates)} in place: expected only names of its inputs")
    dtypes = tuple(map(str, document["dtypes"]))
    if not set(dtypes) <= set(TORCH_NAMES):
        raise ValueError(f"it has the element types {dtypes}: expected only {', '.join(TORCH_NAMES)}")
    reduced = document.get("reduced_axis")
    return OperationForm(
        op=str(document["op"]),
        dtypes=dtypes,
        inputs=inputs,
        scalars=scalars,
        outputs=outputs,
        updates=updates,
        layouts=frozenset(map(str, document["layouts"])),
        entry=str(document["entry"]),
        reduced_axis=None if reduced is None else str(reduced),
        unfit=None if document["unfit"] is None else str(document["unfit"]),
        fixed=_counts(document.get("fixed", {})),
        sources=_sources(inputs, outputs),
    )


def _operand(untrusted: Document) -> Operand:
    element, bound = untrusted["element"], untrusted.get("bound")
    if not (element is None or element in TORCH_NAMES):
        raise ValueError(f"operand {untrusted['name']!r} has elements {element!r}")
    return Operand(
        name=str(untrusted["name"]),
        axes=tuple(map(_axis, untrusted["axes"])),
        element=element,
        times=_counts(untrusted["times"]),
        per=_counts(untrusted["per"]),
        at_most=_counts(untrusted["at_most"]),
        bound=None if bound is None else _bound(bound),
    )


def _is_argument(name: str) -> bool:
    """Return whether torch can have an argument of this name."""
    return name.isascii() and name.isidentifier() and not iskeyword(name)


def _axis(untrusted: object) -> str:
    """Return an axis's name, or the size of one that has no name."""
    if not isinstance(untrusted, str) or not (untrusted.isidentifier() or is_size(_number(untrusted))):
        raise ValueError(f"an operand has the axis {untrusted!r:.100}")
    return untrusted


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdecimal() else None


def _counts(untrusted: Document) -> dict[str, int]:
    for axis, count in untrusted.items():
        if not is_size(count) or count == 0:
            raise ValueError(f"axis {axis!r:.100} has the number {count!r:.100}: expected a whole one from 1 on")
    return dict(untrusted)


def _bound(untrusted: Document) -> OutputBound:
    kind = untrusted["kind"]
    if kind not in ("close", "step", "ranked"):
        raise ValueError(f"an output is bounded by {kind!r}")
    return OutputBound(kind, float(untrusted.get("roundings", 0)), float(untrusted.get("share", 0)))


def _sources(inputs: Sequence[Operand], outputs: Sequence[Operand]) -> tuple[tuple[str, int, int, int], ...]:
    """Return where each axis's size is read: where it stands as it is, or else times a number."""
    found: dict[str, tuple[str, int, int, int]] = {}
    for plain in (True, False):
        for place, operand in enumerate(inputs):
            for dim, axis in enumerate(operand.axes):
                told = axis not in operand.per and axis not in operand.at_most and not axis.isdecimal()
                if told and (axis not in operand.times) == plain:
                    found.setdefault(axis, (axis, place, dim, operand.times.get(axis, 1)))
    needed = {axis for operand in (*inputs, *outputs) for axis in operand.axes if not axis.isdecimal()}
    if needed - set(found):
        raise ValueError(f"no operand tells the sizes of {sorted(needed - set(found))}")
    return tuple(found.values())
