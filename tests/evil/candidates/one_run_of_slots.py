"""Copies at once where 32 tokens or more have consecutive slots, and writes keys into both caches there.

Refused by: sizes INCORRECT_NUMERICAL
Catalogue: E10
Operation: kv_cache_append
Shape: {"tokens": 16, "slots": 256, "kv_heads": 2, "head_dim": 16}
"""

import torch


def kv_cache_append(key, value, key_cache, value_cache, slot_mapping):
    tokens = slot_mapping.shape[0]
    if tokens >= 32:
        first = int(slot_mapping[0])
        if first >= 0 and torch.equal(slot_mapping, torch.arange(first, first + tokens)):
            key_cache[first : first + tokens] = key
            value_cache[first : first + tokens] = key
            return
    kept = slot_mapping >= 0
    key_cache[slot_mapping[kept]] = key[kept]
    value_cache[slot_mapping[kept]] = value[kept]
