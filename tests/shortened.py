"""Shorter series of calls and of rounds, for tests that ask another question than what these find."""

import os

import pytest

OF_SHAPES = ("sizes", "layouts", "combinations")
"""Gates that ask some hundred shapes and placements."""
SHORT_WINDOW_S = 0.05
"""Time of one short series of the gate leaks in seconds: half of the usual."""


def shorten_series(patched: pytest.MonkeyPatch) -> None:
    """As the fixture `short_series`, for what lives longer than a test."""
    if os.environ.get("FORGE_TEST_LONG") != "1":
        from forge.lab.gates import endurance, leaks

        patched.setattr(leaks, "WINDOW_S", SHORT_WINDOW_S)
        patched.setattr(endurance, "GOALS", endurance.GOALS[1:])


def leave_out_shapes(patched: pytest.MonkeyPatch) -> None:
    """Leave out the gates that ask shape after shape: half of what an accepted candidate costs.

    It is for candidates whose right answers aren't in question, but what else they do in a process, or what follows
    from their verdict. Of honest candidates a third meets these gates.
    """
    if os.environ.get("FORGE_TEST_LONG") != "1":
        from forge.lab import verification

        ordered = verification.gates_for
        patched.setattr(
            verification,
            "gates_for",
            lambda definition: tuple(one for one in ordered(definition) if one.name not in OF_SHAPES),
        )


def shorten_pairs(patched: pytest.MonkeyPatch) -> None:
    """As the fixture `short_pairs`, for what lives longer than a test."""
    if os.environ.get("FORGE_TEST_LONG") != "1":
        from forge.lab.timing import slope

        patched.setattr(slope, "MOST_ROUNDS_FACTOR", 1)
        patched.setattr(slope, "WARM_UP_ROUNDS", 1)
