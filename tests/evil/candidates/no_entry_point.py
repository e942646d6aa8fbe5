"""Defines another function than the one asked for.

Refused by: sources BAD_SUBMISSION
Catalogue: B14
"""


def normalise(x, residual, weight, eps):
    return x, x
