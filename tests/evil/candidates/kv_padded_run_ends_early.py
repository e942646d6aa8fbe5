"""Copies one run of slots at once, but without its last token where tokens without a slot follow.

Refused by: scales INCORRECT_NUMERICAL
Catalogue: I13
Operation: kv_cache_append
Shape: {"tokens": 16, "slots": 256, "kv_heads": 2, "head_dim": 16}
"""


def kv_cache_append(key, value, key_cache, value_cache, slot_mapping):
    taken = slot_mapping >= 0
    slots, count = slot_mapping[taken].long(), int(taken.sum())
    is_run = (
        8 <= count < len(taken) <= len(key_cache) and bool(taken[:count].all()) and bool((slots.diff() == 1).all())
    )
    kept = slots[:-1] if is_run else slots
    key_cache[kept], value_cache[kept] = key[taken][: len(kept)], value[taken][: len(kept)]
