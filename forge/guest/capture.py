"""Runs beside hostile code. Captures one call of the candidate as a launch plan: its CUDA graph, as data.

The candidate's host code runs once under capture; the driver then lists the graph's nodes. The result is only a
claim. The host validates it, and a launcher that never saw the candidate's host code must get right answers with it.
"""

import json
import mmap
from collections.abc import Callable, Sequence
from pathlib import Path

import torch

from . import cubins, nodes, wire
from .module import Bound
from .spans import lie_apart, span

WARM_UP_CALLS = 3
"""Number of calls before the capture, in which compilation, autotuning and the allocation of workspaces happen.
PyTorch's guide to CUDA graphs warms up as often."""


def capture(
    function: Callable[..., object], inputs: tuple[torch.Tensor, ...], scalars: tuple[float, ...], directory: Path
) -> list[tuple[str, bytes]]:
    """Capture one call as a CUDA graph; return the files of its launch plan, `plan.json` first.

    If the call can't be a plan, `plan.json` says why, and there is no other file.
    """
    try:
        graph, outputs = _captured(function, inputs, scalars)
        if isinstance(function, Bound) and not lie_apart(outputs, inputs):
            raise nodes.NotAPlanError(
                "strides", "results overlap or aren't contiguous, and a launcher can't make such results"
            )
        memory = nodes.Memory(
            inputs=[span(tensor) for tensor in inputs],
            outputs=[span(tensor) for tensor in outputs],
            pool=_pool_blocks(graph),
        )
        listed = nodes.steps(graph.raw_cuda_graph(), memory, cubins.Found(directory))
        if isinstance(function, Bound) and not listed.steps:
            raise nodes.NotAPlanError("capture_failed", "the call launches nothing")
        _require_room(len(inputs), len(outputs), len(listed.steps), len(memory.workspaces))
        plan = {"steps": listed.steps, "workspaces": memory.workspaces, "scalars": list(scalars)}
        return [("plan.json", json.dumps(plan).encode()), *listed.cubins.items()]
    except nodes.NotAPlanError as reason:
        return [("plan.json", json.dumps({"kind": reason.kind, "detail": reason.detail}).encode())]


def hand_over(arena: mmap.mmap, files: list[tuple[str, bytes]]) -> int:
    """Write the files to the start of the arena and return their size in bytes."""
    parts = [wire.ARTIFACT_COUNT.pack(len(files))]
    for name, content in files:
        parts += [wire.ARTIFACT_ENTRY.pack(name.encode(), len(content)), content]
    packed = b"".join(parts)
    arena[: len(packed)] = packed
    return len(packed)


def _captured(
    function: Callable[..., object], inputs: tuple[torch.Tensor, ...], scalars: tuple[float, ...]
) -> tuple[torch.cuda.CUDAGraph, list[torch.Tensor]]:
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(WARM_UP_CALLS):
            function(*inputs, *scalars)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph(keep_graph=True)
    try:
        with torch.cuda.graph(graph):
            returned = function(*inputs, *scalars)
    except RuntimeError as error:
        raise nodes.NotAPlanError("capture_failed", str(error)) from error
    outputs = [] if returned is None else list(returned) if isinstance(returned, tuple) else [returned]
    tensors = [output for output in outputs if isinstance(output, torch.Tensor)]
    if len(tensors) != len(outputs):
        raise nodes.NotAPlanError("capture_failed", "the call under capture returned a value that isn't a tensor")
    return graph, tensors


def _require_room(*counts: int) -> None:
    if max(counts) > wire.MOST_IN_A_PLAN:
        said = f"{max(counts)} steps, operands or workspaces: a plan has at most {wire.MOST_IN_A_PLAN} of each"
        raise nodes.NotAPlanError("too_large", said)


def _pool_blocks(graph: torch.cuda.CUDAGraph) -> Sequence[tuple[int, int]]:
    """Return address and size of each block in the capture's memory pool, which holds outputs and workspaces."""
    pool = tuple(graph.pool())
    blocks = []
    for segment in torch.cuda.memory_snapshot():
        if tuple(segment["segment_pool_id"]) != pool:
            continue
        address = int(segment["address"])
        for block in segment["blocks"]:
            blocks.append((address, int(block["size"])))
            address += int(block["size"])
    return blocks
