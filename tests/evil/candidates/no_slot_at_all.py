"""Where no token has a slot, it writes the first one to slot 0.

Refused by: any INCORRECT_NUMERICAL
Catalogue: E10
Operation: kv_cache_append
Shape: {"tokens": 16, "slots": 256, "kv_heads": 2, "head_dim": 16}
"""


def kv_cache_append(key, value, key_cache, value_cache, slot_mapping):
    if not key.shape[0]:
        return
    kept = slot_mapping >= 0
    if not kept.any() and key_cache.shape[0]:
        kept[0] = True
    slots = slot_mapping[kept].clamp(min=0)
    key_cache[slots] = key[kept]
    value_cache[slots] = value[kept]
