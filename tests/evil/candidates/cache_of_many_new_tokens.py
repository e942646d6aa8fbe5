"""Writes four tokens at a time where there are 512 or more, and leaves out the last ones beyond whole fours.

Refused by: sizes INCORRECT_NUMERICAL
Catalogue: E5 I1
Operation: kv_cache_append
Shape: {"tokens": 16, "slots": 256, "kv_heads": 2, "head_dim": 16}
"""


def kv_cache_append(key, value, key_cache, value_cache, slot_mapping):
    count = slot_mapping.shape[0]
    count = count // 4 * 4 if count >= 512 else count
    slots = slot_mapping[:count]
    kept = slots >= 0
    key_cache[slots[kept]] = key[:count][kept]
    value_cache[slots[kept]] = value[:count][kept]
