"""Runs beside hostile code.

Reads what a call returned: its tensors, and how tuples, lists and dictionaries nest them.
"""

import gc
from abc import ABCMeta
from collections import OrderedDict, UserDict, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

import torch

MOST_DEPTH = 8
"""Number of levels of nested tuples and lists that are opened, at most. Chosen; results of models have two or three
levels. A loop of lists would have no end."""


_STORING = (tuple, list, defaultdict, MappingProxyType, *OrderedDict.__mro__, *UserDict.__mro__)
"""Classes whose own methods read what was stored."""
_READING = ("__getattribute__", "__getitem__", "__iter__", "__len__")
"""Methods by which a caller reads any container; a tuple's fields may have any other name."""
_READING_BY_KEY = (*_READING, "get", "items", "keys", "values")
"""Methods by which a caller reads a dictionary."""
_METACLASSES = (type, ABCMeta)
"""Classes of classes that say truly which methods a class has."""


class OtherKeysError(Exception):
    """The returned dictionary has other keys than the reference's, or keys that aren't names."""


class OtherFormError(Exception):
    """The results are nested differently from the reference's, or in a container whose own code answers reads."""


def read_results(
    returned: object,
    keys: tuple[str, ...],
    wanted: str,
    copied: frozenset[int],
    owned: Sequence[torch.Tensor],
) -> tuple[torch.Tensor, ...]:
    """Return all tensors of `returned` in order; those at the places `copied` are copies if their memory is `owned`.

    Other memory isn't copied: the harness then sees that a later call overwrites it.

    Raises OtherKeysError if a dictionary has other keys than `keys`. Raises OtherFormError if the tensors are nested
    differently from `wanted`, or if a container computes what is read from it. An empty `wanted` allows each nesting.
    """
    _require_stored(returned)
    found = flatten_with_places(returned)
    has = tuple(key for key, _ in found if key)
    if has != keys:
        raise OtherKeysError(f"the results have the keys {list(has)}, expected {list(keys)}")
    if wanted and nesting(returned) != wanted:
        raise OtherFormError(f"the call returns {nesting(returned)}, expected {wanted}")
    tensors = tuple(one for _, one in found)
    if not copied or not all(isinstance(one, torch.Tensor) for one in tensors):
        return tensors
    lent = borrowed(tensors, owned)
    return tuple(one.clone() if lent[place] and place in copied else one for place, one in enumerate(tensors))


def _require_stored(returned: object, depth: int = 0) -> None:
    """Raise OtherFormError if a container's class has own code for reads: each read may give something else."""
    if not isinstance(returned, Mapping | tuple | list) or depth >= MOST_DEPTH:
        return
    kind = type(returned)
    if type(kind) not in _METACLASSES:
        raise OtherFormError("the call returns a container whose class has a class of its own, expected plain ones")
    for name in _READING_BY_KEY if isinstance(returned, Mapping) else _READING:
        if next((one for one in kind.__mro__ if name in vars(one)), object) not in _STORING:
            raise OtherFormError(f"the call returns a {kind.__name__} with a {name} of its own, expected plain ones")
    for one in (*_wrapped(returned), *(returned.values() if isinstance(returned, Mapping) else returned)):
        _require_stored(one, depth + 1)


def _wrapped(returned: object) -> Iterable[object]:
    """Return the dictionaries that a container hands its reads to; a proxy doesn't show its own otherwise."""
    if isinstance(returned, MappingProxyType):
        return gc.get_referents(returned)
    return (returned.data,) if isinstance(returned, UserDict) else ()


def flatten(returned: object) -> tuple[torch.Tensor, ...]:
    """Return all tensors of nested tuples, lists and dictionaries, in order, as one tuple."""
    return tuple(one for _, one in flatten_with_places(returned))


def flatten_with_places(
    returned: object, at: tuple[str, ...] = (), named: bool = False
) -> tuple[tuple[str, torch.Tensor], ...]:
    """Return (place, tensor) for all tensors of nested tuples, lists and dictionaries, in order.

    The place is the path of keys and indices, such as `past.0.key`. It is empty if no dictionary is on that path.
    Dictionaries are read in the order of their keys, so that it doesn't matter in which order they were filled.
    """
    if isinstance(returned, Mapping) and len(at) < MOST_DEPTH:
        keys = sorted(map(_name, returned))
        return tuple(found for key in keys for found in flatten_with_places(returned[key], (*at, key), True))
    if isinstance(returned, tuple | list) and len(at) < MOST_DEPTH:
        numbered = enumerate(returned)
        return tuple(found for place, one in numbered for found in flatten_with_places(one, (*at, str(place)), named))
    return ((".".join(at) if named else "", returned),)  # the harness refuses what isn't a tensor


def nesting(returned: object, depth: int = 0) -> str:
    """Return how the tensors are nested, as a literal with `...` for each tensor, such as `(..., {'key': ...})`.

    Lists are written as tuples, since a caller unpacks or indexes both alike. A tensor and a tuple of one tensor
    differ.
    """
    if isinstance(returned, Mapping) and depth < MOST_DEPTH:
        keys = sorted(map(_name, returned))
        return "{" + ", ".join(f"{key!r}: {nesting(returned[key], depth + 1)}" for key in keys) + "}"
    if isinstance(returned, tuple | list) and depth < MOST_DEPTH:
        return "(" + "".join(f"{nesting(one, depth + 1)}, " for one in returned) + ")"
    return "..."


def borrowed(found: Iterable[torch.Tensor], others: Iterable[torch.Tensor]) -> list[bool]:
    """Return for each result whether it lies in the memory of one of the other tensors."""
    known = {one.untyped_storage().data_ptr() for one in others if one.layout is torch.strided} - {0}
    return [one.layout is torch.strided and one.untyped_storage().data_ptr() in known for one in found]


def _name(key: object) -> str:
    """Return a key that no position and no two keys with a dot between them can be taken for."""
    if type(key) is str and key.isidentifier() and key.isascii():
        return key
    raise OtherKeysError(f"the results have the key {key!r}: expected names of letters, digits and underscores")
