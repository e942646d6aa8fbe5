"""Copies runs of four or more consecutive slots at once, and from the wrong token: what every prefill has.

Refused by: any INCORRECT_NUMERICAL
Catalogue: E10
Operation: kv_cache_append
Shape: {"tokens": 16, "slots": 256, "kv_heads": 2, "head_dim": 16}
"""


def kv_cache_append(key, value, key_cache, value_cache, slot_mapping):
    slots = slot_mapping.tolist()
    t = 0
    while t < len(slots):
        if slots[t] < 0:
            t += 1
            continue
        n = 1
        while t + n < len(slots) and slots[t + n] == slots[t] + n:
            n += 1
        for new, cache in ((key, key_cache), (value, value_cache)):
            cache[slots[t] : slots[t] + n] = new[t : t + n] if n < 4 else new[:n]
        t += n
