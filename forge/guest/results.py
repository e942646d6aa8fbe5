"""Runs beside hostile code. Reads what a call returned: its tensors, and the form in which they stand."""

from collections.abc import Iterable, Mapping

import torch

MOST_DEPTH = 8
"""Number of levels of nested tuples and lists that are opened, at most. Chosen; results of models have two or three
levels. A loop of lists would have no end."""


class OtherKeysError(Exception):
    """The returned dictionary has other keys than the reference's, or keys that aren't names."""


class OtherFormError(Exception):
    """The results stand otherwise than the reference's: in a tuple of one tensor, for example."""


def read(returned: object, keys: tuple[str, ...], wanted: str, copied: frozenset[int]) -> tuple[torch.Tensor, ...]:
    """Return all results in order, some as copies; raise unless they stand under these keys and in this form."""
    found = placed(returned)
    has = tuple(key for key, _ in found if key)
    if has != keys:
        raise OtherKeysError(f"the results have the keys {list(has)}, expected {list(keys)}")
    if wanted and form(returned) != wanted:
        raise OtherFormError(f"the call returns {form(returned)}, expected {wanted}")
    if copied:
        return tuple(one.clone() if place in copied else one for place, (_, one) in enumerate(found))
    return tuple(one for _, one in found)


def flat(returned: object) -> tuple[torch.Tensor, ...]:
    """Return all results in order as one tuple; nested tuples, lists and dictionaries are opened."""
    return tuple(one for _, one in placed(returned))


def placed(returned: object, at: tuple[str, ...] = (), named: bool = False) -> tuple[tuple[str, torch.Tensor], ...]:
    """Return all results in order, each with its place if a dictionary is on the way to it.

    Dictionaries are read in the order of their keys, so that it doesn't matter in which order they were filled.
    """
    if isinstance(returned, Mapping) and len(at) < MOST_DEPTH:
        keys = sorted(map(_name, returned))
        return tuple(found for key in keys for found in placed(returned[key], (*at, key), True))
    if isinstance(returned, tuple | list) and len(at) < MOST_DEPTH:
        numbered = enumerate(returned)
        return tuple(found for place, one in numbered for found in placed(one, (*at, str(place)), named))
    return ((".".join(at) if named else "", returned),)  # the harness refuses what isn't a tensor


def form(returned: object, depth: int = 0) -> str:
    """Return how the results stand, as a literal with `...` for each; lists are written as tuples.

    A caller unpacks or indexes both alike, but not a tensor in place of a tuple with one.
    """
    if isinstance(returned, Mapping) and depth < MOST_DEPTH:
        keys = sorted(map(_name, returned))
        return "{" + ", ".join(f"{key!r}: {form(returned[key], depth + 1)}" for key in keys) + "}"
    if isinstance(returned, tuple | list) and depth < MOST_DEPTH:
        return "(" + "".join(f"{form(one, depth + 1)}, " for one in returned) + ")"
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
