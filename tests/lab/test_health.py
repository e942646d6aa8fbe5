"""A probe that fails, lies or hangs is told from one that is well; the probe itself needs a GPU."""

import sys

import pytest

from forge.lab.device.health import Faulty, Healthy, Hung, expected, watch


def probe(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def test_a_probe_that_ends_well_means_a_healthy_device() -> None:
    assert watch(probe("pass"), limit_s=120) == Healthy()


@pytest.mark.parametrize(
    ("code", "detail"),
    [
        ("raise SystemExit('cuCtxSynchronize: CUDA_ERROR_ILLEGAL_ADDRESS')", "CUDA_ERROR_ILLEGAL_ADDRESS"),
        ("import os; os.abort()", "status -6"),
        ("raise SystemExit(3)", "status 3"),
    ],
)
def test_a_probe_that_fails_says_what_is_wrong(code: str, detail: str) -> None:
    found = watch(probe(code), limit_s=120)
    assert isinstance(found, Faulty)
    assert detail in found.detail


def test_a_probe_that_never_answers_is_given_up() -> None:
    assert watch(probe("import time; time.sleep(60)"), limit_s=0.5) == Hung(limit_s=0.5)


def test_every_word_that_the_probe_expects_is_another() -> None:
    words = memoryview(expected()).cast("I")
    assert words[0] == 1013904223
    assert words[1] == 1664525 + 1013904223
    assert len(set(words.tolist())) == len(words)
