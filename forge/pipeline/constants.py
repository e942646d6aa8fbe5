"""Writes other numbers in place of those that a reference file assigns to names, such as `batch_size = 4096`.

Nothing is executed: the syntax tree says where a value stands, and only these bytes change.
"""

import ast
import re
from collections import Counter
from collections.abc import Iterator, Sequence

from forge.domain.parsed_source import parse_source
from forge.errors import UnknownName, UsageError

_SETTING = re.compile(r"([A-Za-z_]\w{0,63})=(-?\d{1,18}(?:\.\d{1,18})?)")
"""Pattern of a constant's name with its value."""


def with_constants(source: bytes, untrusted_texts: Sequence[str]) -> bytes:
    """Return the file with numbers like `batch_size=16` in place of its own.

    Raise UsageError for a bad text, a repeated name, and one that the file doesn't assign exactly once.
    """
    numbers: dict[str, str] = {}
    for text in untrusted_texts:
        match = _SETTING.fullmatch(text)
        if match is None:
            raise UsageError(f"constant {text!r}: expected NAME=NUMBER, such as batch_size=16")
        if match[1] in numbers:
            raise UsageError(f"constant {match[1]!r} is given twice: expected one --constant for each name")
        numbers[match[1]] = match[2]
    if not numbers:
        return source
    places = _places(source)
    for name in numbers:
        if name not in places:
            raise UnknownName("constant of the reference", name, sorted(places))
    for name in sorted(numbers, key=lambda one: -places[one][0]):
        begin, end = places[name]
        source = source[:begin] + numbers[name].encode() + source[end:]
    return source


def _places(source: bytes) -> dict[str, tuple[int, int]]:
    """Return where the value of each name stands that the module assigns once, and from numbers alone."""
    try:
        tree = parse_source(source, filename="reference.py")
    except SyntaxError as error:
        raise UsageError(f"the reference doesn't parse: {error}; expected Python") from error
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    found: dict[str, tuple[int, int]] = {}
    for name, value in _assigned(tree):
        assert value.end_lineno is not None
        assert value.end_col_offset is not None
        begin = starts[value.lineno - 1] + value.col_offset
        found[name] = begin, starts[value.end_lineno - 1] + value.end_col_offset
    once = _bound_once(tree)
    return {name: place for name, place in found.items() if name in once}


def _assigned(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    """Yield the names that the module gives a number, alone or as in `depth, height = 16, 32`."""
    for statement in tree.body:
        match statement:
            case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)):
                pairs = list(zip(targets, values, strict=False)) if len(targets) == len(values) else []
            case ast.Assign(targets=[target], value=value):
                pairs = [(target, value)]
            case _:
                pairs = []
        for target, value in pairs:
            if isinstance(target, ast.Name) and _is_number(value):
                yield target.id, value


def _is_number(node: ast.expr) -> bool:
    """Return whether an expression is a number, or computes one from numbers alone."""
    pending: list[ast.expr] = [node]  # no recursion: a sum may have a thousand terms
    while pending:
        match pending.pop():
            case ast.UnaryOp(operand=operand):
                pending.append(operand)
            case ast.BinOp(left=left, right=right):
                pending += (left, right)
            case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
                pass
            case _:
                return False
    return True


def _bound_once(tree: ast.Module) -> set[str]:
    """Return the names that one statement of the module binds, and that no function declares global."""
    bound = Counter(
        node.id
        for statement in tree.body
        if not isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        for node in ast.walk(statement)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    )
    declared = {name for node in ast.walk(tree) if isinstance(node, ast.Global) for name in node.names}
    return {name for name, times in bound.items() if times == 1} - declared
