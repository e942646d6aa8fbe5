from __future__ import annotations

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
