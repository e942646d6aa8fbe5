"""The lines to mend are found in a hostile source too."""

import pytest

from forge.lab.sources.comes_from import comes_from
from forge.lab.sources.mending import _last_write

LONG = 300_000
"""Characters of a hostile line. Steps that grow with its square would take hours."""


@pytest.mark.parametrize(
    "part", ["a ", "a" + " " * 1000, "a[", "a[a", "tl.store(", "tl.store( ", "return ", "x = ", "//"]
)
def test_a_long_line_is_read_in_time_that_its_length_allows(part: str) -> None:
    line = part * (LONG // len(part))
    assert 3 not in comes_from(f"def kernel(x):\n    {line}\n    return x", 3)
    assert comes_from(line, 1) == ()


def test_a_run_of_spaces_is_read_once() -> None:
    assert comes_from(f"def kernel(x):\n    y = x\n    a{' ' * LONG}b\n    return y", 4) == (2,)


@pytest.mark.parametrize("part", ["out[", "out[ ", "out [ ] ", "out[0] = 1;\n"])
def test_the_last_write_is_found_among_many(part: str) -> None:
    assert (
        _last_write(f"{part * (LONG // len(part))}\nout[i] = 0;\n", "out") == LONG // len(part) * part.count("\n") + 2
    )
