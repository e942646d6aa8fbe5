"""Answers over the whole history as documents: lookup, recommendation, audits, notes, lessons, sessions, machines."""

from collections.abc import Callable, Mapping
from typing import TypeVar, get_args

import orjson

from forge import __version__
from forge.app.access.tokens import Caller
from forge.app.audit import authors, evidence, histories, replication, rooflines, speed, stale_evidence
from forge.app.audit.answer import Answer, Filter, named_rows
from forge.app.audit.authors import EffectBy, RefusedBy
from forge.app.desk.session_figures import told_summary
from forge.app.desk.view import View
from forge.app.desk.withheld import without_hidden_of_runs
from forge.app.kernels.lookup_answer import UntrustedSlot, look_up
from forge.app.lessons.lesson import described, lessons
from forge.app.lessons.notes import gather
from forge.app.plain_events import OfWorkspace
from forge.app.recommend import recommend
from forge.app.sessions import finding, report
from forge.app.work.requests import open_work, request_summary
from forge.errors import UnknownName, UsageError
from forge.events import DeviceCalibrated, WorkRequested
from forge.lookup import Policy
from forge.projections import experiment_lines, run_lines
from forge.projections.fold import holds
from forge.projections.run_lookup import run_state
from forge.projections.runs import RunsState

Data = dict[str, object]
One = TypeVar("One")
COUNTS: dict[str, str] = {
    "tasks": "SELECT count(*) FROM tasks",
    "runs": "SELECT count(*) FROM runs",
    "candidates": "SELECT count(*) FROM candidates",
    "refused": "SELECT count(*) FROM rejections",
    "kernels": "SELECT count(*) FROM kernels",
    "active_kernels": "SELECT count(*) FROM kernels WHERE status = 'active'",
}
"""Name of a figure of the overview -> the query that counts it."""
STATES = "SELECT state, count(*) AS runs FROM runs GROUP BY state ORDER BY runs DESC"
"""Query for the number of runs by state."""
MACHINES = (
    "SELECT env_sha256, perf_key, abi_key, gpu, gpu_arch, driver, torch, triton, seq FROM environments ORDER BY seq"
)
"""Query for every recorded environment, the oldest first."""
IS_OPEN = "SELECT 1 FROM runs WHERE run_id = ? AND state IN ('candidate_ready', 'verified', 'benchmarked')"
"""Query that finds a run if it has a candidate and hasn't ended."""
SLOWER = 1.05
"""Ratio of two times above which a kernel counts as slower than before, as `forge audit regressions` has it."""


def state(view: View) -> Data:
    """Return how much there is of everything, and where the ledger is."""
    with view.workspace.publication.tables() as history:
        counts = {name: history.execute(query).fetchone()[0] for name, query in COUNTS.items()}
        states = {str(one["state"]): one["runs"] for one in named_rows(history, STATES, {})}
    return {
        "forge_version": __version__,
        "ledger_id": view.workspace.ledger.ledger_id,
        "seq": view.head.seq,
        "event_hash": view.head.event_hash,
        "events": view.head.seq,
        **counts,
        "runs_by_state": states,
    }


def requests(view: View) -> Data:
    """Return the requests for work that no worker has answered, the oldest first."""
    asked = dict.fromkeys(
        recorded.event.run_id
        for recorded in view.workspace.ledger.read(types=(WorkRequested.TYPE,))
        if holds(recorded, WorkRequested)
    )
    with view.workspace.publication.tables() as history:
        names = [name for name in asked if history.execute(IS_OPEN, (name,)).fetchone() is not None]
    found = {name: run_state(view.workspace.ledger, name) for name in names}
    items = [request_summary(run) for run in open_work(RunsState(runs=found))]
    return {"items": items, "next": None, "seq": view.head.seq}


