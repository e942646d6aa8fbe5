"""What a guest says of a captured call is a plan on the call's own tensors, a reason why not, or refused."""

import json
from collections.abc import Callable
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forge.domain.digest import sha256
from forge.domain.plan import Copy, KernelLaunch, LaunchPlan, Memset, NoPlan, NoPlanKind, Place
from forge.guest import wire
from forge.sandbox.plans import LIMIT_BYTES, Bounds, Captured, PlanError, parse_plan
from tests.sandbox.cubins import COUNTER, COUNTS, PRINTS, VPRINTF, assemble, kernel

BOUNDS = Bounds(inputs=(1024, 64), outputs=(1024,), scalars=(1e-5,), arch="sm_90")
POINTER = "00" * 8
Body = dict[str, Any]  # Any: JSON that a test damages
Files = list[tuple[str, bytes]]


def packed(files: Files) -> bytes:
    """As forge/guest/capture.hand_over puts them into the arena; its own module needs CUDA."""
    parts = [wire.ARTIFACT_COUNT.pack(len(files))]
    for name, content in files:
        parts += [wire.ARTIFACT_ENTRY.pack(name.encode(), len(content)), content]
    return b"".join(parts)


def cubin() -> bytes:
    return assemble(kernel("add"))


def argument(*references: list[object], content: str = POINTER) -> Body:
    return {"content": content, "references": list(references)}


def launch(**changes: object) -> Body:
    step = {
        "kind": "kernel",
        "cubin": "plan0.cubin",
        "name": "add",
        "grid": [4, 1, 1],
        "block": [128, 1, 1],
        "cluster": [1, 1, 1],
        "cooperative": False,
        "shared_bytes": 0,
        "arguments": [argument([0, "input", 0, 0]), argument([0, "output", 0, 16]), argument(content="04000000")],
    }
    return {**step, **changes}


def memset(**changes: object) -> Body:
    return {"kind": "memset", "to": ["workspace", 0, 0], "value": 0, "item_bytes": 4, "count": 64, **changes}


def copy(**changes: object) -> Body:
    return {"kind": "copy", "to": ["output", 0, 0], "source": ["input", 0, 0], "size_bytes": 1024, **changes}


def body(*steps: Body, **changes: object) -> Body:
    return {"steps": list(steps or [launch()]), "workspaces": [256], "scalars": [1e-5], **changes}


def handed(described: object, *more: tuple[str, bytes]) -> bytes:
    files = [("plan.json", json.dumps(described).encode()), *(more or (("plan0.cubin", cubin()),))]
    return packed(files)


def refused(untrusted: bytes, complaint: str) -> None:
    with pytest.raises(PlanError, match=complaint) as said:
        parse_plan(untrusted, BOUNDS)
    assert str(said.value).isprintable()
    assert len(str(said.value)) <= 500


def test_a_call_of_kernels_fills_and_copies_is_a_plan() -> None:
    captured = parse_plan(handed(body(memset(), launch(), copy())), BOUNDS)
    assert isinstance(captured, Captured)
    filled, launched, copied = captured.plan.steps
    assert filled == Memset(to=Place(to="workspace", index=0), value=0, item_bytes=4, count=64)
    assert copied == Copy(to=Place(to="output", index=0), source=Place(to="input", index=0), size_bytes=1024)
    assert isinstance(launched, KernelLaunch)
    assert (launched.name, launched.grid, launched.block) == ("add", (4, 1, 1), (128, 1, 1))
    assert [len(one.pointers) for one in launched.arguments] == [1, 1, 0]
    assert launched.arguments[1].pointers[0].place == Place(to="output", index=0, offset_bytes=16)
    assert captured.plan.cubins == {"plan0.cubin": sha256(cubin())}
    assert [(one.name, one.content) for one in captured.cubins] == [("plan0.cubin", cubin())]
    assert LaunchPlan.model_validate_json(captured.plan.model_dump_json()) == captured.plan


