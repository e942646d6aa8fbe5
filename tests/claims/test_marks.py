"""What a page says of its own figures: that a file holds them, or that they are no claim."""

import pytest

from forge.errors import UsageError
from tests.claims.evidences import checked, problems

FILES = {
    "found.json": '{"ratio": 1.7312, "rates": [2458.06, 12034.6], "name": "3.9"}',
    "found.csv": "name,x\na,4.25\n",
}
MEASURED = "<!-- measured: found.json -->\n\n"


def test_a_figure_in_the_named_file_is_supported_as_it_is_rounded() -> None:
    for text in ("appending is 1.73x faster", "appending is 1.7x faster", "2,458 events/s", "12,035 events/s"):
        report = checked(MEASURED + text, files=FILES)
        assert report.flagged == ()
        assert [one.rests_on for one in report.supported] == [("found.json",)]


@pytest.mark.parametrize(
    "text",
    [
        "1.74x faster",
        "1.8x faster",
        "2x faster",
        "3.9x faster",
        "2,459 events/s",
        "twice as fast",
        "zero overhead",
        "12/41 of the time",
    ],
)
def test_a_figure_that_the_file_does_not_hold_is_flagged(text: str) -> None:
    assert problems(MEASURED + text, files=FILES) & {"not_in_file", "no_measure"}


@pytest.mark.parametrize("name", ["gone.json", "page.md", "found.py"])
def test_a_file_that_is_missing_or_holds_prose_vouches_for_nothing(name: str) -> None:
    page = f"<!-- measured: {name} -->\n\n1.73x faster"
    assert problems(page, files={**FILES, "page.md": "1.73", "found.py": "1.73"}) == {"not_in_file"}


def test_a_table_of_text_vouches_too() -> None:
    assert problems("<!-- measured: found.csv -->\n\n4.25x faster", files=FILES) == set()


def test_a_figure_has_no_more_digits_than_a_number_in_a_file_can_have() -> None:
    (flagged,) = checked(f"{MEASURED}1.{'7' * 9000}x faster", files=FILES).flagged
    assert "9000 digits" in flagged.faults[0].why


def test_figures_are_found_however_deep_the_file_is_nested() -> None:
    deep = {"found.json": "[" * 1000 + "1.73" + "]" * 1000}
    assert problems(f"{MEASURED}1.73x faster", files=deep) == set()


def test_the_mark_ends_with_its_section() -> None:
    page = "## A\n\n" + MEASURED + "1.73x faster\n\n### B\n\n1.73x faster\n\n## C\n\n1.73x faster\n"
    report = checked(page, files=FILES)
    assert [one.line for one in report.supported] == [5, 9]
    assert [one.line for one in report.flagged] == [13]


@pytest.mark.parametrize(
    "text", ["1.73x faster than torch.compile", "triton_x_h200_bf16_b1_v1 is 1.73x faster", "1.73x faster: event 41"]
)
def test_no_file_vouches_for_a_kernel(text: str) -> None:
    assert problems(MEASURED + text, files=FILES) - {"not_in_file"}


def test_what_is_no_claim_is_set_aside_with_its_reason_and_for_one_block_only() -> None:
    page = "<!-- not a claim: a threshold -->\n\n- 1.1x faster\n- 1.2x faster\n\n1.3x faster\n"
    report = checked(page)
    assert [(one.line, one.reason) for one in report.set_aside] == [(3, "a threshold"), (4, "a threshold")]
    assert [one.line for one in report.flagged] == [6]


def test_a_kernel_is_never_set_aside() -> None:
    assert problems("<!-- not a claim: really -->\n\ntriton_x_h200_bf16_b1_v1 is 9x faster") == {"unknown_evidence"}


@pytest.mark.parametrize(
    "mark", ["<!-- not a claim: -->", "<!-- not a claim -->", "<!-- measured: -->", "a <!-- not a claim: x -->"]
)
def test_a_mark_without_a_reason_or_within_a_line_is_none(mark: str) -> None:
    assert problems(f"{mark}\n\n1.1x faster") == {"no_evidence"}


def test_a_passage_of_opening_brackets_is_refused_before_its_links_are_searched() -> None:
    with pytest.raises(UsageError, match=r"the passage at line 3 has 501 of '\[': expected at most 500"):
        checked("text\n\n" + "[" * 501)
    assert checked("text\n\n" + "[" * 500).flagged == ()
