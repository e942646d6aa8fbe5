"""Has other code for caches of 2^22 numbers and more, which leaves the last token out.

Refused by: sizes INCORRECT_NUMERICAL
Catalogue: E5
Operation: kv_cache_append
Shape: {"tokens": 8, "slots": 32, "kv_heads": 2, "head_dim": 16}
"""


def kv_cache_append(key, value, key_cache, value_cache, slot_mapping):
    kept = slot_mapping >= 0
    if key_cache.numel() >= 2**22:
        kept[-1:] = False
    key_cache[slot_mapping[kept]] = key[kept]
    value_cache[slot_mapping[kept]] = value[kept]
