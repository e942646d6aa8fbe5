"""A table's column gives its cells their unit: no cell is passed because its heading is worded otherwise."""

import pytest

from tests.claims.evidences import problems

KERNEL = "triton_rmsnorm_h200_bf16_b16_h4096_v1"


def table(heading: str, cell: str) -> str:
    return f"| kernel | {heading} |\n|---|---|\n| {KERNEL} | {cell} |"


@pytest.mark.parametrize(
    ("heading", "cell"),
    [
        ("gain over compile", "5.2"),
        ("x over compile", "5.2"),
        ("factor", "5.2"),
        ("improvement", "420 %"),
        ("vs compile", "5.2"),
        ("speedup over compile", "+420 %"),
        ("speedup over compile", "around 5.2"),
        ("speedup over compile", "(5.2)"),
        ("speedup over compile", "five"),
        ("speedup over compile", "1.291 5.2"),
        ("speedup over compile", "1.291 (5.2 at best)"),
        ("speedup over compile", "1.291, 5.2 elsewhere"),
        ("time (us)", "1.0"),
        ("ours, us", "1.0"),
        ("microseconds per call, us", "1.0"),
        ("time, microseconds", "1.0"),
        ("tokens per second", "52000"),
        ("GB per second", "5200"),
        ("% of floor", "99"),
        ("roofline", "99 %"),
    ],
)
def test_a_cell_that_its_event_does_not_bear_out_is_flagged(heading: str, cell: str) -> None:
    assert problems(table(heading, cell))


@pytest.mark.parametrize(
    ("heading", "cell"),
    [
        ("time (us)", "1.892"),
        ("ours, us", "1.9"),
        ("% of floor", "36"),
        ("rows (s)", KERNEL),
        ("speedup over compile", "1.291 (1.288 to 1.295)"),
        ("speedup over compile", "1.291 (1.288 to 1.295), event 41"),
        ("factor of safety", "5.2"),
    ],
)
def test_a_cell_that_its_event_bears_out_is_not(heading: str, cell: str) -> None:
    assert problems(table(heading, cell)) == set()


def test_an_interval_has_a_column_of_its_own_beside_the_ratio() -> None:
    row = "| kernel | over compile | interval |\n|---|---|---|\n| {} | {} | {} |"
    assert problems(row.format(KERNEL, "1.291x", "1.288 to 1.295x")) == set()
    assert "wrong_interval" in problems(row.format(KERNEL, "1.291x", "1.2 to 1.4x"))
    assert problems(f"| kernel | interval |\n|---|---|\n| {KERNEL} | 5.1 to 5.3x |")
