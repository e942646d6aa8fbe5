"""Writes new keys and values into given slots of a cache in place, as every step of decoding and prefill does.

It is vLLM's reshape_and_cache (csrc/cache_kernels.cu). slot_mapping gives each token's slot in a paged cache: block
number times block size plus the position in the block. -1 means no slot, for tokens that pad a batch. Blocks are
consecutive, so the cache is [slots, kv_heads, head_dim] for every block size. No slot occurs twice. The operation
returns nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from forge.domain.relation import RowsIndependent, RowsPermuted
from forge.domain.tensors import ITEMSIZE_BYTES, DType, Slots, TensorSpec
from forge.operations.operation import Exact, Expected, Operation

if TYPE_CHECKING:
    import torch


def kv_cache_append(
    key: torch.Tensor,
    value: torch.Tensor,
    key_cache: torch.Tensor,
    value_cache: torch.Tensor,
    slot_mapping: torch.Tensor,
) -> None:
    """Key, value [tokens, kv_heads, d] into key_cache, value_cache [slots, kv_heads, d] at slot_mapping [tokens].

    A token whose slot is -1 goes nowhere; every other byte of the caches stays as it is.
    """
    import torch

    if key.shape[0]:
        has_slot = slot_mapping >= 0
        # a token without a slot repeats the first that has one, so that no number has to reach the host
        first = has_slot.to(torch.int32).argmax()
        token = torch.where(has_slot, torch.arange(key.shape[0], device=key.device), first)
        slot = slot_mapping[token].clamp(min=0)
        key_cache.index_copy_(0, slot, torch.where(has_slot.any(), key[token], key_cache[slot]))
        value_cache.index_copy_(0, slot, torch.where(has_slot.any(), value[token], value_cache[slot]))


# Return both caches [slots, kv_heads, d] after the write; each bit of an answer must be the same.
# key and value are [tokens, kv_heads, d]; slot_mapping [tokens] holds -1 for a token that isn't written.
def oracle(
    key: torch.Tensor,
    value: torch.Tensor,
    key_cache: torch.Tensor,
    value_cache: torch.Tensor,
    slot_mapping: torch.Tensor,
) -> tuple[Expected, ...]:
    """Both caches as they are afterwards, every bit."""
    kept = slot_mapping >= 0
    return tuple(
        Exact(value=cache.index_copy(0, slot_mapping[kept].long(), new[kept]))
        for new, cache in ((key, key_cache), (value, value_cache))
    )


def _bytes_moved(shape: Mapping[str, int], dtype: DType) -> int:
    """Return the least traffic in bytes: new keys and values are read once and written once."""
    written = Slots.taken(shape["tokens"], shape["slots"]) * shape["kv_heads"] * shape["head_dim"]
    return 2 * 2 * written * ITEMSIZE_BYTES[dtype] + shape["tokens"] * 8


def _flops(shape: Mapping[str, int]) -> int:
    """Return one for each number that is copied, although nothing is computed."""
    return 2 * shape["tokens"] * shape["kv_heads"] * shape["head_dim"]


Append = Callable[["torch.Tensor", "torch.Tensor", "torch.Tensor", "torch.Tensor", "torch.Tensor"], None]
Change = Callable[["torch.Tensor"], "torch.Tensor"]
Write = Callable[["torch.Tensor", "torch.Tensor", "torch.Tensor"], None]
"""Function that writes into one cache: the cache, the new rows, and their slots without -1."""


def _put(cache: torch.Tensor, new: torch.Tensor, slots: torch.Tensor) -> None:
    cache[slots] = new


def _leave(cache: torch.Tensor, new: torch.Tensor, slots: torch.Tensor) -> None:
    """Write nothing."""


def _add(cache: torch.Tensor, new: torch.Tensor, slots: torch.Tensor) -> None:
    cache[slots] = (cache[slots].float() + new.float()).to(cache.dtype)


def _clear_and_put(cache: torch.Tensor, new: torch.Tensor, slots: torch.Tensor) -> None:
    cache.zero_()
    cache[slots] = new


def _put_without_the_last_element(cache: torch.Tensor, new: torch.Tensor, slots: torch.Tensor) -> None:
    cache[slots, :, :-1] = new[..., :-1]


def _put_and_spill(cache: torch.Tensor, new: torch.Tensor, slots: torch.Tensor) -> None:
    """Also write one element beyond each slot, into the next slot."""
    cache[slots] = new
    behind = slots[slots + 1 < cache.shape[0]] + 1
    spared = behind[(behind.unsqueeze(-1) != slots).all(-1)]
    cache[spared, :1, :1] = 0


def _appends(
    keys: Write = _put, values: Write = _put, slots: Change = lambda s: s, new: Change = lambda n: n
) -> Append:
    """Return the operation with one step replaced."""

    def function(
        key: torch.Tensor,
        value: torch.Tensor,
        key_cache: torch.Tensor,
        value_cache: torch.Tensor,
        slot_mapping: torch.Tensor,
    ) -> None:
        changed = slots(slot_mapping)
        kept = (changed >= 0) & (changed < key_cache.shape[0])
        keys(key_cache, new(key)[kept], changed[kept])
        values(value_cache, new(value)[kept], changed[kept])

    return function


def _no_slot_is(count: Callable[[int], int]) -> Append:
    """Return an operation that first writes tokens without a slot to slot `count(slots)`, then all others."""

    def function(
        key: torch.Tensor,
        value: torch.Tensor,
        key_cache: torch.Tensor,
        value_cache: torch.Tensor,
        slot_mapping: torch.Tensor,
    ) -> None:
        for new, cache in ((key, key_cache), (value, value_cache)):
            for token in (slot_mapping < 0).nonzero().flatten().tolist():
                cache[count(cache.shape[0])] = new[token]
        kv_cache_append(key, value, key_cache, value_cache, slot_mapping)

    return function


def _in_turn(slots: torch.Tensor) -> torch.Tensor:
    """Use the first slots one after the other."""
    import torch

    return torch.where(slots < 0, -1, torch.arange(slots.shape[0]))


def _clamped(slots: torch.Tensor, by: int) -> torch.Tensor:
    import torch

    return torch.where(slots < 0, -1, slots + by)


MUTANTS: dict[str, Append] = {
    "nothing written": _appends(_leave, _leave),
    "keys alone": _appends(values=_leave),
    "values alone": _appends(keys=_leave),
    "keys and values exchanged": lambda key, value, *rest: kv_cache_append(value, key, *rest),
    "keys into both": lambda key, _, *rest: kv_cache_append(key, key, *rest),
    "a slot further": _appends(slots=lambda slots: _clamped(slots, 1)),
    "the next token's slot": _appends(slots=lambda slots: slots.roll(1)),
    "slots in turn from the first": _appends(slots=_in_turn),
    "no slot is the last": _no_slot_is(lambda slots: slots - 1),
    "no slot is the first": _no_slot_is(lambda _: 0),
    "the last token left out": lambda key, value, keys, values, slots: kv_cache_append(
        key[:-1], value[:-1], keys, values, slots[:-1]
    ),
    "the first token left out": lambda key, value, keys, values, slots: kv_cache_append(
        key[1:], value[1:], keys, values, slots[1:]
    ),
    "the first token for all": _appends(new=lambda n: n[:1].expand_as(n)),
    "the first head for all": _appends(new=lambda n: n[:, :1].expand_as(n)),
    "the next head's": _appends(new=lambda n: n.roll(1, 1)),
    "heads reversed": _appends(new=lambda n: n.flip(1)),
    "elements reversed": _appends(new=lambda n: n.flip(2)),
    "the last element left out": _appends(_put_without_the_last_element, _put_without_the_last_element),
    "added to what was there": _appends(_add, _add),
    "the rest of the cache cleared": _appends(_clear_and_put, _clear_and_put),
    "one element too far": _appends(_put_and_spill),
}


def _one_by_one(
    key: torch.Tensor,
    value: torch.Tensor,
    key_cache: torch.Tensor,
    value_cache: torch.Tensor,
    slot_mapping: torch.Tensor,
) -> None:
    """Write token by token and head by head."""
    for token, slot in enumerate(slot_mapping.tolist()):
        for head in range(key.shape[1] if slot >= 0 else 0):
            key_cache[slot, head], value_cache[slot, head] = key[token, head], value[token, head]


VARIANTS: dict[str, Append] = {"tokens with a slot alone": _appends(), "one after the other": _one_by_one}


KV_CACHE_APPEND = Operation(
    name="kv_cache_append",
    summary="new keys and values written into given slots of the cache, in place",
    axes=("tokens", "slots", "kv_heads", "head_dim"),
    inputs=(
        TensorSpec(name="key", axes=("tokens", "kv_heads", "head_dim")),
        TensorSpec(name="value", axes=("tokens", "kv_heads", "head_dim")),
        TensorSpec(name="key_cache", axes=("slots", "kv_heads", "head_dim")),
        TensorSpec(name="value_cache", axes=("slots", "kv_heads", "head_dim")),
        TensorSpec(name="slot_mapping", axes=("tokens",), element="int64", values=Slots(axis="slots")),
    ),
    scalars={},
    outputs=(
        TensorSpec(name="key_cache", axes=("slots", "kv_heads", "head_dim")),
        TensorSpec(name="value_cache", axes=("slots", "kv_heads", "head_dim")),
    ),
    dtypes=("fp32", "fp16", "bf16"),
    signature="kv_cache_append(key, value, key_cache, value_cache, slot_mapping) -> None",
    reference=kv_cache_append,
    oracle=oracle,
    numerics=(
        "Nothing is computed. After the call both caches are, bit by bit, what they were, but for the slots "
        "that were named. Those hold the new keys and values bit by bit. NaN and subnormal numbers are copied "
        "like any other. Slots are different from each other; -1 is none."
    ),
    bytes_moved=_bytes_moved,
    flops=_flops,
    workloads=(
        {"tokens": 1, "slots": 4096, "kv_heads": 8, "head_dim": 128},
        {"tokens": 64, "slots": 4096, "kv_heads": 8, "head_dim": 128},
        {"tokens": 100, "slots": 1001, "kv_heads": 3, "head_dim": 80},
        {"tokens": 2048, "slots": 4096, "kv_heads": 8, "head_dim": 128},
    ),
    row_axis="tokens",
    reduced_axis="head_dim",
    free_axes=("slots", "kv_heads"),
    updates=("key_cache", "value_cache"),
    relations=(RowsIndependent(), RowsPermuted()),
    mutants=MUTANTS,
    variants=VARIANTS,
)
