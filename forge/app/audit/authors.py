"""Answers what each author submitted and what came of it: refusals, claims, experiments, and effect."""

from datetime import date
from typing import Literal

from forge.app.audit.answer import Answer, Cell, Filter, known_value, named_rows, where
from forge.app.stored.tables import HasTables
from forge.errors import UnknownName, UsageError

RefusedBy = Literal["code", "gate", "stage", "task", "op", "author", "day", "month"]
EffectBy = Literal["author", "template", "skill", "op", "language"]
CLAIM_VERDICTS = ("confirmed", "understated", "overstated", "refuted", "not_comparable", None)
"""Verdicts of claims in the order of the columns; None counts claims that weren't assessed."""
NAMES: dict[RefusedBy, str] = {
    "code": "reason_code",
    "gate": "gate",
    "stage": "stage",
    "task": "task_id",
    "op": "op",
    "author": "author",
    "day": "substr(recorded_at, 1, 10)",
    "month": "substr(recorded_at, 1, 7)",
}
"""Group of refusals -> the SQL expression for its name."""
REFUSED = """
    FROM refusals WHERE {condition} AND (:code IS NULL OR reason_code = :code) AND (:gate IS NULL OR gate = :gate)
      AND (:task IS NULL OR task_id = :task) AND recorded_at >= :since AND recorded_at < :until
"""
CLAIMED = """
    SELECT {name} AS name, metric, claimed_to_measured AS ratio, verdict FROM claimed WHERE {condition}
    ORDER BY 1, 2, 3
"""
"""Query for authors' claims, with the ratio of each to what was measured."""
EXPERIMENTS = """
    SELECT closed_seq, run_id, op, gpu, dtype, language, author, layer, axis, ended, reason, against, speedup, low,
           high, hypothesis, candidate, simulated
    FROM experiments WHERE {condition} AND (:axis IS NULL OR axis = :axis) AND (:layer IS NULL OR layer = :layer)
      AND (:ended IS NULL OR ended = :ended)
      AND (:text IS NULL OR instr(lower(coalesce(hypothesis, '')), lower(:text)) > 0)
    ORDER BY closed_seq DESC LIMIT :limit
"""
EXPERIMENT_SHOWN = (
    "closed_seq",
    "op",
    "gpu",
    "dtype",
    "axis",
    "ended",
    "simulated",
    "speedup",
    "low",
    "high",
    "hypothesis",
)
"""Columns of the table for people."""
ENDED = "SELECT ended, count(*) FROM experiments GROUP BY ended ORDER BY ended"
"""Query for the number of experiments by their end."""
EFFECT_NAMES: dict[EffectBy, tuple[str, str]] = {
    "author": ("coalesce(author, '(nothing taken in)')", ""),
    "template": (
        "coalesce(template || ' v' || template_version || ' ' || substr(template_sha256, 1, 12), '(none)')",
        "",
    ),
    "skill": ("json_extract(skill.value, '$.id')", ", json_each(skills) AS skill"),
    "op": ("op", ""),
    "language": ("language", ""),
}
"""Way to group the outcomes -> the SQL expression of a group's name, and the join that it needs."""
EFFECT = """
    SELECT {name} AS name, count(DISTINCT task_id) AS tasks, count(*) AS opened, sum(attempted) AS attempted,
           sum(submitted) AS submitted, sum(simulated) AS simulated, sum(verified) AS verified,
           sum(measured) AS measured,
           sum(ended = 'improved') AS improved, sum(kernel_id IS NOT NULL) AS promoted,
           sum(kernel_status = 'active') AS standing, 1.0 * sum(kernel_id IS NOT NULL) / nullif(sum(attempted), 0)
               AS promoted_share,
           sum(gpu_s) AS gpu_s, sum(gpu_s) / nullif(sum(kernel_id IS NOT NULL), 0) AS gpu_s_per_promoted
    FROM outcomes{source} WHERE {condition} GROUP BY name ORDER BY promoted DESC, attempted DESC, name
"""
LAST_DAY, FIRST_DAY = "9999-12-31", "0001-01-01"


def rejections(
    workspace: HasTables,
    *,
    by: RefusedBy,
    code: str | None = None,
    gate: str | None = None,
    task: str | None = None,
    since: str | None = None,
    until: str | None = None,
    limit: int,
    wanted: dict[Filter, str | None] | None = None,
) -> Answer:
    """Return how often candidates were refused, grouped by `by`, and the newest `limit` refusals.

    `since` and `until` are days in UTC; `until` itself isn't included. The other arguments are filters.
    """
    if code is not None:
        _require_reason(code)
    values: dict[str, Cell] = {"code": code, "limit": limit}
    values |= {"since": _day(since or FIRST_DAY), "until": _day(until or LAST_DAY)}
    with workspace.publication.tables() as connection:
        condition, given = where(connection, wanted or {})
        values |= {
            "gate": gate and known_value(connection, "gate", gate),
            "task": task and known_value(connection, "task", task),
        }
        refused, values = REFUSED.format(condition=condition), values | given
        counts = named_rows(
            connection,
            f"SELECT {NAMES[by]} AS name, count(*) AS refused, sum(verdict = 'inconclusive') AS inconclusive"
            f" {refused} GROUP BY 1 ORDER BY refused DESC, name",
            values,
        )
        newest = named_rows(connection, f"SELECT * {refused} ORDER BY seq DESC LIMIT :limit", values)
    rows = tuple((one["name"], one["refused"], one["inconclusive"]) for one in counts)
    total = sum(int(str(one["refused"])) for one in counts)
    return Answer(
        f"Refused: {total}",
        (by, "refused", "inconclusive"),
        rows,
        notes=("inconclusive: those without a verdict, because of the machine or of noise",),
        more={"by": by, "refused": total, "newest": newest},
    )


