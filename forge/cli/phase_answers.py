"""Runs one phase of a run, and returns its answer; says so if the answer was recorded before."""

import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from forge.cli.output import say
from forge.cli.progress import Report, reporting

if TYPE_CHECKING:
    from forge.app.workspace import Workspace
    from forge.projections.runs import RunState

Answer = dict[str, Any]  # Any: a JSON document, taken apart for people


@contextmanager
def _told_if_recorded(workspace: "Workspace", phase: str) -> Iterator[None]:
    """Say so if the phase recorded nothing, because its answer is already in the ledger."""
    before = workspace.ledger.recorded_seq
    yield
    if workspace.ledger.recorded_seq == before:
        say(f"{phase}: recorded already; this is the recorded answer")


@contextmanager
def _timed_phase(
    workspace: "Workspace", run: "RunState", phase: str, steps: Sequence[str]
) -> Iterator[tuple[Report, Callable[[Answer], Answer]]]:
    """Report a phase's progress with an estimate from earlier ones.

    Yield the report, and a function that takes the phase's answer, remembers how long it took and returns it.
    """
    from forge.app.machine.terminal import Stopwatch
    from forge.app.phases.durations import FILE, Durations, Subject
    from forge.app.runs.states import task_of

    task, watch = task_of(run), Stopwatch()
    subject = Subject(op=task.op, language=task.language, gpu=task.target.gpu)
    earlier = Durations(workspace.runs_root / FILE, phase, subject, watch.seconds)

    def ended(answer: Answer) -> Answer:
        earlier.keep(passed=answer["verdict"] == "accepted")
        return answer

    with reporting(phase, steps, watch, earlier) as progress:
        yield progress, ended


def submit_answer(workspace: "Workspace", run: str, directory: Path, author: str | None) -> Answer:
    """Offer a folder to a run."""
    from forge.app.phases import phases
    from forge.app.phases.phase_answer import phase_answer

    with _told_if_recorded(workspace, "submit"):
        event = phases.submit_candidate(workspace, workspace.find_run(run), directory, author=author)
    return phase_answer(event, workspace=workspace)


def verify_answer(workspace: "Workspace", run: str, *, again: bool) -> Answer:
    """Let the lab judge a run's candidate, and show its progress."""
    from forge.app.phases import phases
    from forge.app.phases.phase_answer import phase_answer
    from forge.app.runs import states
    from forge.lab.gates import GATES

    state = states.finish_phase(workspace, workspace.find_run(run))
    with _timed_phase(workspace, state, "verify", [gate.name for gate in GATES]) as (progress, ended):
        with _told_if_recorded(workspace, "verify"):
            event = phases.verify_candidate(workspace, state, progress=progress, again=again)
        return ended(phase_answer(event, workspace=workspace))


def bench_answers(workspace: "Workspace", run: str, *, attempts: int) -> Answer:
    """Let the lab time a run's candidate, again while an attempt ends without a verdict; return the last answer.

    The samples of all attempts count together. An attempt that spoils those after it is the last.
    """
    from forge.app.stored.run_summary import next_of

    for number in range(1, attempts):
        answer = bench_answer(workspace, run)
        state = workspace.find_run(run)
        if answer["verdict"] != "inconclusive" or next_of(state) != f"forge bench {state.run_id}":
            return answer
        say(f"bench: no verdict in attempt {number} of {attempts} ({answer['reason']['code']}); measuring again")
    return bench_answer(workspace, run)


def bench_answer(workspace: "Workspace", run: str) -> Answer:
    """Let the lab time a run's candidate and show its progress; return the answer for the terminal."""
    from forge.app.phases import phases
    from forge.app.phases.phase_answer import phase_answer
    from forge.app.runs import states

    state = states.finish_phase(workspace, workspace.find_run(run))
    with _timed_phase(workspace, state, "bench", ()) as (progress, ended):
        with _told_if_recorded(workspace, "bench"):
            event = phases.benchmark_candidate(workspace, state, progress=progress)
        return ended(phase_answer(event, workspace=workspace))


def promote_answer(workspace: "Workspace", run: str) -> Answer:
    """Decide on a run's evidence; the answer says whether a checkpoint covers the decision."""
    from forge.app.phases import phases
    from forge.app.phases.phase_answer import phase_answer
    from forge.app.runs import states

    state = states.finish_phase(workspace, workspace.find_run(run))
    with _told_if_recorded(workspace, "promote"):
        event = phases.promote_candidate(workspace, state)
    answer = phase_answer(event, workspace=workspace)
    sealed = workspace.find_run(state.run_id).end
    assert sealed is not None
    return answer | {"seq": sealed.seq, "signed_size": workspace.signed_size(sealed.seq)}


def next_command(workspace: "Workspace", run: str, folder: Path | None = None) -> str:
    """Return the command that continues a run; at its end, the one that shows it.

    A run whose `folder` was refused before it was stored waits for that folder again. What an interpreter accepted
    can't go on, so its task needs a run on a machine with the target.
    """
    from forge.app.stored.run_summary import run_summary

    summary = run_summary(workspace.find_run(run))
    if summary["state"] == "prompt_ready" and folder is not None:
        return shlex.join(("forge", "pipeline", str(summary["run_id"]), str(folder)))
    if summary["state"] == "verified" and summary["simulated"]:
        return f"forge run open {summary['task_id']}"
    following = summary["next"]
    return str(following) if following else f"forge run show {summary['run_id']}"