def test_kernels_of_two_cubins_and_of_one_with_a_variable_are_a_plan() -> None:
    other = assemble(COUNTER, kernel("count", COUNTS))
    described = body(launch(), launch(cubin="plan1.cubin", name="count"))
    captured = parse_plan(handed(described, ("plan0.cubin", cubin()), ("plan1.cubin", other)), BOUNDS)
    assert isinstance(captured, Captured)
    assert set(captured.plan.cubins) == {"plan0.cubin", "plan1.cubin"}


@pytest.mark.parametrize("arch", ["sm_90", "sm_90a"])
def test_code_for_the_target_or_for_it_alone_is_taken(arch: str) -> None:
    made = assemble(kernel("add"), arch=arch)
    assert isinstance(parse_plan(handed(body(), ("plan0.cubin", made)), BOUNDS), Captured)


@pytest.mark.parametrize("arch", ["sm_80", "sm_100a"])
def test_code_for_another_architecture_is_refused(arch: str) -> None:
    refused(handed(body(), ("plan0.cubin", assemble(kernel("add"), arch=arch))), f"is for {arch}, expected sm_90")


def test_where_the_architecture_is_not_known_nothing_is_taken() -> None:
    with pytest.raises(PlanError):
        parse_plan(handed(body()), Bounds(inputs=(1024,), outputs=(1024,), scalars=(1e-5,), arch=""))


@pytest.mark.parametrize(
    ("step", "complaint"),
    [
        (launch(arguments=[argument([0, "input", 0, 1024])]), r"bytes 1024 to 1025 of input 0, which has 1024"),
        (launch(arguments=[argument([0, "input", 1, 64])]), "input 1, which has 64"),
        (launch(arguments=[argument([0, "input", 2, 0])]), "a reference to input 2, of which there are 2"),
        (launch(arguments=[argument([0, "output", 1, 0])]), "a reference to output 1"),
        (launch(arguments=[argument([0, "workspace", 1, 0])]), "a reference to workspace 1"),
        (launch(arguments=[argument([0, "workspace", 0, 256])]), "workspace 0, which has 256"),
        (launch(arguments=[argument([1, "input", 0, 0])]), "an address lies outside of its argument"),
        (launch(arguments=[argument([0, "input", 0, 0], content="00" * 7)]), "outside of its argument"),
        (launch(arguments=[argument([-1, "input", 0, 0])]), "makes no sense"),
        (launch(arguments=[argument([0, "input", -1, 0])]), "makes no sense"),
        (launch(arguments=[argument([0, "input", 0, -1])]), "makes no sense"),
        (launch(arguments=[argument([0, "global", 0, 0])]), "makes no sense"),
        (launch(arguments=[argument([0, "input", 0])]), "makes no sense"),
        (launch(arguments=[argument(content="0")]), "makes no sense"),
        (launch(arguments=[argument(content="zz")]), "makes no sense"),
        (launch(arguments=[argument()] * 257), "makes no sense"),
        (launch(name="sub"), r"plan0.cubin has no kernel 'sub'"),
        (launch(name="add\u202e"), "makes no sense"),
        (launch(cubin="plan1.cubin"), "no step launches from plan0.cubin"),
        (launch(block=[1024, 2, 1]), "threads"),
        (launch(block=[32, 32, 2]), "threads"),
        (launch(grid=[1, 65536, 1]), "blocks"),
        (launch(grid=[1, 1, 65536]), "blocks"),
        (launch(grid=[0, 1, 1]), "makes no sense"),
        (launch(grid=[2**31, 1, 1]), "makes no sense"),
        (launch(grid=[2**80, 1, 1]), "makes no sense"),
        (launch(grid=[1, 1]), "makes no sense"),
        (launch(shared_bytes=2**21), "makes no sense"),
        (launch(kind="host"), "makes no sense"),
        (launch(stream=1), "makes no sense"),
    ],
)
def test_a_launch_beyond_the_call_is_refused(step: Body, complaint: str) -> None:
    refused(handed(body(step)), complaint)


