"""Runs and their candidates, as documents for a caller."""

import re

import orjson

from forge.app.access.tokens import Caller
from forge.app.audit.answer import named_rows
from forge.app.desk.paging import page, parse_cursor
from forge.app.desk.permits import DECIDED, may_look_into, require_look_into
from forge.app.desk.refused_calls import NotShown
from forge.app.desk.view import View
from forge.app.desk.withheld import without_hidden_of
from forge.app.phases.phase_answer import phase_answer
from forge.app.runs.author_log import run_log
from forge.app.runs.states import task_of
from forge.app.stored.run_documents import of_state
from forge.app.stored.run_summary import run_summary
from forge.app.work.folder_runs import recorded_phases
from forge.errors import NotFound
from forge.events import ProfileCaptured
from forge.projections.fold import holds
from forge.projections.run_lookup import run_state
from forge.projections.runs import RunState

Data = dict[str, object]
LISTED = """
    SELECT runs.run_id, runs.task_id, runs.op, runs.gpu, runs.dtype, runs.language, runs.state, runs.sealed,
           runs.simulated, runs.started_seq, runs.last_seq, runs.recorded_at AS started_at,
           trials.candidate, trials.author, trials.ended, trials.reason, trials.speedup, trials.low, trials.high
    FROM runs LEFT JOIN trials USING (run_id)
    WHERE {conditions} ORDER BY runs.started_seq DESC LIMIT :limit
"""
FOUND = ("ended", "reason", "speedup", "low", "high")
"""Fields of a run in a list that say what was found in it."""
CONDITIONS = {
    "before": "runs.started_seq < :before",
    "task": "runs.task_id = :task",
    "state": "runs.state = :state",
}
"""Filter -> its condition. Only those that are asked for are in the query, so that an index serves each of them."""
RUNS_OF_CANDIDATE = "SELECT run_id FROM candidates WHERE candidate = ? ORDER BY seq DESC LIMIT 50"
"""Query for the newest 50 runs of a candidate."""
DIGEST = re.compile(r"[0-9a-f]{64}", re.ASCII)
"""Pattern of a whole digest."""


def all_runs(
    view: View,
    caller: Caller,
    *,
    task: str | None = None,
    state: str | None = None,
    after: str | None = None,
    limit: int,
) -> Data:
    """Return a page of runs, the newest first; what was found in them as far as the caller may look into each.

    `limit` is the largest number of runs.
    """
    before = parse_cursor(view, after)
    filters = {"before": before, "task": task, "state": state}
    asked = {name: value for name, value in filters.items() if value is not None}
    conditions = " AND ".join(["1", *(CONDITIONS[name] for name in asked)])
    with view.workspace.publication.tables() as history:
        found = named_rows(history, LISTED.format(conditions=conditions), {**asked, "limit": limit + 1})
    for one in found:
        for flag in ("sealed", "simulated"):
            one[flag] = None if one[flag] is None else bool(one[flag])
        has_found = one["state"] not in DECIDED and any(one[name] is not None for name in FOUND)
        if has_found and not _may_look_into(view, caller, str(one["run_id"])):
            one.update(dict.fromkeys(FOUND))
    return page(found, limit=limit, view=view, seq_of=lambda one: int(str(one["started_seq"])))


def _may_look_into(view: View, caller: Caller, run_id: str) -> bool:
    """Return whether the caller may see what is in an undecided run. Only an author may own one, so it is read."""
    if caller.scope != "author":
        return caller.scope == "operator"
    return may_look_into(caller, run_state(view.workspace.ledger, run_id))


def run_document(view: View, caller: Caller, name: str) -> Data:
    """Return a run: its state, the answers of its phases, and for a caller who may look into it, logs and files."""
    run = view.workspace.find_run(name)
    inside = may_look_into(caller, run)
    found: Data = {**run_summary(run), "seq": run.last_seq, "plan": plan_of(run), "shown": inside}
    found["request"] = None if run.request is None else run.request.event.until
    found["attempts"] = {name: getattr(run.attempts, name) for name in ("submit", "verify", "benchmark", "promote")}
    phases = {
        name: phase_answer(event, workspace=view.workspace) if inside else None
        for name, event in recorded_phases(run).items()
    }
    found["phases"] = phases
    found["error"] = run.error.event.detail if run.error is not None else None
    if not inside:
        found |= {"reason": None, "error": None}
    return without_hidden_of(view.workspace, [run], found)


def plan_of(run: RunState) -> Data | None:
    """Return the skills of a run, and why each was chosen; None before the phase plan."""
    return None if run.plan is None else run.plan.event.model_dump(mode="json")


