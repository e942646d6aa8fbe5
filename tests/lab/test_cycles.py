"""Releases that go through the same sets again and again, as on a device; here through real guests on a CPU."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
import torch

from forge.domain.evidence import Isolation
from forge.domain.policy import CONTROL_KIND, Policy
from forge.lab.calls.load import loaded, staged
from forge.lab.calls.loaded_kernel import LoadedKernel
from forge.lab.finding import Failed
from forge.lab.job import Job
from forge.lab.timing.cpu_processes import HARNESS, GuestSet, open_guests
from forge.lab.timing.hard_values import hard_kinds
from forge.lab.timing.release_plan import SHOWN_FOR_EACH, Planned, plan_chain, plan_cycles
from forge.lab.timing.screening_windows import times_ns
from forge.lab.timing.slope import _SlopePair, questions
from forge.operations import find_operation
from forge.operations.operation import Exact
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
def probed(later: str = "pass") -> Iterator[LoadedKernel]:
    asked = job(later)
    with (
        staged(asked, dict(asked.files), {}) as stage,
        loaded(asked, stage, asked.limits(60), label="test") as kernel,
    ):
        assert isinstance(kernel, LoadedKernel)
        yield kernel


def test_every_call_of_every_cycle_is_counted_and_the_last_ones_are_right() -> None:
    with probed() as kernel:
        cases = [kernel.case(kernel.shape) for _ in range(3)]
        observed = kernel.call(cases, cycles=4)
        assert not isinstance(observed, Failed)
        assert kernel.calls == 12
        assert len(observed) == 3
        assert kernel.first_wrong(observed) is None


@pytest.mark.parametrize(
    ("later", "code"),
    [
        ("y = y[:1] if calls == 5 else y", "INCORRECT_SHAPE"),
        ("h = h.double() if calls == 11 else h", "INCORRECT_DTYPE"),
        ("1 / (calls - 8)", "RUNTIME_ERROR"),
    ],
)
def test_one_call_of_another_form_ends_the_release(later: str, code: str) -> None:
    with probed(later) as kernel:
        failed = kernel.call([kernel.case(kernel.shape) for _ in range(3)], cycles=4)
        assert isinstance(failed, Failed)
        assert failed.reason.code == code


def test_what_a_later_cycle_answers_is_what_is_judged() -> None:
    for wrong_call, found in ((2, False), (11, True)):
        with probed(f"y = y * 2 if calls == {wrong_call} else y") as kernel:
            observed = kernel.call([kernel.case(kernel.shape) for _ in range(3)], cycles=4)
            assert not isinstance(observed, Failed)
            assert (kernel.first_wrong(observed) is not None) == found


def test_outputs_of_a_cycle_are_kept_apart() -> None:
    """One buffer for all answers is the last one's when they are copied out."""
    with probed("globals().setdefault('kept', torch.empty_like(y)).copy_(y); y = kept") as kernel:
        for cycles, found in ((1, False), (2, True)):
            observed = kernel.call([kernel.case(kernel.shape) for _ in range(3)], cycles=cycles)
            assert not isinstance(observed, Failed)
            assert (kernel.first_wrong(observed) is not None) == found


@contextmanager
def guests() -> Iterator[GuestSet]:
    with open_guests(job(), ()) as factory:
        opened = factory.fresh()
        assert isinstance(opened, GuestSet)
        with opened:
            yield opened


@pytest.mark.parametrize("planned", [Planned(shown=4, asked=4, cycles=40), Planned(shown=12, asked=3)])
def test_a_round_times_every_side_over_the_same_sets(planned: Planned) -> None:
    with guests() as opened:
        if planned.cycles:
            opened.add(HARNESS, opened.kernel("eager"), opened.function("eager"))
        measured = _SlopePair(opened, planned, random.Random(1)).round()
        assert not isinstance(measured, Failed)
        assert set(measured) == {"candidate", "eager", "control", HARNESS}
        for side in ("candidate", "eager", "control"):
            assert measured[side] / planned.calls > 500


def test_the_empty_guest_holds_no_line_of_a_reference() -> None:
    """Its time is subtracted from every side's; a reference file is foreign code, and could lengthen it."""
    with open_guests(job(), ()) as factory:
        (stage,) = (stage for sides, stage, _ in factory._wanted() if sides == (HARNESS,))
        assert {path.name for path in (stage._directory / "candidate").iterdir()} == {"harness.py"}


