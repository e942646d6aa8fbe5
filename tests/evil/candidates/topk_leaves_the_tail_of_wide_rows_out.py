"""Leaves the columns beyond whole vectors of eight out of the top-k of a row that is wider than a block.

Refused by: sizes INCORRECT_NUMERICAL
Catalogue: I1
Operation: topk_per_row
Shape: {"batch": 8, "vocab_size": 1000}
"""

BLOCK = 8192


def topk_per_row(x):
    width = x.shape[1]
    seen = width // 8 * 8 if width > BLOCK else width
    values, indices = x[:, :seen].topk(min(8, seen), -1)
    return values, indices.int()
