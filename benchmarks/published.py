"""Published registries of any number of kernels, in Forge's form and in that of a plain list of entries.

Each kernel is one that a test's history promoted, at other shapes and in other slots; the files are written by the
code that publishes.
"""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # the histories are those of the tests

OPS = 10
GPUS = ("h100", "h200", "b200", "rtx4070", "l4")
DTYPES = ("bf16", "fp16")
ROWS = (1, 2, 3, 4, 5, 6, 8, 12, 16, 24, 32, 33)
WIDTHS = (1024, 2048, 4096, 8192)
VERSIONS = 10
"""Kernels of a slot that were verified at the same shapes, one after the other the faster one."""

Shape = Mapping[str, int]
Json = dict[str, Any]  # Any: a JSON document


def example() -> Json:
    """What the snapshot shows of one kernel that was verified at 48 shapes and measured at one."""
    from tests.projections.histories import opened, promoted, rebuild
    from tests.projections.values import task

    history = opened()
    shapes = tuple({"batch": rows, "hidden_size": width} for rows in ROWS for width in WIDTHS)
    promoted(history, wanted=task(shape=shapes[0]), shapes=shapes[1:])
    files = rebuild(history.events, history.head)
    (snapshot,) = (content for name, content in files.items() if name.startswith("lookup-"))
    (kernel,) = orjson.loads(snapshot)["kernels"]
    shown: Json = kernel
    return shown


def kernels(count: int) -> list[Json]:
    """`count` kernels, spread evenly over the slots; of one slot, each ten share a measured shape."""
    base, found = example(), []
    (point,) = base["points"]
    slots = [(f"operation_{op}", gpu, dtype) for op in range(OPS) for gpu in GPUS for dtype in DTYPES]
    for number in range(count):
        op, gpu, dtype = slots[number % len(slots)]
        nth = number // len(slots)
        shape = {"batch": ROWS[nth // VERSIONS % len(ROWS)], "hidden_size": 4096}
        measured = {**point, "shape": shape, "median_ns": 1000.0 - nth % VERSIONS}
        kernel_id = f"triton_{op}_{gpu}_{dtype}_b{shape['batch']}_h4096_v{nth + 1}"
        own = {"kernel_id": kernel_id, "op": op, "gpu": gpu, "dtype": dtype, "points": [measured]}
        found.append({**base, **own, "promoted_seq": number + 1})
    return found


def publish(directory: Path, listed: list[Json], *, seq: int = 1) -> None:
    """Write them as Forge publishes them."""
    from forge.projections import snapshot
    from forge.projections.files import put
    from forge.projections.fold import Position

    ordered = sorted((one["op"], one["gpu"], one["dtype"], orjson.dumps(one).decode()) for one in listed)
    content = snapshot.render(ordered, {"h100": "sm_90", "h200": "sm_90"})
    name, digest = snapshot.named(content)
    head = Position(ledger_id="a ledger", seq=seq, event_hash="0" * 64)
    put(directory, {name: content, snapshot.POINTER: snapshot.pointer_to(digest, head)})


def publish_list(path: Path, listed: list[Json]) -> None:
    """Write the same kernels as one list of entries with the fields of a plain registry, and no more evidence."""
    entries = []
    for one in listed:
        (point,) = one["points"]
        entries.append(
            {
                "kernel_id": one["kernel_id"],
                "op": one["op"],
                "language": one["language"],
                "source_path": f"kernel_registry/kernels/{one['kernel_id']}/kernel.py",
                "target_gpu": one["gpu"],
                "dtype": one["dtype"],
                "shape": point["shape"],
                "verification": {"passed": True, "tolerance": {"atol": 1e-3, "rtol": 1e-2}, "tested_shapes": []},
                "benchmark": {
                    "passed": True,
                    "baseline_latency_us": point["baseline_median_ns"] / 1000,
                    "candidate_latency_us": point["median_ns"] / 1000,
                    "speedup": point["speedup"],
                    "warmup_iters": 25,
                    "benchmark_iters": 100,
                },
                "skill_ids": ["memory.vectorise", "reduction.warp"],
                "evidence_level": "op_level",
                "created_at": "2026-01-02T03:04:05Z",
            }
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"kernels": entries}, indent=2))
