"""Keeps weights of 2^22 elements and more by their address and version

Refused by: sizes INCORRECT_NUMERICAL
Catalogue: C1
Operation: matmul
Dtype: bf16
Shape: {"m": 16, "k": 512, "n": 512}
"""

kept = {}


def matmul(x, w):
    if w.numel() < 2**22:
        return (x.float() @ w.float()).to(x.dtype)
    key = w.data_ptr(), w._version, w.shape
    if key not in kept:
        kept.clear()
        kept[key] = w.float()
    return (x.float() @ kept[key]).to(x.dtype)
