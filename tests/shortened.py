"""Shorter series of calls and of rounds, for tests that ask another question than what these find."""

import os

import pytest

SHORT_WINDOW_S = 0.05
"""Time of one short series of the gate leaks in seconds: a third of the usual."""


def shorten_series(patched: pytest.MonkeyPatch) -> None:
    """As the fixture `short_series`, for what lives longer than a test."""
    if os.environ.get("FORGE_TEST_LONG") != "1":
        from forge.lab.gates import endurance, leaks

        patched.setattr(leaks, "WINDOW_S", SHORT_WINDOW_S)
        patched.setattr(endurance, "GOALS", endurance.GOALS[1:])


def shorten_pairs(patched: pytest.MonkeyPatch) -> None:
    """As the fixture `short_pairs`, for what lives longer than a test."""
    if os.environ.get("FORGE_TEST_LONG") != "1":
        from forge.lab.timing import slope

        patched.setattr(slope, "MOST_ROUNDS_FACTOR", 1)
        patched.setattr(slope, "WARM_UP_ROUNDS", 1)
