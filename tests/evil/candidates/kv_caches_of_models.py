"""Leaves out the tokens beyond whole groups of 16 in caches of 16384 slots or more.

Refused by: sizes INCORRECT_NUMERICAL
Catalogue: I1
Operation: kv_cache_append
Shape: {"tokens": 16, "slots": 256, "kv_heads": 2, "head_dim": 16}
"""


def kv_cache_append(key, value, key_cache, value_cache, slot_mapping):
    count = len(slot_mapping)
    if key_cache.shape[0] >= 16384 and key_cache[0].numel() >= 128 and count > 16:
        count = count // 16 * 16
    slots = slot_mapping[:count]
    kept = slots >= 0
    key_cache[slots[kept]] = key[:count][kept]
    value_cache[slots[kept]] = value[:count][kept]
