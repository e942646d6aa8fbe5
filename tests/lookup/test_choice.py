"""The indexed choice is that of judging every kernel, and never one that may not run."""

import json

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from forge.lookup import Policy, Registry
from forge.lookup.generation import read_newest
from forge.lookup.question import Question
from forge.projections.files import put
from tests.lookup.asking import BETWEEN, OUTSIDE, publish_kernels, shown_kernel
from tests.projections.histories import (
    LEDGER_ID,
    opened,
    rebuild,
)
from tests.projections.histories import grown_by as grow
from tests.projections.test_catch_up import ACTS
from tests.projections.values import EDGES, SHAPE

POLICIES = st.builds(
    Policy,
    shape=st.sampled_from(["exact", "covered", "between", "nearest"]),
    gpu=st.sampled_from(["exact", "family"]),
    deprecated=st.booleans(),
)


@settings(max_examples=15, deadline=None)
@given(
    acts=st.lists(ACTS, max_size=8),
    op=st.sampled_from(["rmsnorm", "softmax", "gelu"]),
    gpu=st.sampled_from(["h200", "h100"]),
    dtype=st.sampled_from(["bf16", "fp16"]),
    shape=st.sampled_from([SHAPE, *EDGES, BETWEEN, OUTSIDE]),
    policy=POLICIES,
)
def test_no_lookup_returns_a_kernel_of_another_slot_revoked_or_outside_its_verified_domain(
    tmp_path_factory, acts, op, gpu, dtype, shape, policy
):
    history = opened()
    for act, choice in acts:
        grow(history, act, choice)
    workspace = tmp_path_factory.mktemp("workspace")
    files = rebuild(history.events, history.head, LEDGER_ID)
    put(workspace, files)
    registry = Registry.open(workspace)
    found = registry.lookup(op=op, gpu=gpu, dtype=dtype, shape=shape, policy=policy)
    again = registry.lookup(op=op, gpu=gpu, dtype=dtype, shape=shape, policy=policy)
    assert (again.match, again.rejected) == (found.match, found.rejected)
    entries = json.loads(files["verified_kernels.json"])["kernels"]
    same_op = {entry["kernel_id"] for entry in entries if entry["op"] == op}
    answered = {found.kernel.kernel_id} if found.kernel else set()
    assert {kernel_id for kernel_id, _ in found.rejected} == same_op - answered
    assert (found.match == "none") == (not answered)
    for entry in entries:
        if entry["kernel_id"] in answered:
            assert (entry["op"], entry["dtype"]) == (op, dtype)
            assert entry["target_gpu"] == gpu or (policy.gpu == "family" and found.match == "family")
            assert entry["status"] == "active" or (policy.deprecated and entry["status"] == "deprecated")
            verified = entry["coverage"]["verified"]
            assert shape in verified or policy.shape in ("between", "nearest")
            for axis, size in shape.items():
                assert min(at[axis] for at in verified) <= size <= max(at[axis] for at in verified)


SIZES = st.integers(0, 6)
SHAPES = st.fixed_dictionaries({"batch": SIZES, "hidden_size": SIZES}) | st.fixed_dictionaries({"tokens": SIZES})
KERNELS = st.fixed_dictionaries(
    {
        "gpu": st.sampled_from(["h200", "h200", "h100", "rtx4070"]),
        "dtype": st.sampled_from(["bf16", "bf16", "fp16"]),
        "language": st.sampled_from(["triton", "cpp"]),
        "status": st.sampled_from(["active", "active", "deprecated", "revoked"]),
        "verified": st.lists(SHAPES, min_size=1, max_size=5),
        "measured": st.lists(st.tuples(SHAPES, st.integers(1, 3)), max_size=3),
        "unproven": st.lists(SHAPES, max_size=2),
    }
)
BASE = shown_kernel()


def columns(shapes: list[dict]) -> list[dict]:
    """As a snapshot has them: axis -> its size in each shape, for each set of axes."""
    groups: dict = {}
    for shape in shapes:
        groups.setdefault(tuple(shape), []).append(shape)
    return [{axis: [shape[axis] for shape in alike] for axis in axes} for axes, alike in groups.items()]


