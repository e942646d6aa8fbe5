"""Whole modules: which way they are solved, and what was put together from kernels of their parts."""

from typing import Annotated, Literal

from pydantic import Field

from forge.domain.digest import Digest, Value, is_unset
from forge.events.fact import Fact

Share = Annotated[float, Field(ge=0, le=1)]
Route = Literal["direct", "extract"]
"""Way to solve a module. `direct`: one kernel for the whole. `extract`: kernels for its parts, put together."""


class ModulePart(Value):
    """One different part of a module."""

    signature: Digest
    """Digest of its operators, constants, types and sizes."""
    count: Annotated[int, Field(ge=1)]
    """Number of places in the module at which it stands."""
    flops_share: Share
    """Share of the module's arithmetic, all places together. `bytes_share` is the same for bytes moved."""
    bytes_share: Share
    reference_sha256: Digest
    """Digest of its reference, which was written from the graph."""


class ModuleRouted(Fact):
    """A module was looked at before any kernel was written, and a way to solve it was chosen."""

    task_id: str
    route: Route
    reason: Literal["few_parts", "several_parts", "not_exported", "parts_differ", "fallback", "remembered"]
    detail: str
    """One sentence with the values behind the reason."""
    parts: tuple[ModulePart, ...]
    """Different parts, if their program gave the module's own bytes; none on the direct way."""
    key_sha256: Digest | None = Field(default=None, exclude_if=is_unset)
    """Digest of the graph, the author with its prompt, and the platform, by which the way is remembered. None: the
    event is older than the field."""


class ModuleComposed(Fact):
    """Kernels of parts were put together into one candidate for the whole module."""

    task_id: str
    run_id: str
    """Run in which the candidate is judged."""
    replaced: tuple[Digest, ...]
    """Signatures of the parts that have a kernel."""
    left: tuple[Digest, ...]
    """Signatures of the parts that stay on their references."""
    flops_share: Share
    """Share of the module's arithmetic that kernels replace. `bytes_share` is the same for bytes moved."""
    bytes_share: Share
