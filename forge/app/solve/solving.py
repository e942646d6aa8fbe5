"""Solves a module: has kernels written for its parts, and the composed whole judged like any other candidate."""

from dataclasses import dataclass, field
from pathlib import Path

from forge.app.solve.children import Work, is_worth_it, kernels_of_parts
from forge.app.solve.composing import judge_whole
from forge.app.solve.routes import OTHER, record_route, remembered, route_key
from forge.app.solve.taking_apart import TakenApart, take_apart
from forge.app.tasks.references import freeze_reference, infer_reference, read_source
from forge.app.workspace import Workspace
from forge.domain.authoring import Judged
from forge.domain.digest import Digest
from forge.domain.verdict import Accepted
from forge.errors import UsageError
from forge.events.module import ModuleComposed, ModulePart, ModuleRouted, Route
from forge.lab.job import Progress
from forge.pipeline.create import TaskRequest
from forge.sandbox.isolation_here import isolation


@dataclass
class Solved:
    """What came of a module."""

    task_id: str
    routed: ModuleRouted
    sessions: list[str] = field(default_factory=list)
    composed: ModuleComposed | None = None
    judged: Judged | None = None
    kernels: list[str] = field(default_factory=list)
    """Ids of promoted kernels for the whole module."""


@dataclass
class Solving:
    """One module that is being solved."""

    workspace: Workspace
    source: bytes
    request: TaskRequest
    work: Work
    progress: Progress
    apart: TakenApart
    found: Solved

    def go(self, route: Route) -> None:
        """Solve the module as a whole (`direct`) or by its parts (`extract`), to the end of the author's sessions."""
        if route == "extract":
            self._by_parts()
        else:
            self._as_a_whole()

    def can_extract(self) -> bool:
        """Return whether the module has several parts that add up to it, however few they are."""
        if self.apart.references is None and self.apart.routed.reason == "few_parts":
            few = take_apart(
                self.source,
                task_id=self.found.task_id,
                policy=self.workspace.policy,
                isolation=isolation(),
                few=1,
            )
            self.apart = few if few.references is not None else self.apart
        return self.apart.references is not None

    @property
    def shares(self) -> int:
        """Number of equal shares of the budget: one for each part worth a kernel, one for the whole."""
        return 1 + sum(is_worth_it(one) for one in self.apart.routed.parts)

    def _as_a_whole(self) -> None:
        state = self.work(self.found.task_id, self.shares)
        self.found.sessions.append(state.session_id)
        self.found.kernels += [one.kernel_id for one in state.answers() if one.kernel_id is not None]

    def _by_parts(self) -> None:
        """Have kernels written for the parts, put them together, and have the result judged."""
        kernels, sessions = kernels_of_parts(
            self.workspace, self.apart, self.request, self.work, shares=self.shares, progress=self.progress
        )
        self.found.sessions += sessions
        if not kernels:
            return
        whole = judge_whole(self.workspace, self.source, self.apart, kernels, progress=self.progress)
        if whole is None:
            return
        self.found.composed, self.found.judged = whole.composed, whole.judged
        if isinstance(whole.judged.verdict, Accepted) and whole.judged.kernel_id is not None:
            self.found.kernels.append(whole.judged.kernel_id)


def solve(
    workspace: Workspace, path: Path, request: TaskRequest, work: Work, *, solver: Digest, progress: Progress
) -> Solved:
    """Solve the module in a file. A way that gives no promoted kernel is left once for the other one.

    `solver` is a digest of the author and its prompt: the way that solved an equal module for it is taken first.
    Raises UsageError or ReferenceRefused for a file that is no module.
    """
    source = read_source(path)
    task_id = freeze_reference(workspace, infer_reference(workspace, path, request, progress=progress)).task_id
    apart = take_apart(source, task_id=task_id, policy=workspace.policy, isolation=isolation())
    key = route_key(source, apart.graph, request, solver)
    solving = Solving(workspace, source, request, work, progress, apart, Solved(task_id, apart.routed))
    routed = _first(solving, remembered(workspace, key)).model_copy(update={"key_sha256": key})
    solving.found.routed = routed
    _tell(solving, routed)
    solving.go(routed.route)
    if not solving.found.kernels and (routed.route == "extract" or solving.can_extract()):
        detail = {
            "extract": "no composed candidate was promoted, so the whole module is tried",
            "direct": "no kernel for the whole was promoted, so its parts are tried",
        }[routed.route]
        other = OTHER[routed.route]
        parts = solving.apart.routed.parts if other == "extract" else ()
        _tell(solving, _way(task_id, other, "fallback", detail, parts).model_copy(update={"key_sha256": key}))
        solving.go(other)
    return solving.found


def _first(solving: Solving, earlier: ModuleRouted | None) -> ModuleRouted:
    """Return the way to go first: the rule's, or the one that solved an equal module."""
    ruled = solving.apart.routed
    if earlier is None or earlier.route == ruled.route:
        return ruled
    if earlier.route == "extract" and not solving.can_extract():
        return ruled
    detail = f"this way solved an equal module for this author, in task {earlier.task_id}"
    parts = solving.apart.routed.parts if earlier.route == "extract" else ()
    return _way(ruled.task_id, earlier.route, "remembered", detail, parts)


def _way(task_id: str, route: Route, reason: str, detail: str, parts: tuple[ModulePart, ...]) -> ModuleRouted:
    made = {"task_id": task_id, "route": route, "reason": reason, "detail": detail, "parts": parts}
    return ModuleRouted.model_validate(made)


def _tell(solving: Solving, routed: ModuleRouted) -> None:
    texts = solving.apart.references or {}
    record_route(solving.workspace, routed, texts if routed.parts else {})
    solving.progress(f"route {routed.route}: {routed.detail}")


def require_module(path: Path) -> None:
    """Raise UsageError unless a file names a class Model, so that nothing is recorded for another file."""
    if b"class Model" not in read_source(path):
        raise UsageError(f"{str(path)!r} has no class Model: expected a module in KernelBench's form")