@pytest.mark.parametrize(
    ("step", "complaint"),
    [
        (memset(count=65), "workspace 0, which has 256"),
        (memset(to=["workspace", 0, 4]), "bytes 4 to 260"),
        (memset(to=["input", 0, 0]), "a fill of an input"),
        (memset(item_bytes=8), "makes no sense"),
        (memset(count=0), "makes no sense"),
        (copy(size_bytes=1025), "output 0, which has 1024"),
        (copy(source=["input", 1, 0]), "input 1, which has 64"),
        (copy(source=["workspace", 3, 0]), "a reference to workspace 3"),
        (copy(to=["input", 0, 0], source=["output", 0, 0]), "a copy into one"),
    ],
)
def test_a_fill_or_a_copy_beyond_the_call_is_refused(step: Body, complaint: str) -> None:
    refused(handed(body(launch(), step)), complaint)


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"scalars": []}, r"scalars are \(\), expected \(1e-05,\)"),
        ({"scalars": [1e-6]}, r"scalars are \(1e-06,\)"),
        ({"scalars": [1e-5, 0.0]}, "scalars are"),
        ({"scalars": [float("nan")]}, "makes no sense"),
        ({"scalars": [float("inf")]}, "makes no sense"),
        ({"workspaces": [0]}, "makes no sense"),
        ({"workspaces": [2**37]}, "makes no sense"),
        ({"workspaces": [1] * 65}, "makes no sense"),
        ({"steps": []}, "makes no sense"),
        ({"steps": [launch()] * 65}, "makes no sense"),
        ({"steps": {"0": launch()}}, "a dict where a JSON list belongs"),
        ({"steps": "kernel"}, "a str where a JSON list belongs"),
        ({"steps": ["kernel"]}, "a str where a JSON object belongs"),
        ({"steps": [launch(arguments=[1])]}, "an? int where a JSON object belongs"),
        ({"steps": [launch(arguments=[{"content": ""}])]}, "lacks 'references'"),
        ({"steps": [launch(arguments=[{"content": "", "references": [[]]}])]}, "makes no sense"),
        ({"cubins": {"plan0.cubin": "0" * 64}, "more": 1}, "makes no sense"),
    ],
)
def test_a_plan_of_another_form_or_with_other_scalars_is_refused(changes: Body, complaint: str) -> None:
    refused(handed(body(**changes)), complaint)


def test_the_digests_are_ours_whatever_the_guest_says() -> None:
    captured = parse_plan(handed(body(cubins={"plan0.cubin": "0" * 64})), BOUNDS)
    assert isinstance(captured, Captured)
    assert captured.plan.cubins == {"plan0.cubin": sha256(cubin())}


@pytest.mark.parametrize(
    ("files", "complaint"),
    [
        ([], "lacks 'plan.json'"),
        ([("plan0.cubin", b"x")], "lacks 'plan.json'"),
        ([("plan.json", b"{")], "makes no sense"),
        ([("plan.json", b"[]")], "a list where a JSON object belongs"),
        ([("plan.json", b"NaN")], "makes no sense"),
        ([("plan.json", b"{}")], "lacks 'steps'"),
        ([("plan.json", b"{}"), ("plan.json", b"{}")], "don't add up"),
        ([("plan.json", b"{}"), ("../plan0.cubin", b"")], "is called"),
        ([("plan.json", b"{}"), ("libkernel.so", b"")], "is called"),
        ([("plan.json", json.dumps(body()).encode()), ("plan0.cubin", b"\x7fELF")], "makes no sense"),
        ([("plan.json", json.dumps(body()).encode()), ("other.cubin", b"")], "makes no sense"),
        ([("plan.json", json.dumps(body()).encode())], "has no kernel 'add'"),
        ([(f"plan{number}.cubin", b"") for number in range(65)], "don't add up"),
    ],
)
def test_files_that_no_capture_hands_over_are_refused(files: Files, complaint: str) -> None:
    refused(packed(files), complaint)


def test_device_code_that_nothing_launches_is_refused() -> None:
    more = (("plan0.cubin", cubin()), ("plan1.cubin", assemble(kernel("other"))))
    refused(handed(body(), *more), "no step launches from plan1.cubin")


