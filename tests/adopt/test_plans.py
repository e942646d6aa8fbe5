"""Launch plans are read by digest and refused where they can't be replayed faithfully. No GPU is needed to refuse."""

import json
import struct
from types import SimpleNamespace

import pytest

from forge.adopt.described import parse_described
from forge.adopt.memory import alignment
from forge.adopt.plan import _require_stateless, read_plan
from forge.domain.digest import canonical, sha256
from forge.domain.plan import LaunchPlan
from forge.errors import BlobCorrupt, LoadRefused
from forge.lab.launch_plan.launcher import launcher_files
from forge.lookup import Registry
from forge.operations import find_operation
from forge.operations.description import description
from tests.adopt.making import kernel, publish
from tests.gpu.shipped import SHIPPED, publish_alone, shipped_kernels

PLANNED = [one for one in shipped_kernels() if one.has_plan]


def described(op: str):
    return parse_described(op, canonical(description(find_operation(op))))


def answered(root, op, dtype, shape, gpu):
    return Registry.open(root).lookup(op=op, gpu=gpu, dtype=dtype, shape=shape).kernel


@pytest.mark.parametrize("shipped", PLANNED, ids=lambda one: one.kernel_id)
def test_every_shipped_plan_is_read_and_its_operands_are_aligned(tmp_path, shipped):
    root = publish_alone(tmp_path, shipped.kernel_id, gpu="h200")
    found = answered(root, shipped.op, shipped.dtype, dict(shipped.shape), "h200")
    plan = read_plan(described(shipped.op), found, shipped.dtype)
    assert plan is not None
    assert plan.alignment_bytes in {16, 32, 64, 128, 256}
    operation = find_operation(shipped.op)
    assert plan.scalars == tuple(operation.scalars.values())


def test_the_plan_is_handed_over_in_the_form_in_which_it_was_timed(tmp_path):
    """The lab and the adopted program give the launcher the same document."""
    shipped = PLANNED[0]
    root = publish_alone(tmp_path, shipped.kernel_id, gpu="h200")
    found = answered(root, shipped.op, shipped.dtype, dict(shipped.shape), "h200")
    plan = read_plan(described(shipped.op), found, shipped.dtype)
    read = LaunchPlan.model_validate_json((SHIPPED / "kernels" / shipped.kernel_id / "plan.json").read_bytes())
    job = SimpleNamespace(shape=dict(shipped.shape), operation=find_operation(shipped.op), dtype=shipped.dtype)
    files = launcher_files(job, SimpleNamespace(plan=read, cubins=()))
    assert json.loads(json.dumps(plan.launcher)) == json.loads(files["plan.json"])


def text_cubin(section: bytes, content: bytes) -> bytes:
    """An ELF file with one section of this name and content."""
    names = b"\0" + section + b"\0.shstrtab\0"
    at = 64 + len(content)
    table = at + len(names)
    header = struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\x02\x01\x01", 2, 190, 1, 0, 0, table, 0, 64, 0, 0, 64, 3, 2)
    entries = [(0,) * 10, (1, 1, 3, 0, 64, len(content), 0, 0, 1, 0)]
    entries.append((len(section) + 2, 3, 0, 0, at, len(names), 0, 0, 1, 0))
    return header + content + names + b"".join(struct.pack("<IIQQQQIIQQ", *one) for one in entries)


@pytest.mark.parametrize(
    ("section", "content", "fits"),
    [
        (b".text.kernel", b"\1\2\3\4", True),
        (b".nv.global.init", b"__CUDA_FTZ\0", True),
        (b".nv.global.init", b"\1\0\0\0", False),
        (b".nv.global.init", b"\0\0\0\0", False),
        (b".nv.global", b"\0\0\0\0", False),
        (b".nv.managed", b"text", False),
    ],
)
def test_device_code_that_remembers_is_refused(section, content, fits):
    cubin = text_cubin(section, content)
    if fits:
        _require_stateless("plan0.cubin", cubin)
    else:
        with pytest.raises(ValueError, match="keep their values between launches"):
            _require_stateless("plan0.cubin", cubin)


STEP = {
    "kind": "memset",
    "to": {"to": "output", "index": 0, "offset_bytes": 0},
    "value": 0,
    "item_bytes": 4,
    "count": 256,
}
PLAN = {"steps": [STEP], "workspaces": [], "scalars": [1e-6], "cubins": {}}


def planned(tmp_path, plan) -> object:
    made = kernel("rmsnorm", "def rmsnorm(x, weight, eps): ...\n", gpu="h200", edges=())
    content = plan if isinstance(plan, bytes) else json.dumps(plan).encode()
    listing = canonical({"files": [{"path": "plan.json", "sha256": sha256(content), "size_bytes": len(content)}]})
    made["files"] |= {"plan.json": content, "artifact.json": listing}
    made["artifact_sha256"] = sha256(listing)
    publish(tmp_path, [made])
    return answered(tmp_path, "rmsnorm", "fp32", {"batch": 4, "hidden_size": 64}, "h200")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"steps": [{**STEP, "kind": "host"}]}, "kind 'host'"),
        ({"steps": [{**STEP, "graph": 1}]}, "with the fields"),
        ({"steps": [{**STEP, "count": 257}]}, "outside of output 0"),
        ({"steps": [{**STEP, "to": {"to": "output", "index": 1, "offset_bytes": 0}}]}, "outside of output 1"),
        ({"steps": [{**STEP, "to": {"to": "input", "index": -1, "offset_bytes": 0}}]}, "outside of input -1"),
        ({"steps": 3}, "can't be replayed"),
        ({"scalars": ["x"]}, "can't be replayed"),
    ],
)
def test_a_plan_that_cannot_be_replayed_is_refused_when_it_is_read(tmp_path, change, reason):
    found = planned(tmp_path, {**PLAN, **change})
    with pytest.raises(LoadRefused, match=reason):
        read_plan(described("rmsnorm"), found, "fp32")


def test_a_plan_whose_bytes_changed_is_damage_and_a_whole_one_is_read(tmp_path):
    found = planned(tmp_path, PLAN)
    assert read_plan(described("rmsnorm"), found, "fp32").launcher["outputs"] == [
        {"sizes": (4, 64), "dtype": "float32"}
    ]
    (tmp_path / "kernels" / found.kernel_id / "plan.json").write_bytes(b"{}")
    with pytest.raises(BlobCorrupt, match="has digest"):
        read_plan(described("rmsnorm"), found, "fp32")


def test_an_address_is_aligned_to_the_lowest_of_its_bits():
    assert [alignment(one) for one in (0, 256, 512 | 16, 1, 4096 + 128)] == [256, 256, 16, 1, 128]
