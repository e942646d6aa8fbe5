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
