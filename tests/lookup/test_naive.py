"""What a lookup answers is allowed by rules that are written out here once more, without any of its code."""

import itertools
import math

from hypothesis import given, settings
from hypothesis import strategies as st

from forge.lookup import Policy, Registry
from tests.lookup.asking import publish_kernels, shown_kernel
from tests.lookup.test_choice import KERNELS, kernel_of

BASE = shown_kernel()
DOMAINS = st.one_of(
    st.none(),
    st.fixed_dictionaries(
        {
            "axes": st.dictionaries(st.sampled_from(["batch", "hidden_size"]), st.integers(1, 3)),
            "relations": st.just([]),
            "layouts": st.none(),
            "alignment_bytes": st.just(1),
        }
    ),
)
SIZES = range(7)
EVERY = [{"batch": batch, "hidden_size": size} for batch, size in itertools.product(SIZES, SIZES)]
EVERY += [{"tokens": size} for size in SIZES]


SHAPES = st.fixed_dictionaries({"batch": st.integers(0, 6), "hidden_size": st.integers(0, 6)})
CORNERS = ({"batch": 1, "hidden_size": 1}, {"batch": 6, "hidden_size": 4})


@st.composite
def often_between(draw: st.DrawFn) -> dict:
    """A kernel that was measured at some of its verified shapes, and perhaps at others."""
    shapes = [*CORNERS, *draw(st.lists(SHAPES, max_size=4))]
    some = draw(st.lists(st.sampled_from(shapes) | SHAPES, max_size=3))
    own = draw(KERNELS)
    measured = [(shape, draw(st.integers(1, 3))) for shape in (*CORNERS[: draw(st.integers(0, 2))], *some)]
    return {**own, "gpu": "h200", "dtype": "bf16", "verified": shapes, "measured": measured}


def inside(shape: dict, entry: dict) -> bool:
    """Whether every size and every product of sizes is one that was verified, and the kernel's own domain holds."""
    shapes = [one for one in verified(entry) if one.keys() == shape.keys()]
    groups = [axes for n in range(1, len(shape) + 1) for axes in itertools.combinations(shape, n)]
    return (
        all(
            min(one[axis] for one in shapes) <= size <= max(one[axis] for one in shapes)
            for axis, size in shape.items()
        )
        and all(
            math.prod(shape[axis] for axis in group) <= max(math.prod(one[axis] for axis in group) for one in shapes)
            for group in groups
        )
        and all(
            shape.get(axis, 0) % one["multiple_of"] == 0
            for axis, one in entry.get("domain", {"axes": {}})["axes"].items()
        )
    )


def verified(entry: dict) -> list[dict]:
    return [
        dict(zip(columns, sizes, strict=True))
        for columns in entry["verified"]
        for sizes in zip(*columns.values(), strict=True)
    ]


def below(one: dict, other: dict) -> bool:
    return one.keys() == other.keys() and all(one[axis] <= other[axis] for axis in one)


def may_answer(match: str, shape: dict, entry: dict, neighbours: list[dict]) -> bool:
    """Whether a kernel may be the answer of this kind at a shape."""
    proven = [one["shape"] for one in entry["points"] if one["shape"] in verified(entry)]
    slow = [one["shape"] for one in entry.get("unproven", ())]
    if shape in slow or not inside(shape, entry):
        return False
    match match:
        case "exact":
            return shape in proven
        case "covered":
            return shape in verified(entry)
        case "between":
            low, high = neighbours
            held = low != high and low in proven and high in proven and below(low, shape) and below(shape, high)
            return held and not any(below(low, one) and below(one, high) for one in slow)
        case _:
            return match == "nearest"


@settings(max_examples=60, deadline=None)
@given(
    drawn=st.lists(st.tuples(KERNELS | often_between(), DOMAINS), min_size=1, max_size=3),
    fit=st.sampled_from(["exact", "covered", "between", "nearest"]),
    deprecated=st.booleans(),
)
def test_each_answer_is_allowed_by_the_rules(tmp_path_factory, drawn, fit, deprecated):
    directory = tmp_path_factory.mktemp("registry")
    entries = {}
    for number, (one, domain) in enumerate(drawn):
        entry = kernel_of(number, one)
        if domain is not None:
            axes = {axis: {"multiple_of": step} for axis, step in domain["axes"].items()}
            entry["domain"] = {**domain, "axes": axes}
        entries[entry["kernel_id"]] = entry
    publish_kernels(directory, list(entries.values()))
    registry, policy = Registry.open(directory), Policy(shape=fit, deprecated=deprecated)
    order = ["exact", "covered", "between", "nearest"]
    for shape in EVERY:
        found = registry.lookup(op=BASE["op"], gpu="h200", dtype="bf16", shape=shape, policy=policy)
        if found.match == "none":
            continue
        entry = entries[found.kernel.kernel_id]
        assert order.index(found.match) <= order.index(fit)
        assert (entry["gpu"], entry["dtype"]) == ("h200", "bf16")
        assert entry["status"] == "active" or (deprecated and entry["status"] == "deprecated")
        assert may_answer(found.match, shape, entry, [dict(one.shape) for one in found.neighbours]), (shape, found)
        assert found.evidence.shape in [one["shape"] for one in entry["points"]]
