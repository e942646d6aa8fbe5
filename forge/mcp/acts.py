"""What each tool does, by the functions of `forge.app.desk`. A tool's description is its docstring.

What a tool needs is imported when it is called: a client waits for the list of tools, and asks the desk later.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from forge.mcp import forms
from forge.mcp.fitting import Fitted, fitted, part
from forge.mcp.recommendation_address import recommendation_address

if TYPE_CHECKING:
    from forge.app.access.tokens import Caller
    from forge.app.desk.desk import Desk
    from forge.app.desk.view import View

Data = dict[str, object]
Answered = TypeVar("Answered")
Report = Callable[[float, str], Awaitable[None]]
LOOK_S = 0.25
"""Time between two looks at a run that is waited for, in seconds. Chosen; a shorter time asks the ledger more often,
a longer one delays the answer."""
NAMES = ("task", "run", "kernel", "session")
"""Arguments that are names of something recorded."""
LISTED_TASKS = 20
"""Number of tasks that one answer lists. Chosen; an agent pays for each line, and may ask for the next ones."""


@dataclass(frozen=True)
class Asking:
    """One call of a tool: who calls, and how progress is reported."""

    desk: "Desk"
    caller: "Caller"
    report: Report
    asked: forms.ToolForm

    async def read(self, asked: "Callable[[View], Answered]") -> Answered:
        """Ask the desk; an error about a missing name says what that name is."""
        from forge.app.desk.wrong_kind import explained

        names = [one for one in (getattr(self.asked, field, None) for field in NAMES) if one is not None]
        return await asyncio.wrap_future(
            self.desk.read(lambda view: explained(view, self.caller, names, lambda: asked(view)))
        )


async def task_list(call: Asking, asked: forms.TaskListForm) -> Fitted:
    """List tasks that want a kernel, the newest first."""
    from forge.app.desk import tasks

    limit = LISTED_TASKS
    while True:
        found = await call.read(
            partial(
                tasks.all_tasks,
                op=asked.op,
                gpu=asked.gpu,
                language=asked.language,
                after=asked.after,
                limit=limit,
            )
        )
        answer = fitted(found, whole_at=None)
        if "cut" not in answer.document or limit == 1:
            return answer
        limit //= 2  # `next` leads to what is left out


async def task_brief(call: Asking, asked: forms.BriefForm) -> Fitted:
    """Read the brief of a task: what the kernel computes, in which files, and how it is judged."""
    from forge.app.desk import tasks

    found = await call.read(lambda view: tasks.task_brief(view, asked.task))
    shown = part(str(found["brief"]), asked.offset)
    return Fitted({"task_id": found["task_id"], **shown}, f"forge://task/{found['task_id']}")


async def submit(call: Asking, asked: forms.SubmitForm) -> Fitted:
    """Submit a candidate. It answers at once with a run_id; then call wait."""
    from forge.app.desk import changes

    found = await asyncio.wrap_future(
        call.desk.write(
            call.caller,
            lambda workspace: changes.submit(
                workspace,
                call.caller,
                task=asked.task,
                untrusted_files=asked.files,
                until=asked.until,
                key=asked.key,
            ),
        )
    )
    following = "wait" if found["verdict"] == "accepted" else "submit"
    return fitted({**found, "following": following}, whole_at=None)


async def wait(call: Asking, asked: forms.WaitForm) -> Fitted:
    """Wait at most 45 s until a run is decided. While `waiting` is true, call wait again."""
    call.desk.waiting.require(call.caller)
    with call.desk.waiting.taken(call.caller):
        return await _waited_for(call, asked)


async def _waited_for(call: Asking, asked: forms.WaitForm) -> Fitted:
    from forge.app.desk import agents

    loop = asyncio.get_running_loop()
    began = loop.time()
    found = await call.read(lambda view: agents.progress(view, asked.run))
    run_id, seen = str(found["run_id"]), int(str(found["seq"]))
    await call.report(0.0, f"the run is {found['state']}")
    while found["waiting"] and (left := asked.seconds - (loop.time() - began)) > 0:
        await asyncio.sleep(min(LOOK_S, left))
        seen, later = await call.read(partial(agents.progress_since, run_id=run_id, seen=seen))
        if later is not None:
            found = later
            await call.report(loop.time() - began, f"the run is {found['state']}")
    return fitted({**found, "waited_s": round(loop.time() - began, 1)}, whole_at=None)


async def result(call: Asking, asked: forms.RunForm) -> Fitted:
    """Read how a run ended: gates, reason, speedups, kernel id."""
    from forge.app.desk import agents

    found = await call.read(lambda view: agents.result(view, call.caller, asked.run))
    whole_at = f"forge://candidate/{found['candidate']}" if found["candidate"] else None
    return fitted(found, whole_at=whole_at)


async def counterexample(call: Asking, asked: forms.RunForm) -> Fitted:
    """Read why a candidate was refused: the wrong element, the input, the log, and the line to fix."""
    from forge.app.desk import runs

    found = await call.read(lambda view: runs.counterexample(view, call.caller, asked.run))
    return fitted(found, whole_at=f"forge://candidate/{found['candidate']}")


async def kernel_lookup(call: Asking, asked: forms.LookupForm) -> Fitted:
    """Find a promoted kernel for an operation, processor, dtype and shape."""
    from forge.app.desk import answers
    from forge.app.kernels.lookup_answer import UntrustedSlot

    slot = UntrustedSlot(asked.op, asked.gpu, asked.dtype, asked.shape)
    found = await call.read(lambda view: answers.lookup(view, slot, nearest=asked.nearest))
    return fitted(found, whole_at=f"forge://kernel/{found['kernel_id']}" if found["kernel_id"] else None)


async def kernel_source(call: Asking, asked: forms.SourceForm) -> Fitted:
    """Read a file of a promoted kernel."""
    from forge.app.desk import kernels

    text = await call.read(lambda view: kernels.kernel_file(view, asked.kernel, asked.file))
    shown = part(text, asked.offset)
    return Fitted(
        {"kernel": asked.kernel, "file": asked.file, **shown}, f"forge://kernel/{asked.kernel}/{asked.file}"
    )


async def notes(call: Asking, asked: forms.NotesForm) -> Fitted:
    """Read what was tried for an operation, failures included, before you write."""
    from forge.app.desk import answers

    found = await call.read(lambda view: answers.notes(view, op=asked.op, gpu=asked.gpu))
    return fitted(found, whole_at=f"forge://notes/{found['op']}")


async def recommend(call: Asking, asked: forms.RecommendForm) -> Fitted:
    """Rank deployments of a model, with the kernels that could help."""
    from forge.app.desk import answers

    constraints: Data = {"max_gpus": asked.max_gpus}
    if asked.gpu is not None:
        constraints["gpus"] = [asked.gpu]
    aims = {"workload": asked.workload, "priority": asked.priority, "constraints": constraints}
    whole_at = recommendation_address(
        asked.model, workload=asked.workload, priority=asked.priority, max_gpus=asked.max_gpus, gpu=asked.gpu
    )
    return fitted(
        await call.read(lambda view: answers.recommendation(view, models=[asked.model], asked=aims, prices=[])),
        whole_at=whole_at,
    )


async def budget(call: Asking, asked: forms.BudgetForm) -> Fitted:
    """Read how many candidates you have submitted, or what is left of a session's budget."""
    from forge.app.desk import agents, answers

    if asked.session is not None:
        name = asked.session
        return fitted(await call.read(lambda view: answers.session(view, call.caller, name)), whole_at=None)
    return fitted(await call.read(lambda view: agents.used(view, call.caller, asked.task)), whole_at=None)
