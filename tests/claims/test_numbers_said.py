"""A number that is bettered by what stands around it, or by its rounding, isn't the one that was measured."""

import pytest

from tests.claims.evidences import problems

KERNEL = "triton_rmsnorm_h200_bf16_b16_h4096_v1"
REST = "as fast as torch.compile (95 % interval 1.288 to 1.295x)."


@pytest.mark.parametrize(
    "said",
    [
        "1.291\u00b2x",
        "1.291<sup>2</sup>x",
        "10^1.291x",
        "10 * 1.291x",
        "2 \u00b7 1.291x",
        "2 \u22c5 1.291x",
        "three times 1.291x",
        "more than 1.291x",
        "> 1.291x",
        "\u2265 1.291x",
        "at least 1.291x",
        "well over 1.291x",
        "never less than 1.291x",
        "1.291x+",
        "\u277a\u00d7",
        "5\u03c7",
        "5\u2718",
    ],
)
def test_a_number_that_is_said_to_be_more_is_flagged(said: str) -> None:
    assert problems(f"{KERNEL} is {said} {REST}") & {"overstated", "unreadable"}


@pytest.mark.parametrize("said", ["1.291x", "at least 1.287x", "more than 1.28x", "> 1.2877x"])
def test_a_number_that_the_lower_end_bears_out_may_be_said_as_the_least(said: str) -> None:
    assert problems(f"{KERNEL} is {said} {REST}") == set()


def test_a_dot_between_names_is_no_sign_of_a_product() -> None:
    assert problems(f"rmsnorm \u00b7 bf16 \u00b7 H200 \u00b7 {KERNEL} \u00b7 1.291x {REST}") == set()


@pytest.mark.parametrize(
    ("said", "may_be_said"), [("1.9 us", True), ("2 us", True), ("1.8 us", False), ("1 us", False)]
)
def test_rounding_betters_no_time(said: str, may_be_said: bool) -> None:
    assert (problems(f"{KERNEL} takes {said}.") == set()) == may_be_said
