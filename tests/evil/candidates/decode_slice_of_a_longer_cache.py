"""Takes the next request's keys to lie right behind this one's, also in a cache with room for more positions.

Refused by: layouts INCORRECT_NUMERICAL or NON_FINITE
Catalogue: I1
Operation: attention_decode
Shape: {"tokens": 3, "kv_len": 40, "kv_heads": 2, "group": 2, "head_dim": 16}
Layouts: strided_rows
"""


def attention_decode(q, k, v):
    k, v = (
        one.as_strided(one.shape, (one.shape[1] * one.stride(1), *one.stride()[1:]), one.storage_offset())
        for one in (k, v)
    )
    scores = (q.float() @ k.float().permute(0, 2, 3, 1)) * q.shape[-1] ** -0.5
    return (scores.softmax(-1) @ v.float().permute(0, 2, 1, 3)).to(q.dtype).contiguous()
