"""What a coding agent asks besides the documents: where its run stands, how it ended, and what it has used."""

from forge.app.access.tokens import Caller
from forge.app.audit.answer import named_rows
from forge.app.desk.permits import DECIDED
from forge.app.desk.runs import run_document
from forge.app.desk.view import View
from forge.projections.run_lookup import run_state
from forge.projections.runs import RunState

Data = dict[str, object]
HANDED_IN = """
    SELECT runs.state, count(*) AS runs FROM candidates JOIN runs USING (run_id)
    WHERE candidates.actor = :actor AND (:task IS NULL OR candidates.task_id = :task) GROUP BY runs.state
"""


def progress(view: View, name: str) -> Data:
    """Return where a run stands: its state, whether a worker is still asked, and whether anything is to wait for."""
    return _progress(view.workspace.find_run(name))


def progress_since(view: View, run_id: str, seen: int) -> tuple[int, Data | None]:
    """Return the ledger's head, and where a run stands if it has an event after `seen`, else None.

    A run whose ledger hasn't grown isn't read at all; one without a new event of its own isn't folded.
    """
    head, ledger = view.head.seq, view.workspace.ledger
    has_grown = head != seen
    if head > seen:
        has_grown = next(ledger.rows(after_seq=seen, correlation_id=run_id, limit=1), None) is not None
    return head, _progress(run_state(ledger, run_id)) if has_grown else None


def _progress(run: RunState) -> Data:
    return {
        "run_id": run.run_id,
        "state": run.state,
        "seq": run.last_seq,
        "requested": None if run.request is None else run.request.event.until,
        "ended": run.state in DECIDED,
        "waiting": run.request is not None,
        "following": _following(run),
    }


def _following(run: RunState) -> str:
    """Return the tool to call next."""
    if run.request is not None:
        return "wait"
    return "counterexample" if run.state == "rejected" else "result"


def result(view: View, caller: Caller, name: str) -> Data:
    """Return how a run ended: the verdict of each phase, its reason, and the speedups."""
    run = run_document(view, caller, name)
    phases = run["phases"]
    assert isinstance(phases, dict)
    short = {phase: None if answer is None else _shortened(answer) for phase, answer in phases.items()}
    wanted = (
        "run_id",
        "task_id",
        "state",
        "simulated",
        "candidate",
        "reason",
        "kernel_id",
        "request",
        "error",
        "shown",
    )
    return {**{field: run[field] for field in wanted}, "phases": short}


def _shortened(answer: Data) -> Data:
    """Return a phase's answer without what is long: gates by name, and the comparisons of a benchmark."""
    gates = answer.get("gates")
    listed = gates if isinstance(gates, list) else []
    found: Data = {"verdict": answer.get("verdict"), "reason": answer.get("reason")}
    if listed:
        found["gates"] = {str(one["name"]): one["verdict"] for one in listed}
        found["not_passed"] = [one for one in listed if one["verdict"] != "passed"][:3]
    for field in ("workloads", "timing", "speedups", "comparisons"):
        if field in answer:
            found[field] = answer[field]
    return found


def used(view: View, caller: Caller, task: str | None) -> Data:
    """Return how many candidates the caller has submitted, by the state of their runs."""
    actor = caller.actor if caller.scope != "reader" else ""
    with view.workspace.publication.tables() as history:
        found = {
            str(one["state"]): one["runs"] for one in named_rows(history, HANDED_IN, {"actor": actor, "task": task})
        }
    total = sum(int(str(count)) for count in found.values())
    return {"actor": actor or None, "task": task, "handed_in": total, "by_state": found}
