"""Answers which evidence doesn't hold any more: withdrawn benchmarks, and evidence that is old or from elsewhere."""

from datetime import UTC, datetime
from typing import Literal

from forge.app.audit.answer import Answer, Cell, Named, named_rows
from forge.app.stored.tables import HasTables
from forge.errors import UsageError
from forge.lookup.machine import answer_lines

WITHDRAWN = """
    SELECT invalidated.benchmark_seq, invalidated.seq AS invalidated_seq, invalidated.why, kernel.kernel_id,
           kernel.status, (SELECT count(*) FROM claims WHERE measured_by_seq = invalidated.benchmark_seq) AS claims,
           (SELECT candidate FROM benchmarks WHERE seq = invalidated.benchmark_seq LIMIT 1) AS candidate,
           (SELECT recorded_at FROM benchmarks WHERE seq = invalidated.benchmark_seq LIMIT 1) AS measured_at
    FROM invalidations AS invalidated LEFT JOIN kernels AS kernel USING (benchmark_seq)
    ORDER BY invalidated.seq, kernel.kernel_id
"""
"""Query for withdrawn benchmarks, with the kernels and the number of claims that rested on each."""
WITHDRAWN_COLUMNS = (
    *("benchmark_seq", "invalidated_seq", "why", "kernel_id", "status", "claims", "candidate", "measured_at"),
)
STANDING = """
    SELECT kernel.kernel_id, kernel.gpu, kernel.perf_key, kernel.benchmark_seq, kernel.status,
           (SELECT recorded_at FROM benchmarks WHERE seq = kernel.benchmark_seq LIMIT 1) AS measured_at,
           machine.driver, machine.torch, machine.triton
    FROM kernels AS kernel LEFT JOIN environments AS machine USING (env_sha256)
    WHERE kernel.status IN ('active', 'deprecated') ORDER BY kernel.kernel_id
"""
NEWEST_MACHINES = """
    SELECT gpu, perf_key, driver, torch, triton, max(seq) FROM environments WHERE gpu IS NOT NULL GROUP BY gpu
"""
STALE_COLUMNS = ("kernel_id", "status", "age_days", "measured_at", "benchmark_seq", "why")
Current = Literal["here", "ledger", "any"]
"""Machine that counts as the current one: this one, the newest recorded with that GPU, or any."""
CPU = "cpu"
"""Name of a machine's own processor as a target."""
SECONDS_A_DAY = 86_400
"""Number of seconds in a day."""
MOST_DAYS = 36_500
"""Largest number of days that a user may ask for: about a hundred years."""


def invalidated(workspace: HasTables) -> Answer:
    """Return benchmarks that were withdrawn, why, and the kernels and claims that rested on them."""
    with workspace.publication.tables() as connection:
        rows = named_rows(connection, WITHDRAWN)
    return Answer(
        "Withdrawn benchmarks",
        WITHDRAWN_COLUMNS,
        tuple(tuple(row[name] for name in WITHDRAWN_COLUMNS) for row in rows),
        notes=("kernel_id: promoted on that benchmark, none if nothing was; claims: assessed by it",),
    )


def stale(workspace: HasTables, *, days: int, current: Current) -> Answer:
    """Return active kernels whose evidence is older than `days`, or isn't from the current kind of machine.

    Raises UsageError for a number of days out of range.
    """
    if not 0 <= days <= MOST_DAYS:
        raise UsageError(f"bad days {days!r}: expected 0 to {MOST_DAYS}")
    with workspace.publication.tables() as connection:
        kernels = named_rows(connection, STANDING)
        machines = _machines_here({str(one["gpu"]) for one in kernels}) if current == "here" else {}
        if current == "ledger":
            machines = {str(row["gpu"]): row for row in named_rows(connection, NEWEST_MACHINES)}
    today = datetime.now(UTC)
    rows: list[tuple[Cell, ...]] = []
    for kernel in kernels:
        age_days = (today - datetime.fromisoformat(str(kernel["measured_at"]))).total_seconds() / SECONDS_A_DAY
        reasons = [f"older than {days} days"] if age_days > days else []
        if current != "any":
            reasons += _elsewhere(kernel, machines.get(str(kernel["gpu"])), current=current)
        if reasons:
            measured = (round(age_days, 2), kernel["measured_at"], kernel["benchmark_seq"])
            rows.append((kernel["kernel_id"], kernel["status"], *measured, "; ".join(reasons)))
    against = {"here": "this machine", "ledger": "the newest recorded machine with that GPU", "any": "any machine"}
    return Answer(
        f"Stale: {len(rows)} of {len(kernels)} kernels that are active or deprecated",
        STALE_COLUMNS,
        tuple(rows),
        notes=(f"older than {days} days, or not measured on {against[current]}",),
        more={"kernels": len(kernels)},
    )


def _machines_here(processors: set[str]) -> dict[str, Named]:
    """Return this machine, under the names of its processors, if it has any of those; nothing is recorded."""
    if CPU not in processors and not answer_lines("nvidia-smi", "-L"):
        return {}
    from forge import __version__
    from forge.app.machine.chosen_device import chosen_device
    from forge.platforms.capture import capture_environment

    found = capture_environment(forge_version=__version__, forge_commit=None, device=chosen_device())
    row: Named = {"perf_key": found.perf_key, "driver": found.driver, "torch": found.torch, "triton": found.triton}
    return {CPU: row} | ({found.gpu.slug: row} if found.gpu else {})


def _elsewhere(kernel: Named, machine: Named | None, *, current: Current) -> list[str]:
    """Return how the machine of the evidence differs from the current one."""
    if machine is None:
        nowhere = "this machine has no" if current == "here" else "no environment recorded for"
        return [f"{nowhere} {kernel['gpu']}"]
    if machine["perf_key"] == kernel["perf_key"]:
        return []
    differ = [
        f"{name} {kernel[name]} -> {machine[name]}"
        for name in ("driver", "torch", "triton")
        if kernel[name] != machine[name]
    ]
    return [", ".join(differ) or "another processor, compiler or CUDA"]
