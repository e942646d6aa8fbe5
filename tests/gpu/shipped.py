"""The registry that ships, as if its kernels were on offer for the GPU of this machine: same files, its name.

A plan's device code runs on any GPU of the architecture. What is compared here are answers, never times.
"""

import json
from dataclasses import dataclass
from pathlib import Path

from forge.domain.digest import canonical, sha256
from forge.operations import find_operation
from forge.operations.description import description, reference_bytes
from forge.projections.files import put
from forge.projections.fold import Position
from forge.projections.snapshot import POINTER, named, pointer_to, render

SHIPPED = Path(__file__).parents[2] / "kernel_registry"


@dataclass(frozen=True)
class ShippedKernel:
    """One kernel, and its task's shape."""

    kernel_id: str
    op: str
    dtype: str
    language: str
    shape: tuple[tuple[str, int], ...]
    has_plan: bool


def documents() -> list[dict]:
    """What the shipped snapshot says of each kernel that gives right answers, its times stale or not."""
    pointer = json.loads((SHIPPED / POINTER).read_bytes())
    listed = json.loads((SHIPPED / pointer["snapshot"]).read_bytes())["kernels"]
    return [one for one in listed if one["status"] in {"active", "deprecated", "evidence_stale"}]


def shipped_kernels() -> list[ShippedKernel]:
    """Every such kernel."""
    return [
        ShippedKernel(
            one["kernel_id"],
            one["op"],
            one["dtype"],
            one["language"],
            tuple(one["points"][0]["shape"].items()),
            (SHIPPED / "kernels" / one["kernel_id"] / "plan.json").exists(),
        )
        for one in documents()
    ]


def publish_alone(directory: Path, kernel_id: str, *, gpu: str) -> Path:
    """Publish one shipped kernel for a GPU, with the description of its operation; return the folder."""
    (kernel,) = (one for one in documents() if one["kernel_id"] == kernel_id)
    op = find_operation(kernel["op"])
    files = {f"ops/{op.name}.json": canonical(description(op)), f"ops/{op.name}.py": reference_bytes(op)}
    folder = SHIPPED / "kernels" / kernel_id
    put(directory, {f"kernels/{kernel_id}/{path.name}": path.read_bytes() for path in folder.iterdir()})
    put(directory, files)
    lines = [
        (
            kernel["op"],
            gpu,
            kernel["dtype"],
            json.dumps({**kernel, "gpu": gpu, "status": "active", "status_reason": None}),
        )
    ]
    content = render(lines, {gpu: "sm_90"}, [(op.name, *map(sha256, files.values()))])
    name, digest = named(content)
    head = Position(ledger_id="0190aaaa-0000-7000-8000-000000000001", seq=1, event_hash="0" * 64)
    put(directory, {name: content, POINTER: pointer_to(digest, head)})
    return directory
