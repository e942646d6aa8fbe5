"""Takes slots for one run if the last one is as far from the first as a run's: wrong where two inside are exchanged.

Refused by: any INCORRECT_NUMERICAL
Catalogue: E10
Operation: kv_cache_append
Shape: {"tokens": 16, "slots": 256, "kv_heads": 2, "head_dim": 16}
"""


def kv_cache_append(key, value, key_cache, value_cache, slot_mapping):
    tokens = slot_mapping.shape[0]
    if tokens > 1:
        first, last = int(slot_mapping[0]), int(slot_mapping[-1])
        if first >= 0 and last - first == tokens - 1:
            key_cache[first : last + 1] = key
            value_cache[first : last + 1] = value
            return
    taken = slot_mapping >= 0
    slots = slot_mapping[taken].long()
    key_cache[slots] = key[taken]
    value_cache[slots] = value[taken]