def counterexample(view: View, caller: Caller, name: str) -> Data:
    """Return the input at which a run's candidate gives a wrong answer, and what was said; raise NotFound."""
    run = view.workspace.find_run(name)
    require_look_into(caller, run)
    if run.rejection is None:
        raise NotFound(f"run {run.run_id!r} is {run.state}: expected one whose candidate was refused")
    answer = phase_answer(run.rejection.event, workspace=view.workspace)
    said = run_log(view.workspace.home, of_state(run))
    found: Data = {
        "run_id": run.run_id,
        "candidate": answer["candidate"],
        "reason": answer["reason"],
        "counterexample": answer["counterexample"],
        "log": said["log"],
        "mend": said["mend"],
        "findings": answer["findings"],
    }
    return without_hidden_of(view.workspace, [run], found)


def profiles(view: View, caller: Caller, name: str) -> Data:
    """Return what each profiler saw of a run's candidate, the newest last."""
    run = view.workspace.find_run(name)
    require_look_into(caller, run)
    found = [
        {
            "seq": recorded.seq,
            "recorded_at": recorded.recorded_at,
            **recorded.event.model_dump(mode="json"),
            "seen": orjson.loads(view.workspace.blobs.get(recorded.event.raw_sha256)),
        }
        for recorded in view.workspace.ledger.read(correlation_id=run.run_id, types=(ProfileCaptured.TYPE,))
        if holds(recorded, ProfileCaptured)
    ]
    return without_hidden_of(view.workspace, [run], {"items": found, "next": None, "seq": view.head.seq})


def candidate_document(view: View, caller: Caller, digest: str) -> Data:
    """Return a candidate: its files, who submitted it and what was found.

    Raises NotFound if it was never submitted, or if the caller may not look into its runs.
    """
    run = run_of_candidate(view, caller, digest)
    return _described(view, run)


def whole_candidate(view: View, caller: Caller, digest: str) -> tuple[Data, dict[str, str], RunState]:
    """Return a candidate, the text of its files by name, and its run; raise NotFound."""
    run = run_of_candidate(view, caller, digest)
    assert run.submitted is not None
    texts = {
        file.path: view.workspace.blobs.get(file.sha256).decode(errors="replace")
        for file in run.submitted.event.files.files
    }
    return _described(view, run), texts, run


def _described(view: View, run: RunState) -> Data:
    assert run.submitted is not None
    event = run.submitted.event
    found: Data = {
        **event.model_dump(mode="json"),
        "files": [file.model_dump(mode="json") for file in event.files.files],
        "entry_point": event.files.entry_point,
        "submitted_at": run.submitted.recorded_at,
        "submitted_by": run.submitted.actor,
        "state": run.state,
        "gates": _gates(run),
    }
    return without_hidden_of(view.workspace, [run], found)


def _gates(run: RunState) -> list[Data]:
    judged = run.rejection or run.verified
    return [] if judged is None else [gate.model_dump(mode="json") for gate in judged.event.gates]


def candidate_file(view: View, caller: Caller, digest: str, name: str) -> str:
    """Return the text of one of a candidate's files; raise NotFound."""
    run = run_of_candidate(view, caller, digest)
    assert run.submitted is not None
    found = next((file for file in run.submitted.event.files.files if file.path == name), None)
    if found is None:
        names = ", ".join(file.path for file in run.submitted.event.files.files)
        raise NotFound(f"candidate {digest[:12]} has no file {name[:100]!r}: expected one of {names}")
    return view.workspace.blobs.get(found.sha256).decode(errors="replace")


def run_of_candidate(view: View, caller: Caller, digest: str) -> RunState:
    """Return the newest run of a candidate that the caller may look into; raise NotFound.

    The same bytes may have been submitted again, in a run that isn't decided: an earlier run still shows them.
    """
    names: list[str] = []
    if DIGEST.fullmatch(digest):
        with view.workspace.publication.tables() as history:
            names = [name for (name,) in history.execute(RUNS_OF_CANDIDATE, (digest,))]
    for name in names:
        run = run_state(view.workspace.ledger, name)
        is_it = run.submitted is not None and run.submitted.event.candidate == digest
        if is_it and may_look_into(caller, run):
            task_of(run)
            return run
    missing, hint = f"no candidate {digest[:80]!r}: expected the whole digest of one", "forge run list"
    if names:  # the caller is told the same, and may not know of it
        raise NotShown(missing, caller=caller, hint=hint)
    raise NotFound(missing, hint=hint)
