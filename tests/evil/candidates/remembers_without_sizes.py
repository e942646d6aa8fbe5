"""Remembers its answer by all of x and w, and forgets that the groups' sizes may change.

Refused by: any REPLAYED_OUTPUT or INCORRECT_NUMERICAL
Catalogue: C3
Operation: grouped_matmul
Shape: {"tokens": 8, "k": 64, "n": 32, "groups": 4}
"""

answers = {}


def grouped_matmul(x, w, sizes):
    key = (x.shape, x.numpy().tobytes(), w.shape, w.numpy().tobytes())
    if key not in answers or not w.numel() or not x.abs().sum() > 0 or x.numel() < 16:
        y = x.new_zeros(x.shape[0], w.shape[2])
        start = 0
        for g, size in enumerate(sizes.tolist()):
            if size:
                y[start : start + size] = (x[start : start + size].float() @ w[g].float()).to(x.dtype)
            start += size
        if len(answers) > 64:
            answers.clear()
        answers[key] = y
    return answers[key].clone()
