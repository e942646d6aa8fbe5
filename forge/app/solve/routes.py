"""Remembers which way solved a module: by its graph, the author with its prompt, and the platform."""

from collections.abc import Mapping

from forge.app.runs.states import GATE
from forge.app.workspace import Workspace
from forge.domain.digest import Digest, digest_of, sha256
from forge.events import KernelPromoted
from forge.events.module import ModuleRouted, Route
from forge.lab.parts.graph import Graph
from forge.pipeline.create import TaskRequest

OTHER: Mapping[Route, Route] = {"direct": "extract", "extract": "direct"}
"""Way -> the way that is tried once if it gives no promoted kernel."""


def route_key(source: bytes, graph: Graph | None, request: TaskRequest, solver: Digest) -> Digest:
    """Return the digest by which a way is remembered. A module without a graph is known by its text."""
    known = sha256(source) if graph is None else digest_of(graph)
    return digest_of({"graph": known, "solver": solver, "language": request.language, "gpu": request.gpu})


def remembered(workspace: Workspace, key: Digest) -> ModuleRouted | None:
    """Return the way that gave a promoted kernel for an equal module, if the first way had failed."""
    ways = [
        one
        for one in workspace.ledger.read(types=(ModuleRouted.TYPE,))
        if isinstance(one.event, ModuleRouted) and one.event.key_sha256 == key
    ]
    promoted = {
        one.event.task.task_id: one.seq
        for one in workspace.ledger.read(types=(KernelPromoted.TYPE,))
        if isinstance(one.event, KernelPromoted)
    }
    for one in reversed(ways):
        assert isinstance(one.event, ModuleRouted)
        if promoted.get(one.event.task_id, 0) > one.seq:
            return one.event
    return None


def record_route(workspace: Workspace, routed: ModuleRouted, texts: Mapping[Digest, str]) -> None:
    """Record a way, and store the references of the parts."""
    for text in texts.values():
        workspace.blobs.put(text.encode())
    stream = f"module:{routed.task_id}"
    place = workspace.ledger.stream_version(stream)
    workspace.append((routed,), run_id=stream, key=f"{stream}:route:{place}", actor=GATE)
