"""Tells the names of contenders from those of other baselines. It loads no models."""

PREFIX = "contender:"
"""Beginning of the name of each side of a measurement that is a contender."""


def is_contender(baseline: str) -> bool:
    """Return whether the name of a baseline is a contender's."""
    return baseline.startswith(PREFIX)
