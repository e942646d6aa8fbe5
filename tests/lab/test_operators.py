"""Torch's own profile of a candidate: read strictly, and taken behind the wall."""

import json

import pytest

from forge.errors import EnvironmentUnfit
from forge.lab.profile.operators import CALLS, LIMIT_BYTES, count_operators, parse_operators
from tests.candidates import job_for

ROW: dict[str, object] = {"name": "aten::mm", "calls": 3, "self_ns": 12.0, "device_ns": 0.0}
TWO_OPERATORS = """
def fused_add_rmsnorm(x, residual, weight, eps):
    h = x + residual
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return h * scale * weight, h
"""


@pytest.mark.usefixtures("walls")
def test_a_processors_candidate_is_profiled_in_its_own_guest() -> None:
    seen = {row.name: row for row in count_operators(job_for(TWO_OPERATORS, language="torch"), ())}
    assert seen["call"].calls == CALLS
    assert seen["aten::rsqrt"].calls == CALLS
    assert seen["aten::mul"].calls == 2 * CALLS
    assert all(row.device_ns == 0 for row in seen.values())


@pytest.mark.usefixtures("walls")
def test_a_candidate_that_fails_under_the_profiler_is_told_so() -> None:
    with pytest.raises(EnvironmentUnfit, match="can't be called under the profiler"):
        count_operators(job_for("def fused_add_rmsnorm(*_):\n    raise ValueError\n", language="torch"), ())


@pytest.mark.parametrize(
    "untrusted",
    [
        b"",
        b"[]",
        b"{}",
        b"\xff",
        json.dumps([{**ROW, "name": "\x1b[2J"}]).encode(),
        json.dumps([{**ROW, "name": "a" * 201}]).encode(),
        json.dumps([{**ROW, "self_ns": -1}]).encode(),
        json.dumps([{**ROW, "calls": -1}]).encode(),
        json.dumps([{**ROW, "more": 1}]).encode(),
        json.dumps([ROW]).replace("12.0", "NaN").encode(),
        json.dumps([{**ROW, "self_ns": 1e308}] * 3).encode(),
        b" " * LIMIT_BYTES + json.dumps([ROW]).encode(),
    ],
    ids=range(12),
)
def test_what_is_no_table_is_refused(untrusted: bytes) -> None:
    with pytest.raises(EnvironmentUnfit, match="the profiler's table can't be read"):
        parse_operators(untrusted)


def test_a_table_is_read_as_it_stands() -> None:
    (row,) = parse_operators(json.dumps([ROW]).encode())
    assert row.model_dump() == ROW
