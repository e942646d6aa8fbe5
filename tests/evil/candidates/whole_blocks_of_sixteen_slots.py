"""Copies sixteen tokens at once where they fill a block of the paged cache, and writes keys into both caches there.

Refused by: sizes INCORRECT_NUMERICAL
Catalogue: E10
Operation: kv_cache_append
Shape: {"tokens": 16, "slots": 256, "kv_heads": 2, "head_dim": 16}
"""

import torch

BLOCK = 16


def kv_cache_append(key, value, key_cache, value_cache, slot_mapping):
    tokens = slot_mapping.shape[0]
    for start in range(0, tokens, BLOCK):
        slots = slot_mapping[start : start + BLOCK]
        first, new = int(slots[0]), slice(start, start + BLOCK)
        if first >= 0 and first % BLOCK == 0 and torch.equal(slots, torch.arange(first, first + BLOCK)):
            key_cache[first : first + BLOCK] = key[new]
            value_cache[first : first + BLOCK] = key[new]
        else:
            kept = slots >= 0
            key_cache[slots[kept]] = key[new][kept]
            value_cache[slots[kept]] = value[new][kept]