def lookup(view: View, untrusted: UntrustedSlot, *, nearest: bool = False, deprecated: bool = False) -> Data:
    """Return the kernel that the published registry answers with, and why it doesn't return others."""
    policy = Policy(shape="nearest" if nearest else "between", deprecated=deprecated)
    found = look_up(view.workspace.home, untrusted, policy=policy)
    return {name: value for name, value in found.items() if name != "source"}


def recommendation(view: View, *, models: list[str], asked: Mapping[str, object], prices: list[str]) -> Data:
    """Return ranked deployments of a model, or a comparison of several."""
    return recommend(view.workspace.home, models=models, asked=asked, prices=prices)


def experiments(
    view: View, *, op: str | None, gpu: str | None, ended: str | None, text: str | None, limit: int
) -> Data:
    """Return what was tried and what it showed, the newest first.

    `limit` is the largest number of experiments.
    """

    def ask() -> Data:
        found = authors.experiments(
            view.published, text=text, ended=ended, limit=limit, wanted={"op": op, "gpu": gpu}
        )
        return without_hidden_of_runs(view.workspace, found.document() | {"title": found.title})

    if text is not None:  # there are too many texts to keep an answer for each
        return ask()
    return view.kept(f"experiments {op} {gpu} {ended} {limit}", TRYING, ask)


def all_lessons(view: View) -> Data:
    """Return every lesson, in the order of their proposals."""
    items = [described(one) for one in lessons(view.workspace)]
    return without_hidden_of_runs(view.workspace, {"items": items, "next": None, "seq": view.head.seq})


def notes(view: View, *, op: str, gpu: str | None) -> Data:
    """Return everything that is recorded about an operation."""
    return without_hidden_of_runs(view.workspace, gather(OfWorkspace(view.published), op=op, gpu=gpu))


def leaderboard(view: View, *, wanted: dict[Filter, str | None], baseline: str | None) -> Data:
    """Return worst, typical and best speedup for each slot and baseline."""

    def ask() -> Data:
        found = speed.leaderboard(view.published, baseline=baseline, wanted=wanted)
        return found.document() | {"title": found.title}

    return view.kept(f"leaderboard {baseline} {sorted(wanted.items())}", RANKING, ask)


def all_sessions(view: View, caller: Caller) -> Data:
    """Return every session of an author in a budget, the newest first."""
    known = reversed(finding.all_sessions(view.workspace))
    found = [told_summary(view.workspace, caller, one) for one in known]
    return {"items": found, "next": None, "seq": view.head.seq}


def session(view: View, caller: Caller, name: str) -> Data:
    """Return a session: where it stands, and what its budget went into; raise SessionNotFound."""
    found = finding.find_session(view.workspace, name)
    return told_summary(view.workspace, caller, found) | {"cost": report.cost_of(found)}


def machines(view: View) -> Data:
    """Return the machines as they were first described, with their newest measured ceilings."""
    with view.workspace.publication.tables() as history:
        found = named_rows(history, MACHINES, {})
    ceilings = {}
    for recorded in view.workspace.ledger.read(types=(DeviceCalibrated.TYPE,)):
        if holds(recorded, DeviceCalibrated):
            measured = recorded.event.ceilings.model_dump(mode="json")
            ceilings[recorded.event.perf_key] = {"seq": recorded.seq, "recorded_at": recorded.recorded_at, **measured}
    items = [one | {"ceilings": ceilings.get(str(one["perf_key"]))} for one in found]
    return {"items": items, "next": None, "seq": view.head.seq}


RANKING = (
    "BenchmarkFailed", "BenchmarkInvalidated", "BenchmarkRecorded", "CandidateSubmitted", "KernelDeprecated",
    "KernelPromoted", "KernelRevoked", "PromotionDenied", "ReplicationRecorded", "RunAborted", "ShapeTimed",
)  # fmt: skip
"""Types of events that can change a leaderboard."""

TRYING = tuple(sorted(experiment_lines.TYPES | run_lines.TYPES | {"TaskCreated"}))
"""Types of events that can change what is told of experiments: those that the tables of runs and trials rest on."""


