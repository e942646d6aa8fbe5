"""Writes both caches at once where they are one allocation, and forgets there that -1 is no slot.

Refused by: layouts INCORRECT_NUMERICAL
Catalogue: I1
Operation: kv_cache_append
Shape: {"tokens": 16, "slots": 256, "kv_heads": 2, "head_dim": 16}
"""

import torch


def kv_cache_append(key, value, key_cache, value_cache, slot_mapping):
    if value_cache.data_ptr() == key_cache.data_ptr() + key_cache.numel() * key_cache.element_size():
        slots, heads, size = key_cache.shape
        both = key_cache.as_strided((2, slots, heads, size), (slots * heads * size, heads * size, size, 1))
        both[:, slot_mapping] = torch.stack((key, value))
        return
    kept = slot_mapping >= 0
    key_cache[slot_mapping[kept]] = key[kept]
    value_cache[slot_mapping[kept]] = value[kept]