def test_on_a_processor_every_side_has_a_process_of_its_own() -> None:
    """A process that answered for two sides would be warmer than the others."""
    with guests() as opened:
        assert HARNESS in opened.sides
        assert len({id(opened.kernel(side)) for side in opened.sides}) == len(opened.sides)


def test_a_plan_shows_more_than_it_asks_on_the_processor_and_repeats_all_on_a_device() -> None:
    with guests() as opened:
        chained, repeated = (
            plan_chain(opened.kernel(CONTROL_KIND), opened.function(CONTROL_KIND)),
            plan_cycles(opened),
        )
        assert chained.shown >= SHOWN_FOR_EACH * chained.asked
        assert chained.cycles == 0
        assert isinstance(repeated, Planned)
        assert repeated.shown == repeated.asked
        assert repeated.cycles > 1


PLANNED = Planned(shown=32, asked=8)


def test_every_round_asks_fresh_questions() -> None:
    with probed() as kernel:
        one, other = (questions(kernel, PLANNED, random.Random(seed)) for seed in (1, 2))
    values = [tuple(case.inputs[0].view(-1)[:8].tolist()) for case in (*one, *other)]
    assert len(set(values)) == len(values) == 64
    assert {case.kind for case in one} == {"normal"}


def test_no_question_is_another_one_moved_on() -> None:
    """Elementwise, a kernel could find the earlier question in it, and copy the answer instead of computing it."""
    with probed() as kernel:
        asked = questions(kernel, PLANNED, random.Random(1))
    for place in range(3):
        contents = {tuple(case.inputs[place].view(-1).sort().values.tolist()) for case in asked}
        assert len(contents) == len(asked)


def test_half_of_the_values_are_hard_where_the_time_does_not_count() -> None:
    with probed() as kernel:
        asked = questions(kernel, PLANNED, random.Random(1), hard=hard_kinds(kernel))
    assert len(asked) == 32
    assert 4 < sum(case.kind != "normal" for case in asked) < 28


TIMED = """
import sys
import threading
import time

import torch

asked = []


def right(x, residual, weight, eps):
    h = x + residual
    return h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + eps) * weight, h


def fused_add_rmsnorm(x, residual, weight, eps):
    y, h = right(x, residual, weight, eps)
    frame = sys._getframe(1)
    layout = frame.f_locals["layout"]
    index = frame.f_locals.get("index", 0)
    timed = frame.f_code.co_name == "chain"
    {cheat}
    return y, h
"""
FINISHES_LATER = """if timed:
        answer, y = y, torch.full_like(y, 0.5)

        def later(unfinished=y):
            time.sleep(0.0005)
            unfinished.copy_(answer)

        threading.Thread(target=later).start()"""


DENSE_AT_THE_END = """if timed:
        asked.append(index)
        y = y if len(asked) % 8 == 0 else y.t().contiguous().t()"""
"""A view that leaves reordering to its reader, in all calls of a chain but the last."""


@contextmanager
def cheating(cheat: str, **changed: Any) -> Iterator[LoadedKernel]:  # Any: fields of a job
    made = replace(job(), **changed)
    asked = replace(made, files={**made.files, "kernel.py": TIMED.replace("{cheat}", cheat).encode()})
    with (
        staged(asked, dict(asked.files), {}) as stage,
        loaded(asked, stage, asked.limits(60), label="test") as kernel,
    ):
        assert isinstance(kernel, LoadedKernel)
        yield kernel


def chained(kernel: LoadedKernel, seed: int) -> Failed | None:
    rng = random.Random(seed)
    cases = questions(kernel, PLANNED, rng, hard=hard_kinds(kernel))
    observed = kernel.chain(cases, first=rng.randrange(32), count=8, function=0)
    return observed if isinstance(observed, Failed) else kernel.first_wrong(observed)


