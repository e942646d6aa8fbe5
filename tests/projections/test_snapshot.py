"""What a snapshot says of its kernels, and how a reader finds its way in it."""

import json

import orjson
from hypothesis import given
from hypothesis import strategies as st

from forge.projections.snapshot import render
from tests.projections.histories import asked, opened, promoted, rebuild
from tests.projections.values import EDGES, SHAPE, task

NAMES = st.sampled_from(["a", "b", "c"])


@given(kernels=st.lists(st.tuples(NAMES, NAMES, NAMES, st.integers(0, 10**6)), max_size=12))
def test_the_first_line_says_where_each_slots_kernels_lie(kernels):
    lines = [(op, gpu, dtype, json.dumps({"n": n})) for op, gpu, dtype, n in sorted(kernels)]
    content = render(lines, {"a": "sm_90"})
    document = orjson.loads(content)
    assert document["kernels"] == [{"n": n} for *_, n in sorted(kernels)]
    first, _, rest = content.partition(b"\n")
    head, at, found = orjson.loads(first + b"]}"), 0, []
    assert head == {**document, "kernels": []}
    for op, gpus in head["slots"].items():
        for gpu, dtypes in gpus.items():
            for dtype, (count, length) in dtypes.items():
                listed = orjson.loads(b"[" + rest[at : at + length] + b"]")
                assert len(listed) == count
                found += [(op, gpu, dtype, kernel["n"]) for kernel in listed]
                at += length + 2
    assert found == sorted(kernels)


def test_verified_shapes_are_columns_of_sizes():
    history = opened()
    promoted(history, shapes=EDGES)
    files = rebuild(history.events, history.head)
    (snapshot,) = (content for name, content in files.items() if name.startswith("lookup-"))
    (kernel,) = orjson.loads(snapshot)["kernels"]
    shapes = (SHAPE, *EDGES)
    assert kernel["verified"] == [{axis: [shape[axis] for shape in shapes] for axis in ("batch", "hidden_size")}]
    assert kernel["points"][0]["shape"] == SHAPE


def test_kernels_stand_by_slot_and_id():
    history = opened()
    wanted = [task(op="softmax"), task(gpu="h100"), task(dtype="fp16"), task(), task(language="cpp"), task()]
    for number, one in enumerate(wanted):
        promoted(history, wanted=one, name=str(number))
    files = rebuild(history.events, history.head)
    (snapshot,) = (content for name, content in files.items() if name.startswith("lookup-"))
    kernels = orjson.loads(snapshot)["kernels"]
    order = [(one["op"], one["gpu"], one["dtype"], one["kernel_id"]) for one in kernels]
    assert order == sorted(order)
    assert len(order) == len(asked(history, "SELECT kernel_id FROM kernels"))
