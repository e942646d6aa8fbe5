"""Figures as the pages write them."""

import pytest

from forge.web.pages import rows


@pytest.mark.parametrize(
    ("ratio", "low", "high", "written"),
    [
        (1.0, 0.9988, 1.0035, "1.000x (0.999 to 1.004)"),
        (1.3004, 1.2979, 1.3041, "1.300x (1.298 to 1.304)"),
        (24.1234, 24.0611, 24.1878, "24.123x (24.061 to 24.188)"),
    ],
)
def test_an_interval_keeps_its_digits_so_that_its_ends_stay_apart(
    ratio: float, low: float, high: float, written: str
) -> None:
    assert written in rows.interval({"ratio": ratio, "low": low, "high": high})
