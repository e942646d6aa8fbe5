"""How people speak of speed, and how they hide it."""

import time

import pytest

from forge.claims.number import plain, value_of
from forge.claims.prose import passages
from forge.claims.spoken import figures, sentences
from tests.claims.evidences import checked


def found(text: str) -> list[tuple[str, float | None]]:
    return [
        (one.kind, round(one.value, 3) if one.kind in ("ratio", "rate") else None) for one in figures(plain(text))
    ]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("it is 1.5x faster", 1.5),
        ("it is 1.5\u00d7 faster", 1.5),
        ("it is 1.5 \u2715 faster", 1.5),
        ("it is 1.5\u0445 faster", 1.5),
        ("it is 1,5x faster", 1.5),
        ("it is 1\u00bdx faster", 1.5),
        ("it is 1.5\u200bx faster", 1.5),
        ("it is \U0001d7cf.\U0001d7d3x faster", 1.5),
        ("it is \uff11.\uff15x faster", 1.5),
        ("it is 1,500x faster", 1500.0),
        ("1.2 to 1.5x faster", 1.5),
        ("1.2\u20131.5\u00d7 faster", 1.5),
        ("1.5 (1.4 to 1.6) over eager", 1.5),
    ],
)
def test_a_ratio_is_found_however_it_is_said(text: str, value: float) -> None:
    assert found(text) == [("ratio", value)]


@pytest.mark.parametrize(
    "text",
    [
        "twice as fast as eager",
        "double the throughput",
        "it doubles the throughput",
        "it halves the latency",
        "it cuts latency in half",
        "runs in half the time",
        "takes a third of the time",
        "thrice as fast",
        "an order of magnitude faster",
        "two orders of magnitude faster",
        "50 % faster",
        "fifty percent faster",
        "improves performance by 50%",
        "50 percent higher throughput",
        "50 % less latency",
        "reduces latency by 50 %",
        "a latency reduction of 50 %",
        "it runs in 50 % of the time",
        "a speedup of 1.5",
        "a 1.5-fold speedup",
        "faster by a factor of 1.5",
        "faster by 1.5 times",
        "1.5 times faster",
        "three times faster",
        "a tenfold speedup",
        "a hundred times faster",
        "two and a half times faster",
        "1.5x slower",
        "1.5x as slow",
        "95 % interval 1.2 to 1.5x faster",
        "the call went from 3.0 us to 2.0 us",
        "it takes 2.0 us instead of 3.0 us",
        "forty tokens per second",
        "it needs one third of the time that eager needs",
        "it runs in a ninth of eager's time",
        "it needs 0.2 of eager's time",
        "it runs five times in the time eager runs once",
        "it cuts latency from 40 to 10 microseconds",
        "the speed ratio against eager is 7 : 1",
        "a fivefold gain",
        "it triples tokens per second",
    ],
)
def test_what_is_no_ratio_in_figures_is_taken_for_a_claim_that_cannot_be_read(text: str) -> None:
    kinds = {one.kind for one in figures(plain(text))}
    assert kinds
    assert kinds <= {"unreadable", "boast"}


@pytest.mark.parametrize(
    "text",
    [
        "faster than cuBLAS",
        "it outperforms torch.compile",
        "much faster",
        "on par with FlashAttention-3",
        "zero overhead",
        "overhead-free",
        "the fastest softmax kernel",
        "state-of-the-art performance",
        "blazingly fast",
        "reaches 90 % of peak bandwidth",
        "it leaves torch.compile behind",
        "faster than everything published",
    ],
)
def test_a_comparison_without_a_number_is_found(text: str) -> None:
    assert [kind for kind, _ in found(text)] == ["boast"]


@pytest.mark.parametrize(
    ("text", "value"),
    [("4.26 TB/s", 4.26e12), ("803 TFLOPS", 803e12), ("803 TFLOP/s", 803e12), ("120 tokens per second", 120.0)],
)
def test_a_rate_is_found(text: str, value: float) -> None:
    assert found(text) == [("rate", value)]