@pytest.mark.parametrize(
    ("cheat", "codes"),
    [
        ("pass", set()),
        ("y = layout.destinations[index][0].copy_(y) if timed else y", {"TAMPERING"}),
        (FINISHES_LATER, {"NON_FINITE", "INCORRECT_NUMERICAL"}),
        ("y = y * (1 if not timed or x.abs().max() < 8 else 1.01)", {"INCORRECT_NUMERICAL"}),
        ("y = torch.nan_to_num(y) if timed else y", {"INCORRECT_NUMERICAL", "NON_FINITE"}),
        (DENSE_AT_THE_END, {"INCORRECT_STRIDES"}),
    ],
    ids=["honest", "no_copy", "finishes_later", "large_values", "specials", "other_strides"],
)
def test_what_is_timed_is_judged(cheat: str, codes: set[str]) -> None:
    """Each of these is right wherever it isn't timed."""
    with cheating(cheat) as kernel:
        assert not isinstance(kernel.check([kernel.case(kernel.shape, "large"), kernel.case(kernel.shape)]), Failed)
        failed = next(filter(None, (chained(kernel, seed) for seed in range(12))), None)
    assert ({failed.reason.code} if failed else set()) <= codes
    assert (failed is None) == (not codes)


def test_each_answer_leads_to_the_next_question_and_the_host_follows() -> None:
    with cheating("asked.append(index)\n    if len(asked) == 8:\n        print(asked, file=sys.stderr)") as kernel:
        cases = questions(kernel, PLANNED, random.Random(3))
        observed = kernel.chain(cases, first=5, count=8, function=0)
        assert not isinstance(observed, Failed)
        order = [next(place for place, case in enumerate(cases) if case is one.case) for one in observed]
        _, log = kernel.finish()
    assert str(order) in log
    assert len(set(order)) == 8
    assert order != sorted(order)


COPIES_NOTHING = """if timed and not asked:
        asked.append(index)

        def copy_out(*_):
            1 / 0

        frame.f_globals["run"].copy_out = copy_out"""


def test_a_timed_call_has_no_copy_that_a_candidate_could_leave_out() -> None:
    """For a kernel as short as a copy, the copy would be most of what is measured."""
    with cheating(COPIES_NOTHING) as kernel:
        assert chained(kernel, 1) is None


@pytest.mark.parametrize(
    ("cheat", "code"),
    [
        ("pass", None),
        (COPIES_NOTHING, "RUNTIME_ERROR"),
        ("y = y.t().contiguous().t() if timed else y", "INCORRECT_STRIDES"),
        ("y = y * 2 if timed else y", "INCORRECT_NUMERICAL"),
    ],
    ids=["honest", "no_copy", "other_strides", "wrong"],
)
def test_a_guest_that_is_not_stopped_copies_its_outputs_itself(cheat: str, code: str | None) -> None:
    """The memory of a process that works on may change while it is read."""
    with cheating(cheat, isolation=Isolation(level="none", parts=(), missing=("user_ns",))) as kernel:
        failed = chained(kernel, 1)
    assert (failed.reason.code if failed else None) == code


ELSEWHERE = """if timed and not asked:
        asked.append(index)
        channel = frame.f_globals["channel"]
        told = channel.reply

        def reply(*arguments, **named):
            if "addresses" in named:
                named["addresses"] = {addresses}
            told(*arguments, **named)

        channel.reply = reply"""


@pytest.mark.parametrize(
    "addresses",
    [
        '(8, *named["addresses"][1:])',
        '(2**64 - 8, *named["addresses"][1:])',
        '(2**47 - 4096, *named["addresses"][1:])',
        'named["addresses"][:-1]',
        "()",
    ],
)
def test_outputs_that_lie_nowhere_are_refused(addresses: str) -> None:
    with cheating(ELSEWHERE.replace("{addresses}", addresses)) as kernel:
        failed = chained(kernel, 1)
    assert failed is not None
    assert failed.reason.code == "TAMPERING"


@pytest.mark.parametrize(
    ("addresses", "codes"),
    [
        ('named["addresses"][::-1]', {"INCORRECT_NUMERICAL", "NON_FINITE"}),
        ('named["addresses"][:2] * 8', {"STATE_CARRIED"}),
        ('[one - 8 for one in named["addresses"]]', {"INCORRECT_NUMERICAL", "NON_FINITE"}),
        (
            '[one + 4 * (one == named["addresses"][3]) for one in named["addresses"]]',
            {"INCORRECT_NUMERICAL", "NON_FINITE"},
        ),
        ('[x.data_ptr(), *named["addresses"][1:]]', {"STATE_CARRIED"}),
    ],
    ids=["reversed", "one_place", "before", "one_behind", "an_input"],
)
def test_what_lies_at_an_address_is_the_answer_whatever_was_returned(addresses: str, codes: set[str]) -> None:
    with cheating(ELSEWHERE.replace("{addresses}", addresses)) as kernel:
        failed = chained(kernel, 1)
    assert failed is not None
    assert failed.reason.code in codes


