"""The content of each page, which is also its JSON: documents of `forge.app.desk`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from forge.app.access.tokens import Caller
from forge.app.desk import answers, comparing, history, kernels, runs, tasks
from forge.app.desk.desk import Desk
from forge.app.desk.paging import USUAL_ITEMS
from forge.app.desk.samples import samples_table
from forge.app.desk.view import View
from forge.errors import ForgeError, NotFound, RequestRefused

Data = dict[str, object]
FEW = 10
"""Number of newest items in a list of the overview: the page is read at a glance, and links to the whole list."""
NEWEST_EVENTS = 50
"""Number of events on one page of the ledger, which links to the pages beside it. Chosen; a larger page takes longer
to make and to read."""


@dataclass(frozen=True)
class PageQuestion:
    """What a page is asked: by whom, the names in its address, and its query."""

    desk: Desk
    view: View
    caller: Caller
    named: Mapping[str, str]
    query: Mapping[str, str]

    def get(self, name: str) -> str | None:
        """Return a field of the query; None if it is missing or empty."""
        return self.query.get(name) or None


def overview(asked: PageQuestion) -> Data:
    """Return how much there is of everything, and what is newest."""
    view = asked.view
    return {
        "state": answers.state(view),
        "work": answers.requests(view)["items"],
        "runs": runs.all_runs(view, asked.caller, limit=FEW)["items"],
        "kernels": kernels.all_kernels(view, status="active", limit=FEW)["items"],
    }


def all_tasks(asked: PageQuestion) -> Data:
    """Return a page of tasks."""
    filters = {name: asked.get(name) for name in ("op", "gpu", "language")}
    found = tasks.all_tasks(asked.view, **filters, after=asked.get("after"), limit=USUAL_ITEMS)
    return {"tasks": found, "filters": filters}


def task(asked: PageQuestion) -> Data:
    """Return a task with its brief and its newest runs."""
    found = tasks.task_document(asked.view, asked.named["name"])
    try:
        brief = tasks.task_brief(asked.view, str(found["task_id"]))["brief"]
    except NotFound:
        brief = None
    listed = runs.all_runs(asked.view, asked.caller, task=str(found["task_id"]), limit=USUAL_ITEMS)
    return {"task": found, "brief": brief, "runs": listed["items"]}


def run(asked: PageQuestion) -> Data:
    """Return a run: phases, gates, and why it was refused."""
    found = runs.run_document(asked.view, asked.caller, asked.named["name"])
    why = None
    if found["shown"] and found["state"] == "rejected":
        why = runs.counterexample(asked.view, asked.caller, str(found["run_id"]))
    return {"run": found, "why": why, "head": asked.view.head.seq}


def candidate(asked: PageQuestion) -> Data:
    """Return a candidate with the text of its files."""
    found, texts, state = runs.whole_candidate(asked.view, asked.caller, asked.named["name"])
    why = None
    if state.rejection is not None:
        why = runs.counterexample(asked.view, asked.caller, state.run_id)
    return {"candidate": found, "texts": texts, "why": why}


def kernel(asked: PageQuestion) -> Data:
    """Return a kernel with its evidence, its measurements, the experiments on its operation, and its proof."""
    view, name = asked.view, asked.named["name"]
    entry = kernels.kernel_document(view, name)
    slot = {"op": str(entry["op"]), "gpu": str(entry["target_gpu"])}
    measured = answers.audit(view, "history", {"kernel": name}, limit=USUAL_ITEMS)
    tried = answers.experiments(view, **slot, ended=None, text=None, limit=FEW)
    try:
        proof = {"proof": kernels.kernel_proof(view, name), "key": kernels.verifier_key(view)}
    except NotFound as error:
        proof = {"proof": None, "key": None, "why": error.message}
    return {
        "kernel": entry,
        "source": kernels.kernel_file(view, name, "kernel.py"),
        "measured": measured,
        "samples": samples_table(view, name),
        "roofline": comparing.roofline_rows(view, slot["gpu"], slot["op"]),
        "experiments": tried["rows"],
        "proof": proof,
    }


def leaderboard(asked: PageQuestion) -> Data:
    """Return the speedups of each slot, and the kernels."""
    filters = {name: asked.get(name) for name in ("op", "gpu", "dtype", "status")}
    board = answers.leaderboard(
        asked.view, wanted={"op": filters["op"], "gpu": filters["gpu"], "dtype": filters["dtype"]}, baseline=None
    )
    listed = kernels.all_kernels(asked.view, **filters, after=asked.get("after"), limit=USUAL_ITEMS)
    return {"board": board, "kernels": listed, "filters": filters}


def compare(asked: PageQuestion) -> Data:
    """Return what differs between two kernels, if two are named."""
    a, b = asked.get("a"), asked.get("b")
    found = comparing.compare_kernels(asked.view, a, b) if a and b else None
    listed = kernels.all_kernels(asked.view, limit=USUAL_ITEMS)["items"]
    assert isinstance(listed, list)
    return {"a": a, "b": b, "compared": found, "kernels": [one["kernel_id"] for one in listed]}


def recommendation(asked: PageQuestion) -> Data:
    """Return ranked deployments, if a model is named."""
    fields = {name: asked.get(name) for name in ("model", "workload", "priority", "gpu")}
    if fields["model"] is None:
        return {"asked": fields, "answer": None, "refused": None}
    constraints: Data = {"max_gpus": 8} | ({} if fields["gpu"] is None else {"gpus": [fields["gpu"]]})
    aims = {"workload": fields["workload"] or "chat", "priority": fields["priority"] or "balanced"}
    try:
        found = answers.recommendation(
            asked.view, models=[fields["model"]], asked={**aims, "constraints": constraints}, prices=[]
        )
    except ForgeError as error:
        return {"asked": fields, "answer": None, "refused": error.message}
    return {"asked": fields, "answer": found, "refused": None}


def experiments(asked: PageQuestion) -> Data:
    """Return what was tried, and the lessons."""
    filters = {name: asked.get(name) for name in ("op", "gpu", "ended", "text")}
    found = answers.experiments(asked.view, **filters, limit=USUAL_ITEMS)
    return {"experiments": found, "lessons": answers.all_lessons(asked.view)["items"], "filters": filters}


def sessions(asked: PageQuestion) -> Data:
    """Return the sessions with what is used and left of their budgets."""
    return {"sessions": answers.all_sessions(asked.view, asked.caller)["items"]}


def machines(asked: PageQuestion) -> Data:
    """Return the machines and their measured ceilings."""
    return {"machines": answers.machines(asked.view)["items"]}


def ledger(asked: PageQuestion) -> Data:
    """Return a page of events, the checkpoint, and what the last check found."""
    start = asked.get("from")
    first = _seq(start) if start is not None else max(1, asked.view.head.seq - NEWEST_EVENTS + 1)
    listed = history.events_after(asked.view, asked.caller, first - 1, limit=NEWEST_EVENTS)
    try:
        signed = history.checkpoint(asked.view)
    except NotFound:
        signed = None
    head = asked.view.head.seq
    return {
        "events": listed,
        "first": first,
        "earlier": max(1, first - NEWEST_EVENTS) if first > 1 else None,
        "later": first + NEWEST_EVENTS if first + NEWEST_EVENTS <= head else None,
        "head": head,
        "checkpoint": signed,
        "check": asked.desk.last_check,
    }


def event(asked: PageQuestion) -> Data:
    """Return one event with its place in the chain, and the proof that it is in the tree."""
    seq = _seq(asked.named["name"])
    found = history.event_document(asked.view, asked.caller, seq)
    return {
        "event": found,
        "inclusion": history.inclusion(asked.view, seq=seq, size=None),
        "head": asked.view.head.seq,
    }


def help_page(_: PageQuestion) -> Data:
    """Return nothing: the page explains itself."""
    return {}


def _seq(untrusted_text: str) -> int:
    if not (untrusted_text.isascii() and untrusted_text.isdecimal() and len(untrusted_text) <= 12):
        raise NotFound(f"no event {untrusted_text[:40]!r}: expected a number")
    return int(untrusted_text)


@dataclass(frozen=True)
class PageKind:
    """A page: its address, its template, what it shows, and the fields of its query."""

    path: str
    template: str
    title: str
    content: Callable[[PageQuestion], Data]
    fields: tuple[str, ...] = ()
    slow: bool = False


PAGES: tuple[PageKind, ...] = (
    PageKind("/", "overview", "Overview", overview),
    PageKind("/tasks", "tasks", "Tasks", all_tasks, ("op", "gpu", "language", "after")),
    PageKind("/tasks/{name}", "task", "Task", task),
    PageKind("/runs/{name}", "run", "Run", run),
    PageKind("/candidates/{name}", "candidate", "Candidate", candidate),
    PageKind("/kernels/{name}", "kernel", "Kernel", kernel),
    PageKind("/leaderboard", "leaderboard", "Leaderboard", leaderboard, ("op", "gpu", "dtype", "status", "after")),
    PageKind("/compare", "compare", "Compare", compare, ("a", "b")),
    PageKind("/recommend", "recommend", "Recommend", recommendation, ("model", "workload", "priority", "gpu")),
    PageKind("/experiments", "experiments", "Experiments", experiments, ("op", "gpu", "ended", "text")),
    PageKind("/sessions", "sessions", "Sessions", sessions, (), slow=True),
    PageKind("/machines", "machines", "Machines", machines),
    PageKind("/ledger", "ledger", "Ledger", ledger, ("from",)),
    PageKind("/ledger/{name}", "event", "Event", event),
    PageKind("/help", "help", "Help", help_page),
)
"""Pages by their addresses. `/ledger/{name}` is the explorer's view of one event."""


def require_fields(page: PageKind, query: Mapping[str, str]) -> None:
    """Raise RequestRefused for a field that the page doesn't take, or one that is too long."""
    for name, value in query.items():
        if name not in page.fields:
            expected = f"expected of {', '.join(page.fields)}" if page.fields else "it takes none"
            raise RequestRefused(f"{name[:100]!r}: this page doesn't take it; {expected}", status=422)
        if len(value) > 500:
            raise RequestRefused(f"{name}: expected at most 500 characters", status=422)
