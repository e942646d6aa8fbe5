"""Adds to a brief what an author may start from: its platform's pack, a profile, and a kernel from elsewhere."""

from pathlib import Path

from forge.app.incumbent import incumbent_kernel
from forge.app.user_paths import read_regular
from forge.app.workspace import Workspace
from forge.domain.task import Task
from forge.errors import UsageError
from forge.events import KernelPromoted
from forge.pipeline.fence import fenced
from forge.platforms import PLATFORMS
from forge.platforms.packs import EXPORT_BYTES, CounterReading, Pack, find_pack, read_export

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


def read_profile(pack: Pack, untrusted_text: str) -> tuple[CounterReading, ...]:
    """Return the numbers of `TOOL:FILE`, a profiler's export; raise UsageError."""
    tool, colon, name = untrusted_text.partition(":")
    if not colon:
        expected = ", ".join(f"{one}:FILE" for one in pack.readers)
        raise UsageError(f"bad profile {untrusted_text[:200]!r}: expected {expected}")
    try:
        content = read_regular(Path(name), limit_bytes=EXPORT_BYTES)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise UsageError(f"the profile {name[:200]!r} can't be read ({why}): expected an export of {tool}") from error
    return read_export(pack, tool, content)


def judging(pack: Pack) -> str:
    """Say in one sentence whether Forge judges kernels of a pack's platform."""
    if pack.name in PLATFORMS:
        return f"Forge judges kernels for {pack.title} on a machine that has one."
    return f"Forge judges no kernel for {pack.title}: it runs kernels on {' and '.join(PLATFORMS)} alone."


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
