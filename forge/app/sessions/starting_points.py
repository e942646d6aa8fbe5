"""Adds to a brief what an author may start from: its platform's pack, a profile, and a kernel from elsewhere."""

from forge.app.incumbent import incumbent_kernel
from forge.app.sessions.platform_pack import read_profile
from forge.app.workspace import Workspace
from forge.domain.task import Task
from forge.events import KernelPromoted
from forge.pipeline.fence import fenced
from forge.platforms.packs import CounterReading, Pack, find_pack

LONGEST_KERNEL = 20_000
"""Number of characters of a kernel from elsewhere, at most, so that it leaves room for the task's own brief."""


def sections(workspace: Workspace, task: Task, profile: str | None) -> str:
    """Return what is added to a task's brief: its platform's rules, a profile's numbers, a kernel from elsewhere.

    Raises UsageError for a profile that can't be read.
    """
    pack = find_pack(task.target.platform)
    parts = [pack.text()]
    if profile is not None:
        parts.append(_profiled(pack, read_profile(pack, profile)))
    elsewhere = _from_elsewhere(workspace, task)
    return "\n" + "\n".join([*parts, elsewhere] if elsewhere else parts)


def _profiled(pack: Pack, readings: tuple[CounterReading, ...]) -> str:
    said = {one.id: one.says for one in pack.metrics}
    rows = [f"| `{one.id}` | {one.value:.6g} {one.unit} | {said.get(one.id, '')} |" for one in readings]
    head = ["## A profile of the user's own", "", "| counter | value | says |", "|---|---|---|"]
    return "\n".join([*head, *rows]) + "\n"


def _from_elsewhere(workspace: Workspace, task: Task) -> str:
    """Return a promoted kernel of the same operation for another platform or in another language, with its origin."""
    families: dict[str, Task] = {}
    for recorded in workspace.ledger.read(types=(KernelPromoted.TYPE,)):
        event = recorded.event
        if isinstance(event, KernelPromoted) and event.task.op == task.op and event.task.family != task.family:
            families[event.task.family] = event.task
    for family, theirs in sorted(families.items()):
        kernel = incumbent_kernel(workspace, family)
        if kernel is None:
            continue
        digest = next(one.sha256 for one in kernel.files if one.path == "kernel.py")
        text = workspace.blobs.get(digest).decode(errors="replace")
        if len(text) > LONGEST_KERNEL:
            continue
        origin = f"`{kernel.kernel_id}`, in {theirs.language} for {theirs.target.gpu}, verified and promoted there"
        said = "It isn't judged for this task: use its idea, not its numbers."
        return f"## A kernel of the same operation from elsewhere\n\n{origin}. {said}\n\n{fenced(text, 'python')}\n"
    return ""
