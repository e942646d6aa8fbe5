"""Answers how fast candidates are: typical, worst and best of a slot, changes between machines, and fast_p."""

import statistics
from collections.abc import Iterable
from itertools import groupby

import orjson

from forge.app.audit.answer import COLD, Answer, Cell, Filter, Named, named_rows, number, where
from forge.app.stored.tables import HasTables
from forge.domain.shape_slug import shape_slug
from forge.errors import UsageError

LEADERBOARD_COLUMNS = (
    *("op", "gpu", "dtype", "shape", "baseline", "attempted", "n", "worst", "typical", "best", "best_low"),
    *("best_high", "best_source", "best_candidate", "standing"),
)
BEST = ("speedup", "low", "high", "source")
"""Columns of the fastest candidate of a slot that the leaderboard shows."""
SLOT = ("op", "gpu", "dtype", "shape")
"""Names of the columns that identify a slot: kernels with equal values are alternatives for the same call."""
MEASURED = """
    SELECT op, gpu, dtype, shape, candidate, baseline, max(seq) AS seq, speedup, low, high, source
    FROM latest_speedups
    WHERE {condition} AND (baseline = :baseline OR (:baseline IS NULL AND baseline_used))
      AND candidate NOT IN (SELECT candidate FROM kernels WHERE status = 'revoked')
    GROUP BY op, gpu, dtype, shape, candidate, baseline ORDER BY op, gpu, dtype, shape
"""
ATTEMPTED = """
    SELECT task.op, task.gpu, task.dtype, task.shape, count(*) AS attempted
    FROM runs JOIN tasks AS task USING (task_id) WHERE submit_attempts > 0 GROUP BY 1, 2, 3, 4
"""
STANDING = """
    SELECT op, gpu, dtype, shape, count(*) AS standing FROM (
        SELECT op, gpu, dtype, shape, kernel_id FROM kernels WHERE status = 'active'
        UNION SELECT point.op, point.gpu, point.dtype, point.shape, kernel.kernel_id
        FROM kernels AS kernel JOIN benchmarks AS point ON point.seq = kernel.benchmark_seq
        WHERE kernel.status = 'active' AND point.verdict = 'accepted' AND point.shape IS NOT NULL
    ) GROUP BY 1, 2, 3, 4
"""
CHANGED = "SELECT * FROM changes WHERE change = 'lower' OR :all ORDER BY later_speedup / earlier_speedup"
"""Query for kernels whose speedup became lower, or for all changes; the largest loss first."""
LATELY = """
    SELECT kernel_id, shape, perf_key, newest_ns, earlier_ns, slower FROM regressions
    WHERE slower > :slower ORDER BY slower DESC
"""
CHANGE_COLUMNS = (
    *("kind", "what", "shape", "over", "changed", "earlier", "earlier_low", "earlier_high", "later", "later_low"),
    *("later_high", "slower", "earlier_seq", "later_seq", "earlier_source", "later_source", "change"),
)
FAST_LEVELS = (0.0, 1.0, 1.5, 2.0)
"""Speedups p at which fast_p is given (KernelBench, arXiv 2502.10517, section 3). 0 counts the correct kernels, 1
those that are faster at all."""
MACHINE = ("gpu", "driver", "torch", "triton")
"""Fields that tell two kinds of machine apart."""
TASKS = """
    SELECT task_id, max(attempted) AS attempted, max(verified) AS verified, max(simulated) AS simulated FROM (
        SELECT run.task_id, run.submit_attempts > 0 AS attempted,
               run.verified_seq IS NOT NULL AND NOT run.simulated AND trial.candidate NOT IN (
                   SELECT candidate FROM kernels WHERE status = 'revoked') AS verified,
               run.verified_seq IS NOT NULL AND coalesce(run.simulated, 0) AS simulated
        FROM runs AS run LEFT JOIN trials AS trial USING (run_id)
    ) JOIN tasks USING (task_id) WHERE {condition} GROUP BY task_id HAVING max(attempted) ORDER BY task_id
"""
TASK_SPEEDUPS = """
    SELECT latest.task_id, latest.candidate, max(latest.seq) AS seq, latest.speedup, latest.low, latest.high,
           latest.source
    FROM latest_speedups AS latest JOIN tasks AS task USING (task_id)
    WHERE latest.shape = task.shape AND (latest.baseline = :baseline OR (:baseline IS NULL AND latest.baseline_used))
      AND latest.candidate NOT IN (SELECT candidate FROM kernels WHERE status = 'revoked')
    GROUP BY latest.task_id, latest.candidate
"""
BEATEN = "the baseline that had to be beaten"
"""Words for the baseline if the user names none."""