def test_bytes_that_end_too_early_or_go_on_are_refused() -> None:
    whole = handed(body())
    for length in (0, 3, 4, 40, 76, 100, len(whole) - 1):
        refused(whole[:length], "makes no sense")
    refused(whole + b"\0", "don't add up")
    refused(b"\0" * (LIMIT_BYTES + 1), f"expected at most {LIMIT_BYTES}")


def test_json_that_is_very_deep_is_refused() -> None:
    for described in (
        {"steps": "deep"},
        {"kind": "deep", "detail": ""},
        {"kind": "node", "detail": "deep"},
        body(copy(to="deep")),
        body(copy(to=["output", "deep", 0])),
        body(scalars="deep"),
    ):
        for depth in (1000, 100_000):
            text = json.dumps(described).replace('"deep"', "[" * depth + "]" * depth)
            refused(packed([("plan.json", text.encode())]), "belongs|makes no sense")


@pytest.mark.parametrize("kind", get_args(NoPlanKind))
def test_a_reason_why_there_is_no_plan_is_passed_on(kind: NoPlanKind) -> None:
    said = parse_plan(packed([("plan.json", json.dumps({"kind": kind, "detail": "gemm"}).encode())]), BOUNDS)
    assert said == NoPlan(kind=kind, detail="gemm")


def test_a_reason_is_shown_without_what_a_terminal_would_act_on() -> None:
    said = parse_plan(
        packed([("plan.json", json.dumps({"kind": "node", "detail": "a\x1b[2J\u202eb\n"}).encode())]), BOUNDS
    )
    assert said == NoPlan(kind="node", detail="a?[2J?b?")
    refused(handed(body(**{"\x1b[2J\n": 1})), "makes no sense")


@pytest.mark.parametrize(
    "reason",
    [{"kind": "other", "detail": ""}, {"kind": "node"}, {"kind": "node", "detail": "x" * 401}, {"kind": None}],
)
def test_a_reason_that_is_none_of_ours_is_refused(reason: Body) -> None:
    refused(packed([("plan.json", json.dumps(reason).encode())]), "plan")


def test_device_code_that_calls_what_is_not_in_it_is_no_plan() -> None:
    prints = assemble(VPRINTF, kernel("add", PRINTS))
    said = parse_plan(handed(body(), ("plan0.cubin", prints)), BOUNDS)
    assert said == NoPlan(kind="external", detail="plan0.cubin calls vprintf, which isn't in it")


def sound(untrusted: bytes) -> None:
    """Whatever comes: a plan within its bounds, a reason, or PlanError."""
    try:
        said = parse_plan(untrusted, BOUNDS)
    except PlanError:
        return
    if isinstance(said, Captured):
        assert said.plan.scalars == BOUNDS.scalars
        assert {kernel.cubin for kernel in said.plan.kernels} == set(said.plan.cubins)


@settings(max_examples=300)
@given(st.data())
def test_damaged_bytes_are_a_plan_a_reason_or_refused(data: st.DataObject) -> None:
    content = bytearray(handed(body(memset(), launch(), copy())))
    beginning = len(content) - len(cubin())
    for _ in range(data.draw(st.integers(1, 5))):
        at = data.draw(st.integers(0, beginning) | st.integers(0, len(content) - 1))
        content[at] = data.draw(st.integers(0, 255))
    sound(bytes(content))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=8,
)


def replaced(described: Any, choose: Callable[[int], int], value: object) -> Any:  # Any: JSON
    """The same document with one part of it, somewhere, replaced."""
    places = list(described) if isinstance(described, dict) else list(range(len(described)))
    place = places[choose(len(places))]
    part = described[place]
    inner = isinstance(part, (dict, list)) and part and choose(4)
    described[place] = replaced(part, choose, value) if inner else value
    return described


@settings(max_examples=400)
@given(st.data())
def test_a_plan_with_other_json_anywhere_is_a_plan_a_reason_or_refused(data: st.DataObject) -> None:
    described = json.loads(json.dumps(body(memset(), launch(), copy())))
    for _ in range(data.draw(st.integers(1, 2))):
        described = replaced(described, lambda count: data.draw(st.integers(0, count - 1)), data.draw(JSON))
    sound(handed(described))
