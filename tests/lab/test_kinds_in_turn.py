"""Kinds of values that gates ask in turn: near sizes get different ones, so each range of sizes gets all."""

import itertools
from contextlib import closing
from typing import cast

import torch

from forge.domain.input_kind import REFERENCE_KINDS
from forge.lab.calls.asked_operation import AskedOperation
from forge.lab.calls.loaded_guest import LoadedGuest
from forge.lab.calls.loaded_kernel import LoadedKernel
from forge.lab.gates.kinds_in_turn import TELLING, KindsInTurn
from forge.lab.inputs.integers import _runs_apart
from forge.lab.runner import PROCESSOR
from forge.operations import find_operation
from forge.sandbox.arena import Arena
from forge.sandbox.session import Session
from tests.candidates import job_for


def test_each_kind_comes_once_before_one_comes_again() -> None:
    operation, job = find_operation("rmsnorm"), job_for("", language="torch", operation="rmsnorm")
    asked = AskedOperation(
        operation=operation, shape=job.shape, dtype=job.dtype, policy=job.policy, runner=PROCESSOR, held_out=()
    )
    with closing(Arena(2**20)) as arena:
        kinds = KindsInTurn(LoadedKernel(LoadedGuest(cast(Session, None), arena, "rmsnorm"), asked, seed=1))
        telling = (one for one in TELLING if one not in REFERENCE_KINDS)
        told = sorted((*telling, "special_rows", "special_weights", "subnormal"))
        for _ in range(3):
            assert sorted(kinds.at(job.shape) for _ in told) == told
        of_one = [kinds.at({**job.shape, "hidden_size": 1}) for _ in range(100)]
        assert "special_weights" not in of_one, "infinity times a zero that was rounded has no one answer"
        assert set(of_one) == set(told) - {"special_weights"}


def test_two_runs_of_slots_rise_with_one_gap_where_there_is_room() -> None:
    generator = torch.Generator().manual_seed(1)
    for count, size in itertools.product(range(1, 9), range(1, 20)):
        slots = _runs_apart(count, size, generator)
        taken = slots[slots >= 0]
        steps = taken.diff()
        assert (len(slots), len(taken)) == (count, min(count, size))
        assert int(taken[-1]) < size
        assert bool((steps > 0).all())
        assert int((steps > 1).sum()) == int(size > len(taken) > 1)
