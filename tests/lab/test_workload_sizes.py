"""Large shapes are drawn in each octave of the width, for any operation."""

import pytest

from forge.lab.gates.workload_sizes import LEAST_WIDTH, octaves_to


@pytest.mark.parametrize(
    ("widest", "begins"), [(1, []), (2, [1]), (4, [1, 2]), (16, [2, 4, 8]), (2048, [256, 512, 1024])]
)
def test_the_octaves_of_any_width_end(widest: int, begins: list[int]) -> None:
    assert octaves_to(widest) == begins


def test_wide_rows_begin_where_smaller_ones_are_asked_elsewhere() -> None:
    begins = octaves_to(131_072)
    assert begins[0] == LEAST_WIDTH
    assert begins[-1] < 131_072 <= 2 * begins[-1]
