"""A number beside a word of time or speed is read or flagged; it isn't passed because its idiom is unknown."""

import pytest

from tests.claims.evidences import SEQ, problems

KERNEL = "triton_rmsnorm_h200_bf16_b16_h4096_v1"
ENVIRONMENT_SEQ = 7


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("Softmax needs twice as long in eager.", "unreadable"),
        ("Eager takes 2.3 times longer.", "unreadable"),
        ("It runs in 2/5 of the time.", "unreadable"),
        ("Ours wins by an order of magnitude.", "unreadable"),
        ("The gap is two orders of magnitude.", "unreadable"),
        ("It serves 40 % more tokens per second.", "beyond_operation"),
        ("It handles 40 % more requests per second.", "beyond_operation"),
        ("The kernel saves 57 % of the time.", "unreadable"),
        ("It takes 41.9 us with the compiler, 12.0 us with ours.", "unreadable"),
        ("Speedup: 9.", "unreadable"),
        ("This is the fastest softmax for Hopper that anyone has published.", "no_measure"),
        ("It is done three times quicker.", "unreadable"),
        ("Faster, says our report: 4 seconds shorter.", "unreadable"),
    ],
)
def test_a_sentence_that_was_missed_is_flagged(text: str, problem: str) -> None:
    assert problem in problems(text)


@pytest.mark.parametrize(
    "text",
    [
        "Which one is faster?",
        "Values spread over many orders of magnitude.",
        "The whole 95 % interval of the speedup counts.",
        "It builds in half a second.",
        "No benchmark attempt took longer.",
        "There are 16 rows of 4096, and no longer any of 8192.",
    ],
)
def test_words_that_say_nothing_of_speed_are_left_alone(text: str) -> None:
    assert problems(text) == set()


def test_a_figure_whose_event_measured_nothing_has_no_evidence_though_its_kernel_is_named() -> None:
    text = f"{KERNEL} is 1.291x as fast as torch.compile (95 % interval 1.288 to 1.295x): event {{}}."
    assert problems(text.format(SEQ)) == set()
    assert problems(text.format(ENVIRONMENT_SEQ)) == {"unknown_evidence"}


@pytest.mark.parametrize(
    "said",
    [
        "takes 1 microsecond",
        "takes 900 nanoseconds",
        "takes 900 nsec",
        "takes 0.5usec",
        "takes half a microsecond",
        "takes 2000 clock cycles",
        "completes 2M calls/s",
        "reaches 3.9 TBps",
        "reaches 3.9 TB / s",
        "reaches 3.9 TB\u00b7s\u207b\u00b9",
        "sustains 900 teraflops",
        "achieves 99 % utilisation",
        "reaches ninety-nine percent of its floor",
        "reaches its floor",
        "runs at the speed of light",
        "is 5 x torch.compile",
        "gives a boost of 5",
        "gives an improvement of 420 %",
        "is five times better",
        "is ten-fold better",
        "quintuples the throughput",
        "takes a fifth of what torch.compile takes",
        "takes 20 % of what torch.compile takes",
        "beats them all",
        "is the fastest",
        "can't be beaten",
        "wins against torch.compile everywhere",
        "never loses to torch.compile",
    ],
)
def test_a_unit_or_a_boast_in_other_words_is_flagged_beside_a_kernel(said: str) -> None:
    assert problems(f"{KERNEL} {said}.")


@pytest.mark.parametrize("said", ["takes 1.892 microseconds", "takes 1892 nanoseconds", "takes 1.892 usec"])
def test_a_unit_in_other_words_is_read(said: str) -> None:
    assert problems(f"{KERNEL} {said}.") == set()


@pytest.mark.parametrize(
    "said",
    [
        "uses 30 % less memory",
        "keeps within 40 % of its error bound",
        "passed 19 gates",
        "is the first of its family",
        "was benchmarked in 5 processes",
    ],
)
def test_what_is_said_of_a_kernel_beside_its_speed_is_left_alone(said: str) -> None:
    assert problems(f"{KERNEL} {said}.") == set()
