"""Gates that are asked beside the candidate's first guest say what they say one after the other."""

from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from contextlib import ExitStack, contextmanager

import pytest

from forge.domain.verdict import Accepted, Reason, Rejected
from forge.errors import EnvironmentUnfit
from forge.lab import judge_slots, verification
from forge.lab.asked_gates import GateAsked, ask, ask_alone
from forge.lab.calls.artifact import staged_files
from forge.lab.calls.load import loaded, staged
from forge.lab.calls.loaded_kernel import LoadedKernel
from forge.lab.finding import Failed, NotAsked, Passed, joined
from forge.lab.gates.combinations import COMBINATIONS, PARTS
from forge.lab.gates.gate import Gate
from forge.lab.gates.layouts import LAYOUTS
from forge.lab.own_guests import OwnGuests
from forge.lab.verification import ORDER, Examination, examine
from tests.candidates import job_for

RIGHT = """
import torch


def fused_add_rmsnorm(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)
"""
WRONG_AT_ODD_ADDRESSES = RIGHT.replace("    h = x", "    x = x + 1 if x.data_ptr() % 16 else x\n    h = x")
SLOW_AT_ODD_ADDRESSES = "import time\n" + RIGHT.replace(
    "    h = x", "    time.sleep(1.0 * (x.data_ptr() % 16 > 0))\n    h = x"
)
"""A right kernel that takes a second where the gates beside ask hundreds of calls, and nothing elsewhere."""
GATES: tuple[Gate, ...] = (LAYOUTS, COMBINATIONS)
SHAPE = {"batch": 8, "hidden_size": 512}


@contextmanager
def beside(kernel: str) -> Iterator[tuple[Callable[[Gate], GateAsked], LoadedKernel, OwnGuests]]:
    """Load a candidate, and begin the gates beside its first guest; yield how one is asked in a new guest, too."""
    job = job_for(kernel, language="torch", shape=SHAPE, limit_s=120.0)
    with ExitStack() as held:
        stage = held.enter_context(staged(job, staged_files(job, ()), {}))
        first = held.enter_context(loaded(job, stage, job.gate_limits, label="load", fills_memory=True))
        assert isinstance(first, LoadedKernel)
        own = held.enter_context(OwnGuests(job, stage, staged_files(job, ()), lambda _: None))
        own.begin(GATES, configurations=0)
        yield lambda gate: ask_alone(job, stage, gate, 0), first, own


def test_a_right_kernel_passes_the_same_questions_in_any_guest() -> None:
    with beside(RIGHT) as (_, first, own):
        answer = own.answer(LAYOUTS)
        first.begin(LAYOUTS.name)
        assert ask(first, LAYOUTS) == answer
    assert isinstance(answer.finding, Passed)
    assert answer.seeds


@pytest.mark.parametrize("gate", GATES, ids=lambda gate: gate.name)
def test_a_wrong_kernel_is_refused_by_each(gate: Gate) -> None:
    with beside(WRONG_AT_ODD_ADDRESSES) as (_, _, own):
        finding = own.answer(gate).finding
    assert isinstance(finding, Failed)
    assert finding.reason.code == "INCORRECT_NUMERICAL"


def test_guests_whose_answers_are_not_wanted_are_ended() -> None:
    with beside(SLOW_AT_ODD_ADDRESSES) as (_, first, own):
        first.begin("signature")
        assert not isinstance(first.check([first.case(first.shape)]), Failed)
    with pytest.raises((EnvironmentUnfit, CancelledError)):  # it is ended, or it never began
        own.answer(LAYOUTS)


@pytest.fixture
def asked_beside(monkeypatch: pytest.MonkeyPatch) -> None:
    """Gates are asked beside each other, as they are beside a GPU."""
    monkeypatch.setattr(verification, "_guests_run_beside", lambda _: True)


