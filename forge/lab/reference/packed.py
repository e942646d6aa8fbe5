"""Checks that each tensor which lies in an argument, such as a list, has a place there."""

import ast
from collections.abc import Sequence

Place = tuple[str, str, str | None]
"""Name of an argument or of a tensor in one, the name of the argument that it lies in or "", and its literal."""


def require_places(arguments: Sequence[Place]) -> None:
    """Raise ValueError unless each tensor that lies in an argument has a place there, and each place has one."""
    names = [name for name, _, _ in arguments]
    if len(set(names)) < len(names):
        raise ValueError(f"two arguments have one name: {names}")
    waiting: list[str] = []
    for name, within, literal in arguments:
        if within != (waiting[0] if waiting else ""):
            raise ValueError(f"the tensor {name!r} has no place in {within or 'a container'!r}")
        waiting = waiting[1:]
        if literal is not None:
            waiting = [name] * _places(ast.literal_eval(literal))
    if waiting:
        raise ValueError(f"the argument {waiting[0]!r} lacks {len(waiting)} tensors")


def _places(value: object) -> int:
    """Return how many tensors belong into an argument's literal."""
    if value is ...:
        return 1
    if isinstance(value, dict):
        return sum(map(_places, value.values()))
    return sum(map(_places, value)) if isinstance(value, list | tuple) else 0
