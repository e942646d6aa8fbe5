"""Runs beside hostile code.

Makes the arguments of a call from operands and plain values, and sees if the call left lists and dictionaries alone.
"""

import inspect
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch

Function = Callable[..., object]
Literals = tuple[tuple[bool, object], ...]
"""Arguments in order: whether each is a tensor, and its value if not, with `...` for each tensor in it."""


class ChangedContainerError(Exception):
    """A call changed a list or a dictionary that it was passed."""


def arguments(literals: Literals, operands: Sequence[torch.Tensor]) -> list[object]:
    """Return the arguments in order, with operands in the places of tensors."""
    given = iter(operands)
    return [next(given) if is_tensor else filled(value, given) for is_tensor, value in literals]


def require_unchanged(
    names: Sequence[str], passed: Sequence[object], literals: Literals, operands: Sequence[torch.Tensor]
) -> None:
    """Raise ChangedContainerError if a list or dictionary holds something else than when it was passed.

    The caller's own would hold it as well, and be passed to its next call.
    """
    if not any(type(value) in (list, tuple, dict) for _, value in literals):
        return
    for name, one, before in zip(names, passed, arguments(literals, operands), strict=True):
        if not _is_same(one, before):
            raise ChangedContainerError(f"the {type(one).__name__} {name!r} has other content than before the call")


def _is_same(one: object, before: object) -> bool:
    """Return whether a value holds the same tensors, and equal plain values, as another one."""
    if one is before:
        return True
    if type(one) is not type(before) or isinstance(before, torch.Tensor):
        return False
    if isinstance(one, list | tuple) and isinstance(before, list | tuple):
        return len(one) == len(before) and all(map(_is_same, one, before))
    if isinstance(one, dict) and isinstance(before, dict):
        return list(one) == list(before) and all(map(_is_same, one.values(), before.values()))
    return repr(one) == repr(before)  # plain values, of which NaN isn't equal to itself


def leaves(value: object, kind: object) -> Iterator[Any]:
    """Yield what is of a kind in nested lists, tuples and dictionaries, in order: tensors, or the `...` for them."""
    if value is kind or (isinstance(kind, type) and isinstance(value, kind)):
        yield value
    elif type(value) in (list, tuple, dict):
        inner: Any = value
        for one in inner.values() if type(value) is dict else inner:
            yield from leaves(one, kind)


def filled(value: object, given: Iterator[torch.Tensor]) -> object:
    """Return an argument with a tensor in each place of `...`, in order; containers are made anew for each call."""
    if value is ...:
        return next(given)
    if isinstance(value, list | tuple):
        return type(value)(filled(one, given) for one in value)
    return {key: filled(one, given) for key, one in value.items()} if isinstance(value, dict) else value


def passed_values(drawn: object, function: Function, *, skip: int) -> list[tuple[str, object, bool]]:
    """Return the arguments in the order of the function's parameters: name, value, and whether it is passed by name.

    A dictionary names its values. Values of a list beyond the positional parameters are passed by the names of the
    keyword-only ones, in their order.
    """
    parameters = list(inspect.signature(function).parameters.values())[skip:]
    plain = [one.name for one in parameters if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
    open_ended = any(one.kind is one.VAR_POSITIONAL for one in parameters)
    by_name = [one.name for one in parameters if one.kind is one.KEYWORD_ONLY]
    if isinstance(drawn, Mapping):
        order = [*(name for name in (*plain, *by_name) if name in drawn), *(one for one in drawn if one not in plain)]
        leading = list(itertools.takewhile(lambda name: name in drawn, plain))
        return [(name, drawn[name], name not in leading) for name in dict.fromkeys(order)]
    values: list[object] = list(drawn)  # type: ignore[call-overload]  # a list, or the file is refused
    by_position = len(values) if open_ended else min(len(values), len(plain))
    usable = dict(enumerate(one if one.isascii() else "" for one in plain))
    names = [usable.get(place) or f"input_{place}" for place in range(by_position)]
    rest = dict(enumerate(by_name, by_position))
    names += [rest.get(place, f"input_{place}") for place in range(by_position, len(values))]
    return [
        (name, value, place >= by_position and place in rest)
        for place, (name, value) in enumerate(zip(names, values, strict=True))
    ]