def leaderboard(
    workspace: HasTables, *, baseline: str | None = None, wanted: dict[Filter, str | None] | None = None
) -> Answer:
    """Return worst, typical (median) and best speedup for each slot and baseline, over all timed candidates.

    Candidates that were timed and refused as too slow are included; withdrawn and revoked ones aren't.
    """
    with workspace.publication.tables() as connection:
        condition, values = where(connection, wanted or {})
        measured = named_rows(connection, MEASURED.format(condition=condition), {**values, "baseline": baseline})
        attempts = {_slot(row): row["attempted"] for row in named_rows(connection, ATTEMPTED)}
        standing = {_slot(row): row["standing"] for row in named_rows(connection, STANDING)}
    measured.sort(key=lambda row: (*_slot(row), str(row["baseline"])))
    rows = []
    for key, group in groupby(measured, key=lambda row: (*_slot(row), row["baseline"])):
        found, slot = list(group), key[:4]
        best = max(found, key=lambda row: (number(row["low"]), str(row["candidate"])))
        ratios = [number(row["speedup"]) for row in found]
        shape = shape_slug(orjson.loads(str(slot[3])))
        figures = (len(found), min(ratios), statistics.median(ratios), *(best[name] for name in BEST))
        rows.append(
            (*slot[:3], shape, key[4], attempts.get(slot), *figures, best["candidate"], standing.get(slot, 0))
        )
    bare = any(row[LEADERBOARD_COLUMNS.index("attempted")] is None for row in rows)
    return Answer(
        f"Speedup over {baseline or BEATEN}: typical, worst and best",
        LEADERBOARD_COLUMNS,
        tuple(rows),
        notes=(
            "n: candidates that were timed with a verdict, those refused as too slow among them; "
            "best: the speedup with the highest lower end; typical: the median",
            "attempted: runs that submitted a candidate for the slot, timed or not; best says nothing of the others",
            *(("no attempts: a further shape, timed where a task's main shape was proven",) if bare else ()),
            COLD,
        ),
        shown=tuple(name for name in LEADERBOARD_COLUMNS if name not in ("best_low", "best_high", "best_candidate")),
    )


def _slot(row: Named) -> tuple[Cell, ...]:
    return tuple(row[name] for name in SLOT)


def regressions(workspace: HasTables, *, slower: float, everything: bool = False) -> Answer:
    """Return candidates whose speedup is lower on another kind of machine, and kernels that became slower on one."""
    with workspace.publication.tables() as connection:
        moved = named_rows(connection, CHANGED, {"all": everything})
        lately = named_rows(connection, LATELY, {"slower": slower})
    rows = [*map(_moved, moved), *map(_slowed, lately)]
    return Answer(
        "Regressions",
        CHANGE_COLUMNS,
        tuple(rows),
        notes=(
            "machine: the same candidate, shape and baseline on two kinds of machine, if the 95 % intervals of their "
            "speedups don't overlap; an interval leaves out what sessions differ by: forge audit replication",
            "earlier, later: speedups over the baseline, with the ends of their 95 % intervals; slower: the "
            "candidate's later time over its earlier one",
            f"lately: the mean of a kernel's newest ten times over that of those before, above {slower:g}",
            COLD,
        ),
    )


