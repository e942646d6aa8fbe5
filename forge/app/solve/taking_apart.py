"""Decides how a module is solved: looks at its graph, groups it, and asks whether the parts add up to the whole."""

from collections.abc import Sequence
from dataclasses import dataclass

from forge.domain.digest import Digest, sha256
from forge.domain.evidence import Isolation
from forge.domain.policy import Policy
from forge.events.module import ModulePart, ModuleRouted
from forge.lab.parts.graph import Graph
from forge.lab.parts.groups import Part, grouped, require_parts
from forge.lab.parts.program import composed, reference_of, signature_of
from forge.lab.parts.take_apart import Differs, NotExported, compare, export
from forge.lab.parts.work import bytes_of, flops_of

FEW_PARTS = 3
"""Number of parts up to which a module is solved as a whole. One kernel for few parts needn't store the values
between them."""


@dataclass(frozen=True)
class TakenApart:
    """How a module is solved, and its parts if it is taken apart."""

    routed: ModuleRouted
    graph: Graph | None = None
    parts: tuple[Part, ...] = ()
    signatures: tuple[Digest, ...] = ()
    """Signature of each part, in order; equal ones are one task."""
    references: dict[Digest, str] | None = None


def take_apart(
    source: bytes, *, task_id: str, policy: Policy, isolation: Isolation, few: int = FEW_PARTS
) -> TakenApart:
    """Return the way to solve a module. Parts are given only if their program gives the module's own bytes.

    A module with up to `few` parts is solved as a whole.
    """
    try:
        graph = export(source, policy=policy, isolation=isolation)
    except NotExported as error:
        return _direct(task_id, "not_exported", str(error))
    parts = require_parts(graph, grouped(graph))
    if len(parts) <= few:
        detail = f"it has {len(parts)} parts: up to {few} are one kernel's work"
        return _direct(task_id, "few_parts", detail, graph)
    try:
        (found,) = compare(source, [composed(graph, parts)], policy=policy, isolation=isolation)
    except NotExported as error:
        return _direct(task_id, "parts_differ", f"its parts can't be compared with it: {error}", graph)
    if isinstance(found, Differs):
        return _direct(task_id, "parts_differ", f"its parts don't add up to it: {found.why}", graph)
    tensors = {node.name: node.tensors for node in graph.nodes}
    signatures = tuple(signature_of(part, tensors) for part in parts)
    references = {one: reference_of(part, tensors) for one, part in zip(signatures, parts, strict=True)}
    work = [(flops_of(part, tensors), bytes_of(part, tensors)) for part in parts]
    listed = tuple(_listed(one, signatures, work, references[one]) for one in dict.fromkeys(signatures))
    routed = ModuleRouted(
        task_id=task_id,
        route="extract",
        reason="several_parts",
        detail=f"it has {len(parts)} parts, {len(listed)} of them different, and their program gives its own bytes",
        parts=listed,
    )
    return TakenApart(routed, graph, parts, signatures, references)


def _listed(
    signature: Digest, signatures: Sequence[Digest], work: Sequence[tuple[int, int]], reference: str
) -> ModulePart:
    mine = [one for one, name in zip(work, signatures, strict=True) if name == signature]
    totals = [max(1, sum(column)) for column in zip(*work, strict=True)]
    shares = [sum(column) / total for column, total in zip(zip(*mine, strict=True), totals, strict=True)]
    return ModulePart(
        signature=signature,
        count=len(mine),
        flops_share=shares[0],
        bytes_share=shares[1],
        reference_sha256=sha256(reference.encode()),
    )


def _direct(task_id: str, reason: str, detail: str, graph: Graph | None = None) -> TakenApart:
    made = {"task_id": task_id, "route": "direct", "reason": reason, "detail": detail[:500], "parts": ()}
    return TakenApart(ModuleRouted.model_validate(made), graph)