HALVES = """
import ctypes
import mmap
import sys

import torch

HALF = 4096
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p


def mapped(length, flags, file, at=None):
    where = libc.mmap(ctypes.c_void_p(at), ctypes.c_size_t(length), 3, flags, file, ctypes.c_long(0))
    assert where != 2**64 - 1, ctypes.get_errno()
    return where


def tensor(where, x):
    content = (ctypes.c_char * (2 * HALF)).from_address(where)
    return torch.frombuffer(content, dtype=torch.float32).view(x.shape)


def own(x):
    y = torch.empty_like(x)
    y[:, :1024] = y[:, 1024:] = x[:, :1024]
    return y


def in_a_file(x, private=False):
    with open(f"/scratch/{len(kept)}", "w+b") as file:
        file.truncate(HALF)
        where = mapped(2 * HALF, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1)
        with mmap.mmap(file.fileno(), HALF) as written:
            written[:] = x[0, :1024].numpy().tobytes()
        for half in (where, where + HALF):
            mapped(HALF, (mmap.MAP_PRIVATE if private else mmap.MAP_SHARED) | 0x10, file.fileno(), half)
    return tensor(where, x)


def in_shared_memory(x):
    y = tensor(mapped(2 * HALF, mmap.MAP_SHARED | mmap.MAP_ANONYMOUS, -1), x)
    return y.copy_(own(x))


kept = []


def softmax(x):
    timed = sys._getframe(1).f_code.co_name == "chain"
    kept.append({way} if timed else own(x))
    return kept[-1]
"""


@pytest.mark.parametrize(
    ("way", "code"),
    [
        ("own(x)", None),
        ("in_a_file(x)", "STATE_CARRIED"),
        ("in_a_file(x, private=True)", "STATE_CARRIED"),
        ("in_shared_memory(x)", "STATE_CARRIED"),
    ],
    ids=["written", "mapped_twice", "mapped_twice_privately", "shared"],
)
def test_memory_that_shows_one_page_twice_is_no_answer(way: str, code: str | None) -> None:
    """A kernel could map what repeats instead of writing it, and only the host would read all of it."""
    made = job_for(HALVES.replace("{way}", way), language="torch", operation="softmax", shape=HALVED_SHAPE)
    assert _chained_answer(replace(made, operation=HALVED, policy=job().policy)) == code


HALVED_SHAPE = {"batch": 1, "hidden_size": 2048}
HALVED = replace(
    find_operation("softmax"), oracle=lambda x: (Exact(value=torch.cat((x[:, :1024], x[:, :1024]), dim=1)),)
)
COPIED = replace(find_operation("softmax"), oracle=lambda x: (Exact(value=x),))


def _chained_answer(asked: Job) -> str | None:
    """Return the code with which a chain is refused, or None."""
    with (
        staged(asked, dict(asked.files), {}) as stage,
        loaded(asked, stage, asked.limits(60), label="test") as kernel,
    ):
        assert isinstance(kernel, LoadedKernel)
        cases = [kernel.case(kernel.shape) for _ in range(8)]
        observed = kernel.chain(cases, first=2, count=4, function=0)
        failed = observed if isinstance(observed, Failed) else kernel.first_wrong(observed)
    return None if failed is None else failed.reason.code


def test_contenders_that_return_an_operand_are_ranked_all_the_same() -> None:
    """Baselines are ranked beside them, and a reference file may return what it was given."""
    made = job_for("def softmax(x):\n    return x", language="torch", operation="softmax")
    asked = replace(made, operation=COPIED, policy=job().policy)
    with (
        staged(asked, dict(asked.files), {}) as stage,
        loaded(asked, stage, asked.limits(60), label="test") as kernel,
    ):
        assert isinstance(kernel, LoadedKernel)
        (timed,) = times_ns(asked, [kernel])
    assert isinstance(timed, float)


@pytest.mark.parametrize(("answer", "code"), [("x.clone()", None), ("x", "STATE_CARRIED"), ("x[:]", "STATE_CARRIED")])
def test_an_operand_is_no_answer_where_a_call_is_timed(answer: str, code: str | None) -> None:
    made = job_for(f"def softmax(x):\n    return {answer}", language="torch", operation="softmax")
    assert _chained_answer(replace(made, operation=COPIED, policy=job().policy)) == code


