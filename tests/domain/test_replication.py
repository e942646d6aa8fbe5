"""Which two measurements are independent, and which can be compared at all."""

from datetime import UTC, datetime, timedelta

import pytest

from forge.domain.replication import LEAST_APART, Occasion, same_machine, why_not_comparable, why_not_independent
from tests.projections.values import digest, environment

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)


def on_gpu(uuid, *, host="host"):
    found = environment()
    gpu = found.gpu.model_copy(update={"uuid": uuid})
    return found.model_copy(update={"gpu": gpu, "host_sha256": digest(host)})


def test_one_hour_apart_is_enough_and_a_microsecond_less_is_not():
    here = environment()
    first = Occasion(NOON, here, digest("a"))
    for missing, independent in ((timedelta(0), True), (timedelta(microseconds=1), False)):
        second = Occasion(NOON + LEAST_APART - missing, here, digest("b"))
        assert (why_not_independent(first, second) is None) is independent


def test_a_clock_that_went_back_is_not_an_hour():
    first, second = Occasion(NOON, environment(), None), Occasion(NOON - timedelta(hours=9), environment(), None)
    assert "minutes after the first" in why_not_independent(first, second)


def test_a_gpu_is_known_by_its_uuid_whatever_its_host_is_called():
    assert same_machine(on_gpu("GPU-1"), on_gpu("GPU-1", host="renamed"))
    assert not same_machine(on_gpu("GPU-1"), on_gpu("GPU-2"))
    assert not same_machine(on_gpu(None), on_gpu("GPU-1", host="another"))


def test_the_same_process_is_never_independent():
    first = Occasion(NOON, on_gpu("GPU-1"), digest("a"))
    second = Occasion(NOON + timedelta(days=1), on_gpu("GPU-2"), digest("a"))
    assert "another process" in why_not_independent(first, second)


@pytest.mark.parametrize("name", ["cpu_model", "compiler"])
def test_a_processor_and_its_compiler_must_be_the_same(name):
    why = why_not_comparable(environment("cpu"), environment("cpu").model_copy(update={name: "another"}))
    assert why is not None
    assert f"{name} is 'another' here" in why


def test_a_gpu_may_be_in_a_host_of_another_kind_with_another_driver():
    there = environment(driver="999").model_copy(update={"cpu_model": "another", "compiler": None})
    assert why_not_comparable(environment(), there) is None
    assert "GPU is None here" in why_not_comparable(environment(), environment("cpu"))
