"""Operands that the user declares for a reference file: parses them and compares them with the arguments."""

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass

from forge.domain.parsed_source import parse_source
from forge.domain.tensors import DTYPES, TORCH_NAMES, ElementType
from forge.errors import UnknownName, UsageError
from forge.lab.reference.describe import Declared, DeclaredAxis, DeclaredRange, Place

DECLARED: tuple[ElementType, ...] = (*DTYPES, "int8", "uint8", "int32", "int64", "bool")
"""Element types of declared operands. A float operand always gets the task's type."""
MOST_AXES, NAME_LIMIT = 8, 64
"""Largest number of sizes of an operand, and largest length of its name, as in the contract that they become."""
MODEL, GENERATORS = "Model", ("get_inputs", "get_init_inputs")


@dataclass(frozen=True)
class _Called:
    """The arguments of a reference: their names in order, how many are required, and whether it accepts more."""

    name: str
    arguments: tuple[str, ...]
    required: int
    open_ended: bool
    generated: bool
    """True if the file defines get_inputs(), which draws the arguments that aren't declared."""


def parse_operands(untrusted_texts: Sequence[str]) -> tuple[Declared, ...]:
    """Parse operands like `x=fp32[16,64]` and `index=int64[16]:0..99`; raise UsageError for bad or repeated ones."""
    operands = tuple(_parse_operand(text) for text in untrusted_texts)
    names = [one.name for one in operands]
    twice = next((name for place, name in enumerate(names) if name in names[:place]), None)
    if twice is not None:
        raise UsageError(f"operand {twice!r} is declared twice: expected one --operand for each argument")
    return operands


def require_arguments(operands: Sequence[Declared], source: bytes, *, function: str) -> None:
    """Raise UsageError unless the operands are the reference's arguments in their order.

    Operands are passed by position. Beside get_inputs(), some of the arguments are enough, in any order. Arguments
    that the source text alone doesn't show are checked in the sandbox, which runs the file.
    """
    called = _called(source, function)
    if not operands or called is None:
        return
    names = [one.name for one in operands]
    for name in names[: None if not called.open_ended else len(called.arguments)]:
        if name not in called.arguments:
            raise UnknownName(f"operand of {called.name}", name, list(called.arguments))
    if called.generated and len(names) < len(called.arguments):
        return
    expected = called.arguments[: len(names)]
    missing = [name for name in called.arguments[: called.required] if name not in names]
    if missing:
        raise UsageError(f"{called.name} has no operand for {missing[0]!r}: expected one --operand for each argument")
    if tuple(names[: len(expected)]) != expected:
        raise UsageError(
            f"the operands {', '.join(names)} aren't in the order of {called.name}, which is called by position: "
            f"expected --operand for {', '.join(expected)}, in this order"
        )


def _called(source: bytes, function: str) -> _Called | None:
    """Return the function that the sandbox will use as reference; None if the text alone doesn't show it."""
    try:
        body = parse_source(source).body
    except SyntaxError:
        return None
    generated = any(isinstance(one, ast.FunctionDef) and one.name == GENERATORS[0] for one in body)
    models = [one for one in body if isinstance(one, ast.ClassDef) and one.name == MODEL]
    if models and not function:
        within = [one for one in models[-1].body if isinstance(one, ast.FunctionDef) and one.name == "forward"]
        return _signature(within[-1], generated=generated, skip=1) if within else None
    defined = {one.name: one for one in body if isinstance(one, ast.FunctionDef)}
    own = [function] if function else [one for one in defined if not one.startswith("_") and one not in GENERATORS]
    return _signature(defined[own[0]], generated=generated) if len(own) == 1 and own[0] in defined else None


def _signature(function: ast.FunctionDef, *, generated: bool, skip: int = 0) -> _Called:
    given = [*function.args.posonlyargs, *function.args.args][skip:]
    names = tuple(one.arg if one.arg.isascii() else f"input_{place}" for place, one in enumerate(given))
    required = max(0, len(names) - len(function.args.defaults))
    return _Called(f"{function.name}()", names, required, function.args.vararg is not None, generated)


def _parse_operand(untrusted_text: str) -> Declared:
    name, _, rest = untrusted_text.partition("=")
    form, _, limits = rest.partition(":")
    element, opened, sizes_text = form.partition("[")
    known = next((one for one in DECLARED if one == element), None)
    sizes = sizes_text.removesuffix("]").split(",")
    plain = untrusted_text.isascii() and name.isidentifier() and len(name) <= NAME_LIMIT
    fits = plain and known and opened and sizes_text.endswith("]") and len(sizes) <= MOST_AXES
    if not (fits and known and all(one.isdecimal() and 1 <= int(one) <= 2**31 for one in sizes)):
        raise _bad_operand(untrusted_text)
    low, high = _parse_limits(untrusted_text, limits, known)
    return Declared(name=name, dtype=TORCH_NAMES[known], sizes=tuple(map(int, sizes)), low=low, high=high)


