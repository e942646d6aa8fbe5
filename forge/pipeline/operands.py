"""Operands that the user declares for a reference file: parses them and compares them with the arguments."""

import ast
import warnings
from collections.abc import Sequence
from dataclasses import dataclass

from forge.domain.tensors import DTYPES, TORCH_NAMES, ElementType
from forge.errors import UnknownName, UsageError
from forge.lab.reference.describe import Declared
from forge.lab.sources.long_tokens import too_long

DECLARED: tuple[ElementType, ...] = (*DTYPES, "int32", "int64")
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

    Operands are passed by position. Arguments that the source text alone doesn't show are checked in the sandbox,
    which runs the file.
    """
    called = _called(source, function)
    if not operands or called is None:
        return
    names = [one.name for one in operands]
    for name in names[: None if not called.open_ended else len(called.arguments)]:
        if name not in called.arguments:
            raise UnknownName(f"operand of {called.name}", name, list(called.arguments))
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
    if too_long(source.decode(errors="replace")):
        return None
    try:
        with warnings.catch_warnings(action="ignore"):  # warnings about the user's file are not ours to show
            body = ast.parse(source).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    models = [one for one in body if isinstance(one, ast.ClassDef) and one.name == MODEL]
    if models and not function:
        within = [one for one in models[-1].body if isinstance(one, ast.FunctionDef) and one.name == "forward"]
        return _signature(within[-1], skip=1) if within else None
    defined = {one.name: one for one in body if isinstance(one, ast.FunctionDef)}
    own = [function] if function else [one for one in defined if not one.startswith("_") and one not in GENERATORS]
    return _signature(defined[own[0]]) if len(own) == 1 and own[0] in defined else None


def _signature(function: ast.FunctionDef, *, skip: int = 0) -> _Called:
    given = [*function.args.posonlyargs, *function.args.args][skip:]
    names = tuple(one.arg if one.arg.isascii() else f"input_{place}" for place, one in enumerate(given))
    required = max(0, len(names) - len(function.args.defaults))
    return _Called(f"{function.name}()", names, required, function.args.vararg is not None)


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
    low, _, high = limits.partition("..")
    whole = known not in DTYPES
    if whole != (_is_whole(low) and _is_whole(high)) or (whole and int(low) > int(high)):
        raise _bad_operand(untrusted_text)
    return Declared(
        name=name,
        dtype=TORCH_NAMES[known],
        sizes=tuple(map(int, sizes)),
        low=int(low) if whole else None,
        high=int(high) if whole else None,
    )


def _is_whole(text: str) -> bool:
    digits = text.removeprefix("-")
    return digits.isascii() and digits.isdecimal() and len(digits) <= 18


def _bad_operand(untrusted_text: str) -> UsageError:
    return UsageError(
        f"bad operand {untrusted_text[:200]!r}: expected name=TYPE[SIZES], as in x=fp32[16,64], with a range for "
        f"integers, as in index=int64[16]:0..99; types: {', '.join(DECLARED)}"
    )
