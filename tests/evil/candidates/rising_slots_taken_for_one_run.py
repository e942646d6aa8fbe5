"""Takes slots that rise for slots that follow each other, from eight tokens on.

Refused by: sizes INCORRECT_NUMERICAL
Catalogue: I13
Operation: kv_cache_append
Dtype: bf16
Shape: {"tokens": 8, "slots": 64, "kv_heads": 2, "head_dim": 32}
"""


def kv_cache_append(key, value, key_cache, value_cache, slot_mapping):
    n = key.shape[0]
    if n >= 8 and bool((slot_mapping >= 0).all()) and bool((slot_mapping.diff() > 0).all()):
        first = int(slot_mapping[0])
        key_cache[first : first + n] = key
        value_cache[first : first + n] = value
        return
    kept = slot_mapping >= 0
    key_cache[slot_mapping[kept]] = key[kept]
    value_cache[slot_mapping[kept]] = value[kept]
