"""A true number isn't carried to other shapes, types, processors or uses by the words around it."""

import pytest

from tests.claims.evidences import problems

KERNEL = "triton_rmsnorm_h200_bf16_b16_h4096_v1"
TRUE = f"{KERNEL} is 1.291x as fast as torch.compile (95 % interval 1.288 to 1.295x)"


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ("at batch 16 to 8192", "wrong_shape"),
        ("at batch 16 and up", "wrong_shape"),
        ("from batch 1 to 8192", "wrong_shape"),
        ("for batch sizes up to 8192", "wrong_shape"),
        ("at b=8192", "wrong_shape"),
        ("at hidden 8192", "wrong_shape"),
        ("for 8192 rows", "wrong_shape"),
        ("at 8192 tokens", "wrong_shape"),
        ("at 8192 x 4096", "wrong_shape"),
        ("at 8192 by 4096", "wrong_shape"),
        ("at any batch", "wrong_shape"),
        ("for any input", "wrong_shape"),
        ("in float8_e4m3fn", "wrong_dtype"),
        ("in e4m3", "wrong_dtype"),
        ("in every precision", "wrong_dtype"),
        ("on Blackwell", "wrong_processor"),
        ("on a T4", "wrong_processor"),
        ("on eight H200s", "wrong_processor"),
        ("on 8x H200", "wrong_processor"),
        ("on any machine", "wrong_processor"),
        ("on all of NVIDIA's GPUs", "wrong_processor"),
        ("on GPUs", "wrong_processor"),
        ("on GPUs of other makers", "wrong_processor"),
        ("on Apple's M3", "wrong_processor"),
        ("on TPUs", "wrong_processor"),
        ("for whole networks", "beyond_operation"),
        ("in a chatbot", "beyond_operation"),
    ],
)
def test_words_behind_a_true_ratio_are_held_against_its_measurement(words: str, problem: str) -> None:
    assert problem in problems(f"{TRUE} {words}.")


@pytest.mark.parametrize(
    "words",
    [
        "at batch 16, hidden_size 4096",
        "at hidden 4096",
        "at b=16",
        "for 16 rows",
        "for 16 rows of 4096 columns",
        "at 16 x 4096",
        "in bf16",
        "on one NVIDIA H200",
        "on an H200 beside a Hopper manual",
    ],
)
def test_words_that_repeat_the_measurement_take_nothing_from_it(words: str) -> None:
    assert problems(f"{TRUE} {words}.") == set()


@pytest.mark.parametrize("words", ["The same holds on the H100.", "So it is on every H100, B200 and A100."])
def test_the_next_sentence_carries_no_number_to_another_processor(words: str) -> None:
    assert "unreadable" in problems(f"{TRUE}. {words}")
    assert problems(words) == set()


def test_the_next_sentence_may_name_the_processor_that_was_measured() -> None:
    assert problems(f"{TRUE}. So it is a good choice on the H200.") == set()