KEPT = """if not timed and asked:
        print("kept", len(sys.modules["guest.chain"]._KEPT), file=sys.stderr)
    asked.append(index)"""


def test_outputs_that_were_read_take_no_memory_from_the_next_calls() -> None:
    with cheating(KEPT) as kernel:
        assert chained(kernel, 1) is None
        assert not isinstance(kernel.check([kernel.case(kernel.shape)]), Failed)
        _, log = kernel.finish()
    assert log.split() == ["kept", "0"]


WATCHES_THE_HARNESS = """if timed and not asked:
        asked.append(index)
        looks = frame.f_globals["surroundings"]

        def told(function, name):
            def call(*arguments, **named):
                stack, one = [], sys._getframe(1)
                while one is not None:
                    stack.append(one.f_code.co_name)
                    one = one.f_back
                print(name, "inside" if "chain" in stack else "outside", file=sys.stderr)
                return function(*arguments, **named)

            return call

        looks.look = told(looks.look, "look")
        looks.Surroundings.status_after = told(looks.Surroundings.status_after, "compare")"""


def test_what_the_harness_looks_at_takes_none_of_the_time_of_the_calls() -> None:
    """A candidate that skips what only the harness does would otherwise be faster than its work."""
    with cheating(WATCHES_THE_HARNESS) as kernel:
        assert (chained(kernel, 1), chained(kernel, 2)) == (None, None)
        _, log = kernel.finish()
    assert [line for line in log.splitlines() if line] == ["compare outside", "look outside", "compare outside"]


FAULTS = """import resource

    def taken():
        return resource.getrusage(resource.RUSAGE_THREAD).ru_minflt

    asked.append(taken())
    if timed and len(asked) == 2:
        for tensor in (tensor for one in layout.inputs for tensor in one):
            tensor.view(torch.int32).sum()
        print(taken() - asked[-1], file=sys.stderr)
    if timed and len(asked) == 33:
        print(asked[-1] - asked[-8], file=sys.stderr)"""


def test_no_side_takes_page_faults_for_its_operands_while_it_is_timed() -> None:
    """A candidate that maps the pages before it is timed would save them, and the baselines wouldn't."""
    with cheating(FAULTS, shape={"batch": 128, "hidden_size": 2048}) as kernel:
        assert not isinstance(kernel.check([kernel.case(kernel.shape)]), Failed)
        assert [chained(kernel, seed) for seed in range(4)] == [None] * 4
        _, log = kernel.finish()
    of_inputs, of_outputs = map(int, log.split())
    assert of_inputs < 64  # of 16448 pages in the first chain; a kernel that maps 16 pages at once takes 1028
    assert of_outputs < 7  # of seven calls in the last chain; a large page takes one for the outputs of a call


@pytest.mark.parametrize(
    ("cheat", "code"),
    [
        ("torch.set_num_threads(3) if timed else None", "STATE_CARRIED"),
        ("torch.manual_seed(1) if timed else None", "STATE_CARRIED"),
        ("x.requires_grad_() if timed else None", "INPUT_MUTATED"),
    ],
    ids=["settings", "generator", "input"],
)
def test_what_a_timed_call_leaves_behind_is_found(cheat: str, code: str) -> None:
    with cheating(cheat) as kernel:
        failed = chained(kernel, 1)
    assert failed is not None
    assert failed.reason.code == code


ONE_BUFFER = "y = globals().setdefault('kept', torch.empty_like(y)).copy_(y) if timed or 'kept' in globals() else y"


def test_one_buffer_for_all_calls_is_found_where_it_begins_while_timed() -> None:
    asked = replace(job(), files={**job().files, "kernel.py": TIMED.replace("{cheat}", ONE_BUFFER).encode()})
    with open_guests(asked, ()) as factory:
        opened = factory.fresh()
        assert isinstance(opened, GuestSet)
        with opened:
            pair = _SlopePair(opened, PLANNED, random.Random(1))
            assert pair.ask_for_kept_outputs() is None
            failed = pair.round()
            kept = pair.ask_for_kept_outputs()
    assert isinstance(failed, Failed)
    assert failed.reason.code == "STATE_CARRIED"
    assert isinstance(kept, Failed)
    assert kept.reason.code == "STATE_CARRIED"
