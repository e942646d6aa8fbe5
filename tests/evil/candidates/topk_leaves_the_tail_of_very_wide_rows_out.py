"""Leaves the columns beyond whole vectors of eight out, in several rows that are wider than one launch holds.

Refused by: sizes INCORRECT_NUMERICAL
Catalogue: I1
Operation: topk_per_row
Shape: {"batch": 8, "vocab_size": 1000}
"""

BLOCK = 32768


def topk_per_row(x):
    rows, width = x.shape
    seen = width // 8 * 8 if rows > 1 and width > BLOCK else width
    values, indices = x[:, :seen].topk(min(8, seen), -1)
    return values, indices.int()
