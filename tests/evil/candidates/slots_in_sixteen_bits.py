"""Keeps slots in 16 bits: a cache of more than 65536 slots is written in the wrong place.

Refused by: sizes INCORRECT_NUMERICAL
Catalogue: I8
Operation: kv_cache_append
Shape: {"tokens": 16, "slots": 256, "kv_heads": 2, "head_dim": 16}
"""


def kv_cache_append(key, value, key_cache, value_cache, slot_mapping):
    kept = slot_mapping >= 0
    slots = slot_mapping[kept] & 0xFFFF
    key_cache[slots] = key[kept]
    value_cache[slots] = value[kept]
