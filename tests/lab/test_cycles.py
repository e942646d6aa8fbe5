"""Releases that go through the same sets again and again, as on a device; here through real guests on a CPU."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from forge.domain.policy import Policy
from forge.lab.finding import Failed
from forge.lab.guests import HARNESS, GuestSet, open_guests
from forge.lab.job import Job
from forge.lab.probe import Probe
from forge.lab.subject import loaded, staged
from forge.lab.timing import DEVICE_FEW_CYCLES, Part, Planned, _Pair, _plan, _plan_cycles
from tests.candidates import job_for

pytestmark = pytest.mark.usefixtures("walls")

HONEST = """
import torch

calls = 0


def fused_add_rmsnorm(x, residual, weight, eps):
    global calls
    calls += 1
    h = x + residual
    y = h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + eps) * weight
    {later}
    return y, h
"""


def job(later: str = "pass") -> Job:
    made = job_for(HONEST.format(later=later), language="torch")
    return replace(made, policy=Policy(baselines=("eager",), memory_limit_bytes=2**30))


@contextmanager
def probed(later: str = "pass") -> Iterator[Probe]:
    asked = job(later)
    with staged(asked, dict(asked.files), {}) as stage, loaded(asked, stage, asked.limits(60)) as probe:
        assert isinstance(probe, Probe)
        yield probe


def test_every_call_of_every_cycle_is_counted_and_the_last_ones_are_right() -> None:
    with probed() as probe:
        cases = [probe.case(probe.shape) for _ in range(3)]
        observed = probe.call(cases, cycles=4)
        assert not isinstance(observed, Failed)
        assert probe.calls == 12
        assert len(observed) == 3
        assert probe.first_wrong(observed) is None


@pytest.mark.parametrize(
    ("later", "code"),
    [
        ("y = y[:1] if calls == 5 else y", "INCORRECT_SHAPE"),
        ("h = h.double() if calls == 11 else h", "INCORRECT_DTYPE"),
        ("1 / (calls - 8)", "RUNTIME_ERROR"),
    ],
)
def test_one_call_of_another_form_ends_the_release(later: str, code: str) -> None:
    with probed(later) as probe:
        failed = probe.call([probe.case(probe.shape) for _ in range(3)], cycles=4)
        assert isinstance(failed, Failed)
        assert failed.reason.code == code


def test_what_a_later_cycle_answers_is_what_is_judged() -> None:
    for wrong_call, found in ((2, False), (11, True)):
        with probed(f"y = y * 2 if calls == {wrong_call} else y") as probe:
            observed = probe.call([probe.case(probe.shape) for _ in range(3)], cycles=4)
            assert not isinstance(observed, Failed)
            assert (probe.first_wrong(observed) is not None) == found


def test_outputs_of_a_cycle_are_kept_apart() -> None:
    """One buffer for all answers is the last one's when they are copied out."""
    with probed("globals().setdefault('kept', torch.empty_like(y)).copy_(y); y = kept") as probe:
        for cycles, found in ((1, False), (2, True)):
            observed = probe.call([probe.case(probe.shape) for _ in range(3)], cycles=cycles)
            assert not isinstance(observed, Failed)
            assert (probe.first_wrong(observed) is not None) == found


@contextmanager
def guests() -> Iterator[GuestSet]:
    with open_guests(job(), ()) as factory:
        opened = factory.fresh()
        assert isinstance(opened, GuestSet)
        with opened:
            yield opened


def test_a_round_times_every_side_over_the_same_sets_in_two_numbers_of_cycles() -> None:
    with guests() as opened:
        planned = Planned(Part(0, 4, 2), Part(0, 4, 42))
        assert planned.sets == 4
        measured = _Pair(opened, planned, random.Random(1)).round()
        assert not isinstance(measured, Failed)
        assert set(measured) == {"candidate", "eager", "control", HARNESS}
        for side in ("candidate", "eager", "control"):
            per_call_ns = (measured[side].many_ns - measured[side].few_ns) / 160
            assert 500 < per_call_ns < 10_000_000


def test_each_side_has_a_process_of_its_own_and_the_path_lies_beside_the_control() -> None:
    with guests() as opened:
        probes = [opened.probe(side) for side in opened.sides if side != HARNESS]
        assert len({id(probe) for probe in probes}) == len(probes) == len(opened.sides) - 1
        assert opened.probe(HARNESS) is opened.probe("eager")


def test_a_plan_has_the_sets_apart_on_the_processor_and_the_same_ones_on_a_device() -> None:
    with guests() as opened:
        apart, same = _plan(opened), _plan_cycles(opened)
        assert isinstance(apart, Planned)
        assert isinstance(same, Planned)
        assert (apart.few.first, apart.many.first, apart.sets) == (
            0,
            apart.few.count,
            apart.many.count + apart.few.count,
        )
        assert apart.few.cycles == apart.many.cycles == 1
        assert (same.few.count, same.few.cycles) == (same.many.count, DEVICE_FEW_CYCLES)
        assert same.many.calls > same.few.calls
