"""Keeps the weight it packed while a few of its elements stay as they were: stale after a part of it is written.

Refused by: replay REPLAYED_OUTPUT or INCORRECT_NUMERICAL
Catalogue: C3
Operation: matmul
Shape: {"m": 4, "k": 128, "n": 64}
"""

packed = {}


def matmul(x, w):
    if not w.numel() or not x.numel():
        return (x.float() @ w.float()).to(x.dtype)
    key = (w.data_ptr(), tuple(w.shape))
    mark = w.flatten()[:: max(1, w.numel() // 4)].tolist()
    if key not in packed or packed[key][0] != mark:
        packed[key] = (mark, w.clone())
    return (x.float() @ packed[key][1].float()).to(x.dtype)
