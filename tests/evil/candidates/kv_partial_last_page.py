"""Takes the last page of a request, which it fills in part, to follow the page before it.

Refused by: sizes INCORRECT_NUMERICAL
Catalogue: I13
Operation: kv_cache_append
Shape: {"tokens": 16, "slots": 256, "kv_heads": 2, "head_dim": 16}
"""

import torch

PAGE = 16


def kv_cache_append(key, value, key_cache, value_cache, slot_mapping):
    taken = slot_mapping >= 0
    slots, whole = slot_mapping[taken].long(), int(taken.sum()) // PAGE
    rest = len(slots) - whole * PAGE
    if whole and rest and bool(taken.all()):
        pages = slots[: whole * PAGE].view(whole, PAGE)
        in_pages = pages == pages[:, :1] // PAGE * PAGE + torch.arange(PAGE)
        if bool(in_pages.all()) and int(slots[whole * PAGE]) % PAGE == 0:
            after = int(pages[-1, -1]) + 1
            if after + rest <= key_cache.shape[0]:
                slots = torch.cat([slots[: whole * PAGE], torch.arange(after, after + rest)])
    key_cache[slots], value_cache[slots] = key[taken], value[taken]
