"""Checks that each tensor which lies in an argument, such as a list, has a place there."""

from collections.abc import Sequence

from forge.lab.reference.literals import count_places, parse_literal

Place = tuple[str, str, str | None]
"""An argument, or a tensor in one: its name, the name of the argument that it lies in (or ""), and its literal."""


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
            waiting = [name] * count_places(parse_literal(literal))
    if waiting:
        raise ValueError(f"the argument {waiting[0]!r} lacks {len(waiting)} tensors")
