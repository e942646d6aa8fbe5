"""Defines another function than the one asked for.

Refused by: sources BAD_SUBMISSION
"""


def normalise(x, residual, weight, eps):
    return x, x
