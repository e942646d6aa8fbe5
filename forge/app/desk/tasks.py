"""Tasks and their briefs, as documents."""

import orjson

from forge.app.audit.answer import named_rows
from forge.app.desk.paging import page, parse_cursor
from forge.app.desk.view import View
from forge.app.tasks.known_tasks import find_task
from forge.errors import NotFound, UsageError
from forge.events import PromptRendered, TaskCreated
from forge.projections.fold import holds

Data = dict[str, object]
LISTED = """
    SELECT task_id, op, gpu, dtype, language, shape, seq, recorded_at AS created_at,
           (SELECT count(*) FROM runs WHERE runs.task_id = tasks.task_id) AS runs,
           (SELECT count(*) FROM kernels WHERE kernels.task_id = tasks.task_id AND status = 'active') AS active
    FROM tasks
    WHERE (:before IS NULL OR seq < :before) AND (:op IS NULL OR op = :op) AND (:gpu IS NULL OR gpu = :gpu)
      AND (:language IS NULL OR language = :language)
    ORDER BY seq DESC LIMIT :limit
"""
RUN_WITH_BRIEF = """
    SELECT run_id, prompt_seq FROM runs WHERE task_id = ? AND prompt_seq IS NOT NULL
    ORDER BY started_seq DESC LIMIT 1
"""


def all_tasks(
    view: View,
    *,
    op: str | None = None,
    gpu: str | None = None,
    language: str | None = None,
    after: str | None = None,
    limit: int,
) -> Data:
    """Return a page of tasks, the newest first.

    `limit` is the largest number of tasks.
    """
    before = parse_cursor(view, after)
    asked = {"before": before, "op": op, "gpu": gpu, "language": language, "limit": limit + 1}
    with view.workspace.publication.tables() as history:
        found = [one | {"shape": orjson.loads(str(one["shape"]))} for one in named_rows(history, LISTED, asked)]
    return page(found, limit=limit, view=view, seq_of=lambda one: int(str(one["seq"])))


def task_document(view: View, name: str) -> Data:
    """Return a task: what is asked for, what it was tried on, and the run whose brief is the newest."""
    created = _found(view, name)
    task = created.task
    with view.workspace.publication.tables() as history:
        newest = history.execute(RUN_WITH_BRIEF, (created.task_id,)).fetchone()
    return {
        "task_id": created.task_id,
        **task.model_dump(mode="json"),
        "admission": None if created.admission is None else created.admission.model_dump(mode="json"),
        "brief_run": None if newest is None else newest[0],
    }


def task_brief(view: View, name: str) -> Data:
    """Return the newest brief of a task, in Markdown; raise NotFound if no run of it has one."""
    created = _found(view, name)
    with view.workspace.publication.tables() as history:
        newest = history.execute(RUN_WITH_BRIEF, (created.task_id,)).fetchone()
    rendered = None if newest is None else next(view.workspace.ledger.read(after_seq=newest[1] - 1, limit=1), None)
    if not holds(rendered, PromptRendered):
        raise NotFound(
            f"task {created.task_id!r} has no brief: expected one with a run",
            hint=f"forge run open {created.task_id}",
        )
    text = view.workspace.blobs.get(rendered.event.rendered_sha256).decode()
    return {"task_id": created.task_id, "run_id": rendered.event.run_id, "seq": rendered.seq, "brief": text}


def _found(view: View, name: str) -> TaskCreated:
    """Return a task by its id; a task's stream has its id, so only that stream is read."""
    own = next(view.workspace.ledger.read(stream=f"task:{name}", types=(TaskCreated.TYPE,)), None)
    if holds(own, TaskCreated):
        return own.event
    try:
        return find_task(view.workspace, name)
    except UsageError as error:
        raise NotFound(error.message, hint=error.hint) from error