@pytest.mark.parametrize(
    "text",
    [
        "a shape of 16 x 4096",
        "16x4096 is the shape",
        "8x H100",
        "2 x x86_64",
        "0x1f",
        "4x more memory",
        "0.0526 x the bound",
        "counted three times",
        "the same event twice",
        "half of the rows",
        "in 5 % of all draws",
        "a file of 1.5 GB",
        "it can't be faster than the baselines",
        "the lower end of the two-sided 95 % interval of baseline / candidate decides what is faster",
    ],
)
def test_other_numbers_are_left_alone(text: str) -> None:
    assert found(text) == []


def test_up_to_is_said_of_the_best() -> None:
    assert [one.best_case for text in ("up to 2x faster", "by up to 20 % faster") for one in figures(text)] == [
        True
    ] * 2


@pytest.mark.parametrize(
    "page",
    [
        "# 2x faster",
        "- 2x faster",
        "> 2x faster",
        "| a |\n|---|\n| 2x |",
        "![2x faster](a.png)",
        "<p>2<b>x</b> faster</p>",
        "**2**x faster",
        "2&times; faster",
        "`2x` faster",
        "[2x faster](a.md)",
        "1. text\n\n   2x faster",
        "[see](a.md '2x faster')",
        "![see](a.png '2x faster')",
        "[see][a]\n\n[a]: b '2x faster'",
        '<img src="a" alt="2x faster">',
        'Look <abbr title="2x faster">here</abbr>.',
        "<table><tr><td>2x</td><td>faster</td></tr></table>",
        "<!--> 2x faster -->",
        "<!---> 2x faster -->",
        "<!-- a --!> 2x faster",
        "<![CDATA[ > 2x faster ]]>",
        "```mermaid\ngraph TD; A[2x faster]\n```",
        "a $2\\times$ speedup",
        "a ${2}{\\times}$ speedup",
        "2\u0445 f\u0430st\u0435r",
    ],
)
def test_a_figure_is_found_wherever_a_reader_sees_it(page: str) -> None:
    assert [
        one.value for passage in passages(page) for sentence in sentences(passage) for one in sentence.figures
    ] == [2]


def test_a_word_in_letters_that_only_look_right_is_read_as_it_looks() -> None:
    assert found("3 times f\u0430ster") == found("3 times faster") != []


@pytest.mark.parametrize("page", ["```\n2x faster\n```", "    2x faster", "<!-- 2x faster -->", "[a]: b '2x faster'"])
def test_what_a_reader_does_not_see_as_prose_is_left_alone(page: str) -> None:
    assert [one for passage in passages(page) for sentence in sentences(passage) for one in sentence.figures] == []


@pytest.mark.parametrize(
    ("text", "value"),
    [("1.5", 1.5), ("1,5", 1.5), ("1,500", 1500.0), ("12,035.5", 12035.5), (".5", 0.5)],
)
def test_a_number_is_worth_what_it_says(text: str, value: float) -> None:
    assert value_of(text) == value


def test_a_long_run_of_combining_marks_is_read_in_linear_time() -> None:
    started = time.thread_time()
    assert plain("a" + "\u0301\u0316" * 80_000) == "a"
    assert time.thread_time() - started < 5


@pytest.mark.parametrize("text", ["2\u00d7 faster. ", "1.5x (", "1 us vs ", "1.5x eager "])
def test_a_long_paragraph_is_read_in_a_moment(text: str) -> None:
    started = time.thread_time()
    assert checked((text * 5000)[:19_000]).flagged
    assert time.thread_time() - started < 5


def test_a_cell_of_many_signs_is_read_in_a_moment() -> None:
    started = time.thread_time()
    checked(f"| gain |\n|---|\n| {'+(*' * 5000} |\n")
    assert time.thread_time() - started < 5
