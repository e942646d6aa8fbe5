"""What kernel.py must compute, in plain PyTorch."""


def kv_cache_append(key, value, key_cache, value_cache, slot_mapping):
    kept = slot_mapping >= 0
    key_cache[slot_mapping[kept].long()] = key[kept]
    value_cache[slot_mapping[kept].long()] = value[kept]