def _day(untrusted_text: str) -> str:
    """Return a calendar day as the ledger writes it; raise UsageError."""
    try:
        return date.fromisoformat(untrusted_text).isoformat()
    except ValueError as error:
        raise UsageError(f"bad day {untrusted_text!r}: expected one like 2026-01-31") from error


def claims(workspace: HasTables, *, by: Literal["claimant", "author"]) -> Answer:
    """Return the ratio of claimed to measured values, for each claimant or author and each metric."""
    with workspace.publication.tables() as connection:
        name = "claimant" if by == "claimant" else "coalesce(author, '(unknown)')"
        found = named_rows(connection, CLAIMED.format(name=name, condition="1"))
    groups: dict[tuple[Cell, Cell], list[dict[str, Cell]]] = {}
    for one in found:
        groups.setdefault((one["name"], one["metric"]), []).append(one)
    rows = []
    for (who, metric), said in groups.items():
        verdicts = [one["verdict"] for one in said]
        ratios = [one["ratio"] for one in said if one["ratio"] is not None]
        counted = (verdicts.count(verdict) for verdict in CLAIM_VERDICTS)
        figures = (ratios[len(ratios) // 2], ratios[-1]) if ratios else (None, None)
        rows.append((who, metric, len(said), *counted, len(ratios), *figures))
    return Answer(
        f"Claims by {by}",
        (
            *(by, "metric", "claims", *CLAIM_VERDICTS[:-1], "open", "compared"),
            *("median_ratio", "largest_ratio"),
        ),
        tuple(rows),
        notes=(
            "understated: less than half of the interval's lower end; assessments before that verdict say confirmed",
            "compared: claims with a measurement of the same thing; the ratios, claimed over measured, are of these",
            "an author that is a model is known by the name under which it submits; no other is recorded",
        ),
    )


def experiments(
    workspace: HasTables,
    *,
    text: str | None = None,
    axis: str | None = None,
    layer: str | None = None,
    ended: str | None = None,
    limit: int,
    wanted: dict[Filter, str | None] | None = None,
) -> Answer:
    """Return what was tried and what it showed, failures included, newest first; `text` is searched in hypotheses.

    `limit` is the largest number of experiments.
    """
    if (ended, layer, axis) != (None, None, None):
        _require_known(ended=ended, layer=layer, axis=axis)
    with workspace.publication.tables() as connection:
        condition, values = where(connection, wanted or {})
        filters: dict[str, Cell] = {"text": text, "axis": axis, "layer": layer, "ended": ended, "limit": limit}
        found = named_rows(connection, EXPERIMENTS.format(condition=condition), {**values, **filters})
        ends = dict(connection.execute(ENDED).fetchall())
    columns = tuple(found[0]) if found else ("closed_seq", "run_id", "ended", "hypothesis")
    return Answer(
        "Experiments",
        columns,
        tuple(tuple(row.values()) for row in found),
        notes=("of all that came to an end: " + (", ".join(f"{n} {end}" for end, n in ends.items()) or "none"),),
        more={"ended": ends},
        shown=tuple(name for name in EXPERIMENT_SHOWN if name in columns),
    )


def effectiveness(workspace: HasTables, *, by: EffectBy, wanted: dict[Filter, str | None] | None = None) -> Answer:
    """Return how far runs came, for each author, prompt template, skill, operation or language."""
    name, source = EFFECT_NAMES[by]
    with workspace.publication.tables() as connection:
        condition, values = where(connection, wanted or {})
        found = named_rows(connection, EFFECT.format(name=name, source=source, condition=condition), values)
    columns = (by, *tuple(found[0])[1:]) if found else (by, "tasks", "opened", "attempted", "promoted")
    notes = [
        "opened: runs; attempted: runs that a candidate was submitted for; promoted_share: promoted over attempted, "
        "with every refusal in the denominator",
        "gpu_s: recorded seconds that a GPU computed to time candidates; "
        "money and tokens aren't recorded, so no cost in either is given",
    ]
    if by == "skill":
        notes.append("a run counts under each of its skills: rows overlap, and none shows a cause")
    if by == "author":
        notes.append("an author that is a model is known by the name under which it submits; no other is recorded")
    return Answer(f"Effectiveness by {by}", columns, tuple(tuple(row.values()) for row in found), notes=tuple(notes))


def _require_reason(code: str) -> None:
    """Raise UnknownName unless there is such a reason code."""
    from forge.domain.verdict import REASON_CODES  # here: the models take longer than a plain answer

    if code not in REASON_CODES:
        raise UnknownName("reason code", code, list(REASON_CODES))


def _require_known(*, ended: str | None, layer: str | None, axis: str | None) -> None:
    """Raise UnknownName for an end, a layer or an axis that no experiment can have."""
    from forge.domain.axes import AXES, ENDS, LAYER_NAMES, layer_of  # here, likewise

    if ended is not None and ended not in ENDS:
        raise UnknownName("end of an experiment", ended, list(ENDS))
    if layer is not None and layer not in LAYER_NAMES:
        raise UnknownName("layer", layer, list(LAYER_NAMES))
    if axis is not None and layer_of(axis) is None:
        raise UnknownName("axis", axis, [one for axes in AXES.values() for one in axes])