def _moved(row: Named) -> tuple[Cell, ...]:
    differ = [
        f"{name} {row[f'earlier_{name}']} -> {row[f'later_{name}']}"
        for name in MACHINE
        if row[f"earlier_{name}"] != row[f"later_{name}"]
    ]
    shape = shape_slug(orjson.loads(str(row["shape"])))
    figures = (row[f"{when}_{name}"] for when in ("earlier", "later") for name in ("speedup", "low", "high"))
    what = f"{row['op']} {row['dtype']} {str(row['candidate'])[:12]}"
    changed = ", ".join(differ) or "processor, compiler or CUDA"
    return (
        *("machine", what, shape, row["baseline"], changed, *figures),
        *(row[name] for name in CHANGE_COLUMNS[-6:]),
    )


def _slowed(row: Named) -> tuple[Cell, ...]:
    shape = shape_slug(orjson.loads(str(row["shape"])))
    absent = (None,) * 6
    return "lately", row["kernel_id"], shape, None, "nothing", *absent, row["slower"], *absent[:4], "slower"


def fast_p(
    workspace: HasTables,
    *,
    levels: Iterable[float],
    baseline: str | None = None,
    wanted: dict[Filter, str | None] | None = None,
) -> Answer:
    """Return, for each p, the share of attempted tasks with a correct candidate more than p times as fast.

    After Ouyang et al., "KernelBench: Can LLMs Write Efficient GPU Kernels?" (2025), section 3: correct and faster
    than p, over all tasks. p = 0 asks only for correctness. Raises UsageError for a bad p.
    """
    thresholds = sorted(set(levels))
    if not thresholds or not all(0 <= level < float("inf") for level in thresholds):
        raise UsageError(f"bad levels {thresholds!r}: expected numbers of at least 0")
    with workspace.publication.tables() as connection:
        condition, values = where(connection, wanted or {})
        tasks = named_rows(connection, TASKS.format(condition=condition), values)
        speedups = named_rows(connection, TASK_SPEEDUPS, {"baseline": baseline})
    verified = {row["task_id"] for row in tasks if row["verified"]}
    timed = {name: best for name, best in _best(speedups).items() if name in verified}
    rows = []
    for level in thresholds:
        faster = len(verified) if level == 0 else sum(ratio > level for ratio, _ in timed.values())
        surely = len(verified) if level == 0 else sum(low > level for _, low in timed.values())
        rows.append((level, faster, len(tasks), _share(faster, len(tasks)), _share(surely, len(tasks))))
    simulated = sum(bool(row["simulated"]) and not row["verified"] for row in tasks)
    return Answer(
        f"fast_p over {baseline or BEATEN}",
        ("p", "tasks_faster", "tasks_attempted", "fast_p", "fast_p_by_lower_end"),
        tuple(rows),
        notes=(
            f"of {len(tasks)} tasks for which a candidate was submitted: {len(verified)} have a correct one, "
            f"{len(timed)} of these were timed. Every other task counts as not faster",
            "a task's best candidate counts, as it was timed for that task and at its shape. Revoked kernels and "
            f"withdrawn times don't. {simulated} tasks have only a simulated verification, which counts as none",
        ),
        more={"attempted": len(tasks), "verified": len(verified), "timed": len(timed), "simulated_only": simulated},
    )


def _best(speedups: list[Named]) -> dict[Cell, tuple[float, float]]:
    """Return each task's highest speedup, and its highest lower end."""
    best: dict[Cell, tuple[float, float]] = {}
    for row in speedups:
        ratio, low = best.get(row["task_id"], (0.0, 0.0))
        best[row["task_id"]] = max(ratio, number(row["speedup"])), max(low, number(row["low"]))
    return best


def _share(count: int, of: int) -> float | None:
    return count / of if of else None