def _parse_limits(untrusted_text: str, limits: str, element: ElementType) -> tuple[float | None, float | None]:
    """Return the smallest and the largest value; None for floats without a range, and for truth values."""
    low, separator, high = limits.partition("..")
    is_float = element in DTYPES
    if not limits and (is_float or element == "bool"):
        return None, None
    number = _number if is_float else _whole
    ends = number(low), number(high)
    if element == "bool" or not separator or ends[0] is None or ends[1] is None or ends[0] > ends[1]:
        raise _bad_operand(untrusted_text)
    kept = _KEPT.get(element)
    if (is_float and ends[0] == ends[1]) or (kept is not None and not (kept[0] <= ends[0] and ends[1] <= kept[1])):
        raise _bad_operand(untrusted_text)
    return ends


_KEPT: dict[ElementType, tuple[int, int]] = {"int8": (-128, 127), "uint8": (0, 255), "int32": (-(2**31), 2**31 - 1)}
"""Smallest and largest number of an element type; ranges of int64 are limited by their digits."""


def _whole(text: str) -> int | None:
    digits = text.removeprefix("-")
    return int(text) if digits.isascii() and digits.isdecimal() and len(digits) <= 18 else None


def _number(text: str) -> float | None:
    return float(text) if re.fullmatch(r"-?[0-9]{1,18}(\.[0-9]{1,18})?(e-?[0-9]{1,2})?", text) else None


def parse_axes(untrusted_texts: Sequence[str]) -> tuple[DeclaredAxis, ...]:
    """Parse axes like `batch=index.0` or `seq=x.1,mask.1`; raise UsageError for bad or repeated ones."""
    axes = tuple(_parse_axis(text) for text in untrusted_texts)
    _require_once([axis.name for axis in axes], "axis", "--axis")
    _require_once([".".join(map(str, place)) for axis in axes for place in axis.places], "size", "--axis")
    return axes


def parse_ranges(untrusted_texts: Sequence[str]) -> tuple[DeclaredRange, ...]:
    """Parse ranges of sizes like `hidden.1=1..8192`; raise UsageError for bad or repeated ones."""
    ranges = tuple(_parse_range(text) for text in untrusted_texts)
    _require_once([".".join(map(str, one.place)) for one in ranges], "size", "--vary")
    return ranges


def _require_once(names: Sequence[str], what: str, option: str) -> None:
    twice = next((name for place, name in enumerate(names) if name in names[:place]), None)
    if twice is not None:
        raise UsageError(f"the {what} {twice!r} is declared twice: expected it in one {option}")


def _parse_axis(untrusted_text: str) -> DeclaredAxis:
    name, _, rest = untrusted_text.partition("=")
    places = tuple(_parse_place(one) for one in rest.split(","))
    if not re.fullmatch(r"[a-z][a-z0-9_]{0,31}", name) or None in places:
        raise UsageError(
            f"bad axis {untrusted_text[:200]!r}: expected name=OPERAND.SIZE, as in batch=index.0, or several sizes "
            "that are one axis, as in seq=x.1,mask.1; sizes count from 0"
        )
    return DeclaredAxis(name=name, places=tuple(one for one in places if one is not None))


def _parse_range(untrusted_text: str) -> DeclaredRange:
    place_text, _, limits = untrusted_text.partition("=")
    place = _parse_place(place_text)
    low, separator, high = limits.partition("..")
    ends = _whole(low), _whole(high)
    if place is None or not separator or ends[0] is None or ends[1] is None or not 1 <= ends[0] < ends[1] <= 2**31:
        raise UsageError(
            f"bad range {untrusted_text[:200]!r}: expected OPERAND.SIZE=LOW..HIGH, as in hidden.1=1..8192; sizes "
            "count from 0"
        )
    return DeclaredRange(place=place, low=ends[0], high=ends[1])


def _parse_place(text: str) -> Place | None:
    name, _, dim = text.rpartition(".")
    fits = name.isascii() and name.isidentifier() and len(name) <= NAME_LIMIT and re.fullmatch(r"[0-7]", dim)
    return (name, int(dim)) if fits else None


def _bad_operand(untrusted_text: str) -> UsageError:
    return UsageError(
        f"bad operand {untrusted_text[:200]!r}: expected name=TYPE[SIZES], as in x=fp32[16,64] or "
        f"x=fp32[16,64]:-1..1, with a range for integers, as in index=int64[16]:0..99; types: {', '.join(DECLARED)}"
    )