@pytest.fixture
def no_slot(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other candidates hold all slots."""
    monkeypatch.setattr(judge_slots, "processors", lambda: 0)


def examined_beside(kernel: str) -> tuple[Examination, list[str]]:
    """Examine a candidate; return the result, and the gates as they began."""
    began: list[str] = []
    return examine(job_for(kernel, language="torch", shape=SHAPE, limit_s=120.0), progress=began.append), began


@pytest.mark.usefixtures("asked_beside")
def test_gates_are_recorded_in_their_order_however_they_were_asked() -> None:
    examined, began = examined_beside(RIGHT)
    assert isinstance(examined.verdict, Accepted), examined.gates
    recorded = [gate.name for gate in examined.gates]
    assert recorded == [name for name in ORDER if name in recorded]
    assert began.index("combinations, beside others") < began.index("aliasing")
    assert recorded.index("combinations") > recorded.index("sizes")


@pytest.mark.usefixtures("asked_beside", "no_slot")
def test_the_first_guest_is_asked_all_where_no_slot_is_free() -> None:
    examined, began = examined_beside(RIGHT)
    assert isinstance(examined.verdict, Accepted), examined.gates
    assert began.index("state") < began.index("scales") < began.index("sizes, part 2") < began.index("combinations")


@pytest.mark.usefixtures("asked_beside", "no_slot")
def test_a_refusal_by_the_first_guest_waits_for_the_gates_before() -> None:
    keeps_one = "KEPT = {}\n" + RIGHT.replace("    return (h * scale", "    y = (h * scale").replace(
        ", h.to(x.dtype)\n", "\n    return KEPT.setdefault(x.shape, y).copy_(y), h.to(x.dtype)\n"
    )
    examined, began = examined_beside(keeps_one)
    assert isinstance(examined.verdict, Rejected)
    assert examined.gates[-1].name == "aliasing", examined.gates
    assert began.index("aliasing") < began.index("scales")  # the refusal by it counts only if these pass
    assert "sizes" not in began


@pytest.mark.usefixtures("asked_beside")
def test_a_refusal_by_another_gate_ends_the_examination() -> None:
    examined, began = examined_beside(SLOW_AT_ODD_ADDRESSES.replace("return (h", "h[h > 900] = 0\n    return (h"))
    assert isinstance(examined.verdict, Rejected)
    assert examined.gates[-1].name == "scales"
    assert "combinations, beside others" in began
    assert "combinations" not in began  # it wasn't waited for


@pytest.mark.usefixtures("asked_beside")
def test_the_first_refusal_in_order_counts_although_a_later_gate_ended_the_first_guest() -> None:
    ends_at_small = RIGHT.replace(
        "    h = x", "    if x.shape[0] < 4 and x.shape[1] == 16:\n        os.abort()\n    h = x"
    )
    examined, began = examined_beside(
        "import os\n" + ends_at_small.replace("return (h", "h[h > 900] = 0\n    return (h")
    )
    assert isinstance(examined.verdict, Rejected)
    assert (examined.gates[-1].name, examined.verdict.reason.code) == ("scales", "INCORRECT_NUMERICAL")
    assert "aliasing" in began
    assert "domain" not in began  # the guest had ended
    assert examined.counterexample is not None


def test_each_part_of_a_question_draws_other_numbers() -> None:
    with beside(RIGHT) as (alone, _, own):
        seeds = own.answer(COMBINATIONS).seeds
        asked = [alone(part).seeds for part in COMBINATIONS.parts]
    assert len(asked) == PARTS
    assert seeds == tuple(seed for part in asked for seed in part)
    assert len(set(seeds)) == len(seeds)


def test_parts_become_one_finding() -> None:
    first, second = Passed(observed="a", threshold="t", calls=2), Passed(observed="b", threshold="t", calls=3)
    nothing = NotAsked(observed="no room", threshold="t")
    refusals = [Failed(reason=Reason(code="TIMEOUT", message=text), observed=text, threshold="t") for text in "cd"]
    assert joined([first, nothing, second, first]) == Passed(observed="a; b", threshold="t", calls=7)
    assert joined([nothing, nothing]) == nothing
    assert joined([first, *refusals]) == refusals[0]