def audit(view: View, name: str, asked: Mapping[str, str], *, limit: int) -> Data:
    """Return the answer of a named audit; raise UnknownName, or UsageError for a field that it doesn't take."""
    audits = _audits(view, asked, limit)
    if name not in audits:
        raise UnknownName("audit", name, list(audits))
    taken, answer = audits[name]
    extra = sorted(set(asked) - set(taken))
    if extra:
        expected = f"expected of {', '.join(taken)}" if taken else "it takes none"
        raise UsageError(f"audit {name!r} doesn't take {', '.join(extra)}: {expected}")
    found = answer()
    document = {"title": found.title, **found.document()}
    promotion = document.get("promotion")
    if isinstance(promotion, dict):  # its rows are of the same run
        document["run_id"] = promotion["run_id"]
    return without_hidden_of_runs(view.workspace, document)


def _audits(
    view: View, asked: Mapping[str, str], limit: int
) -> dict[str, tuple[tuple[str, ...], Callable[[], Answer]]]:
    """Return audit -> the fields that it takes, and the function that answers it."""
    home, whole = view.published, OfWorkspace(view.published)
    wanted: dict[Filter, str | None] = {"op": asked.get("op"), "gpu": asked.get("gpu"), "dtype": asked.get("dtype")}
    slot = ("op", "gpu", "dtype")
    timed = {"kernel": asked.get("kernel"), **{str(name): value for name, value in wanted.items()}}
    return {
        "why": (("kernel",), lambda: evidence.why(whole, _required(asked, "kernel"))),
        "history": (("kernel", *slot), lambda: histories.history(whole, **timed, limit=limit)),
        "rejections": (
            ("by", *slot, "author"),
            lambda: authors.rejections(
                home, by=_refused_by(asked), limit=limit, wanted={**wanted, "author": asked.get("author")}
            ),
        ),
        "claims": ((), lambda: authors.claims(home, by="claimant")),
        "effectiveness": (
            ("by", *slot),
            lambda: authors.effectiveness(home, by=_effect_by(asked), wanted=wanted),
        ),
        "invalidated": ((), lambda: stale_evidence.invalidated(home)),
        "regressions": ((), lambda: speed.regressions(home, slower=SLOWER)),
        "replication": ((), lambda: replication.replication(whole)),
        "roofline": (
            slot,
            lambda: rooflines.roofline(
                whole, gpu=_required(asked, "gpu"), wanted={"op": wanted["op"], "dtype": wanted["dtype"]}
            ),
        ),
        "stale": (("days",), lambda: stale_evidence.stale(home, days=_days(asked), current="ledger")),
        "fast_p": (slot, lambda: speed.fast_p(home, levels=speed.FAST_LEVELS, wanted=wanted)),
    }


def _required(asked: Mapping[str, str], name: str) -> str:
    if name not in asked:
        raise UsageError(f"no {name}: expected {name}=VALUE")
    return asked[name]


def _refused_by(asked: Mapping[str, str]) -> RefusedBy:
    known: dict[str, RefusedBy] = {one: one for one in get_args(RefusedBy)}
    return _one_of(known, asked.get("by", "code"))


def _effect_by(asked: Mapping[str, str]) -> EffectBy:
    known: dict[str, EffectBy] = {one: one for one in get_args(EffectBy)}
    return _one_of(known, asked.get("by", "author"))


def _one_of(known: Mapping[str, One], name: str) -> One:
    if name not in known:
        raise UnknownName("grouping", name, list(known))
    return known[name]


def _days(asked: Mapping[str, str]) -> int:
    text = asked.get("days", "90")
    if not (text.isascii() and text.isdecimal() and len(text) <= 6):
        raise UsageError(f"bad days {text[:20]!r}: expected a whole number of at most 6 digits")
    return int(text)


def as_text(document: object) -> str:
    """Return a document as indented JSON."""
    return orjson.dumps(document, option=orjson.OPT_INDENT_2).decode()
