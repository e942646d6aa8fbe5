"""Constraints between parameters: a small closed form of expressions, which is parsed and never executed.

A constraint compares whole numbers, names of parameters, strings and `+ - * // %` of them. `and` and `or` join
comparisons. Its text is read into Python's syntax tree, and every kind of node that isn't listed here is refused.
"""

import ast
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from forge.domain.authoring import ParameterValue
from forge.domain.parsed_source import parse_source
from forge.errors import UsageError

LONGEST = 300
"""Number of characters of a constraint, at most. With values up to 2^53 it also bounds the numbers in between."""
FORM = "comparisons of parameters and numbers with + - * // %, joined by and, or"
"""Words for what a constraint may be, for messages."""
_ARITHMETIC: Mapping[type[ast.operator], Callable[[int | float, int | float], int | float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_COMPARISON: Mapping[type[ast.cmpop], Callable[[ParameterValue, ParameterValue], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}


class _Unmet(Exception):
    """A constraint has no value for these numbers, such as a remainder by zero."""


@dataclass(frozen=True)
class Constraint:
    """One parsed constraint."""

    text: str
    names: frozenset[str]
    """Parameters that it speaks of."""
    _tree: ast.expr

    def holds(self, values: Mapping[str, ParameterValue]) -> bool:
        """Return whether the values meet the constraint; a division by zero or past every float doesn't."""
        try:
            return _truth(self._tree, values)
        except _Unmet:
            return False


def parse_constraint(untrusted: str, parameters: frozenset[str]) -> Constraint:
    """Return the constraint; raise UsageError if it has another form or an unknown name."""
    if len(untrusted) > LONGEST:
        raise UsageError(f"a constraint of {len(untrusted)} characters: expected at most {LONGEST}; write several")
    try:
        tree = parse_source(untrusted.strip(), mode="eval").body
    except SyntaxError as error:
        raise UsageError(f"bad constraint {untrusted!r}: {_said(error)}; expected {FORM}") from error
    _require_form(tree, untrusted)
    names = frozenset(node.id for node in ast.walk(tree) if isinstance(node, ast.Name))
    unknown = sorted(names - parameters)
    if unknown:
        known = ", ".join(sorted(parameters))
        raise UsageError(f"bad constraint {untrusted!r}: no parameter is called {unknown[0]!r}; expected {known}")
    return Constraint(untrusted, names, tree)


def _said(error: Exception) -> str:
    return error.msg if isinstance(error, SyntaxError) else "it can't be read"


def _require_form(tree: ast.expr, text: str) -> None:
    """Raise UsageError for any node that isn't part of the form."""
    match tree:
        case ast.BoolOp(values=parts):
            for part in parts:
                _require_form(part, text)
            return
        case ast.Compare(left=left, ops=ops, comparators=others) if all(type(op) in _COMPARISON for op in ops):
            if all(map(_is_number, (left, *others))):
                return
    raise UsageError(f"bad constraint {text!r}: expected {FORM}")


def _is_number(tree: ast.expr) -> bool:
    match tree:
        case ast.Name():
            return True
        case ast.Constant(value=value):
            return isinstance(value, int | str) and (isinstance(value, str) or abs(value) <= 2**53)
        case ast.BinOp(left=left, op=op, right=right):
            return type(op) in _ARITHMETIC and _is_number(left) and _is_number(right)
    return False


def _truth(tree: ast.expr, values: Mapping[str, ParameterValue]) -> bool:
    match tree:
        case ast.BoolOp(op=ast.And(), values=parts):
            return all(_truth(part, values) for part in parts)
        case ast.BoolOp(values=parts):
            return any(_truth(part, values) for part in parts)
        case ast.Compare(left=left, ops=ops, comparators=others):
            numbers = [_value(one, values) for one in (left, *others)]
            return all(
                _compared(op, one, other) for op, one, other in zip(ops, numbers[:-1], numbers[1:], strict=True)
            )
    raise AssertionError("the form was checked when the constraint was read")


def _compared(op: ast.cmpop, one: ParameterValue, other: ParameterValue) -> bool:
    try:
        return _COMPARISON[type(op)](one, other)
    except TypeError:
        raise _Unmet from None


def _value(tree: ast.expr, values: Mapping[str, ParameterValue]) -> ParameterValue:
    match tree:
        case ast.Name(id=name):
            return values[name]
        case ast.Constant(value=value):
            assert isinstance(value, int | str)
            return value
        case ast.BinOp(left=left, op=op, right=right):
            one, other = _value(left, values), _value(right, values)
            if isinstance(one, str) or isinstance(other, str) or (other == 0 and not _is_total(op)):
                raise _Unmet
            try:
                return _ARITHMETIC[type(op)](one, other)
            except OverflowError:
                raise _Unmet from None  # a whole number past every float
    raise AssertionError("the form was checked when the constraint was read")


def _is_total(op: ast.operator) -> bool:
    return not isinstance(op, ast.FloorDiv | ast.Mod)