def kernel_of(number: int, drawn: dict) -> dict:
    points = [{**BASE["points"][0], "shape": shape, "median_ns": time} for shape, time in drawn["measured"]]
    verified = columns(drawn["verified"])
    own = {key: drawn[key] for key in ("gpu", "dtype", "language", "status")}
    measured = [shape for shape, _ in drawn["measured"]]
    slow = [{"shape": shape, "why": "TOO_SLOW"} for shape in drawn.get("unproven", ()) if shape not in measured]
    own |= {"unproven": slow} if slow else {}
    return {**BASE, **own, "kernel_id": f"kernel_v{number}", "points": points, "verified": verified}


@settings(max_examples=30, deadline=None)
@given(
    drawn=st.lists(KERNELS, max_size=6),
    asked=st.lists(SHAPES, min_size=1, max_size=6),
    policy=st.builds(
        Policy,
        shape=st.sampled_from(["exact", "covered", "between", "nearest"]),
        gpu=st.sampled_from(["exact", "family"]),
        deprecated=st.booleans(),
        max_octaves=st.sampled_from([None, 0, 1.0, 2.5]),
    ),
    language=st.sampled_from([None, "cpp"]),
)
@example(
    drawn=[
        {
            "gpu": "h200",
            "dtype": "bf16",
            "language": "cpp",
            "status": "active",
            "verified": [{"tokens": 0}, {"tokens": 1}],
            "measured": [({"tokens": 0}, 2), ({"tokens": 1}, 1)],
        }
    ],
    asked=[{"tokens": 0}],
    policy=Policy(shape="exact"),
    language=None,
)
def test_the_indexed_choice_is_the_best_of_judging_every_kernel(tmp_path_factory, drawn, asked, policy, language):
    directory = tmp_path_factory.mktemp("registry")
    publish_kernels(directory, [kernel_of(number, one) for number, one in enumerate(drawn)])
    registry, generation = Registry.open(directory), read_newest(str(directory), "current.json")
    for shape in asked:
        slot = {"op": BASE["op"], "gpu": "h200", "dtype": "bf16", "shape": shape, "language": language}
        question = Question(**slot, policy=policy, gpus=generation.gpus)
        judged = [question.judge(offer) for offer in generation.offers_of(BASE["op"])]
        fits = [one[0] for one in judged if not isinstance(one, str)]
        found = registry.lookup(**slot, policy=policy)
        if not fits:
            assert found.match == "none"
            continue
        _, rank, distance, median_ns, kernel_id = min(fits)
        assert found.match == ("exact", "covered", "between", "nearest", "family")[min(rank, 4)]
        evidence = (found.evidence.distance, found.evidence.median_ns)
        assert (found.kernel.kernel_id, *evidence) == (kernel_id, distance, median_ns)


def test_a_shape_with_more_elements_than_were_verified_is_never_answered(tmp_path):
    verified = [{"batch": 1, "hidden_size": 6}, {"batch": 6, "hidden_size": 1}, {"batch": 2, "hidden_size": 3}]
    drawn = {"gpu": "h200", "dtype": "bf16", "language": "cpp", "status": "active", "verified": verified}
    publish_kernels(tmp_path, [kernel_of(0, {**drawn, "measured": [(verified[0], 1)]})])
    registry, slot = Registry.open(tmp_path), {"op": BASE["op"], "gpu": "h200", "dtype": "bf16"}
    for shape, match in (({"batch": 3, "hidden_size": 2}, "nearest"), ({"batch": 6, "hidden_size": 6}, "none")):
        found = registry.lookup(**slot, shape=shape, policy=Policy(shape="nearest"))
        assert found.match == match
    assert found.rejected[0][1] == "shape outside the verified domain: batch x hidden_size is 36, verified up to 6"


@pytest.mark.parametrize("times", [(2, 1), (1, 2)])
def test_the_faster_of_two_kernels_that_were_measured_at_the_nearest_shape_answers(tmp_path, times):
    verified = [{"batch": size, "hidden_size": size} for size in (1, 3, 6)]
    drawn = {"gpu": "h200", "dtype": "bf16", "language": "cpp", "status": "active", "verified": verified}
    kernels = [kernel_of(number, {**drawn, "measured": [(verified[2], time)]}) for number, time in enumerate(times)]
    publish_kernels(tmp_path, kernels)
    slot = {"op": BASE["op"], "gpu": "h200", "dtype": "bf16", "shape": {"batch": 5, "hidden_size": 5}}
    found = Registry.open(tmp_path).lookup(**slot, policy=Policy(shape="nearest"))
    assert (found.match, found.kernel.kernel_id) == ("nearest", f"kernel_v{times.index(1)}")
