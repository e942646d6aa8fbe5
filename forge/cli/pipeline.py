"""pipeline: one or several folders through submit, verify, bench and promote, one after the other."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from forge.cli.opening import open_workspace
from forge.cli.options import Cluster, DeviceName, Home, JobsPerNode, Json, On, PlainNetwork, Quiet, Verbose
from forge.cli.output import emit_json, say
from forge.cli.phase_answers import bench_answer, next_command, promote_answer, submit_answer, verify_answer
from forge.cli.phases import Again, Author, leave, show
from forge.cli.pipeline_summary import finished, show_summary
from forge.cli.progress import tell_pace
from forge.cli.signing_notes import say_if_unsigned
from forge.cli.suggest import suggest

if TYPE_CHECKING:
    from forge.app.work.folder_runs import FolderRun, PipelineTarget
    from forge.app.workspace import Workspace

Answer = dict[str, Any]  # Any: a JSON document, taken apart for people
Folders = Annotated[list[Path], typer.Argument(metavar="DIR...", help="Folders with a candidate's five files each.")]
TargetName = Annotated[
    str,
    typer.Argument(
        metavar="TASK|RUN",
        help="A task's or a run's id, a unique beginning of it, or `last` for the newest run. One folder with a run "
        "is asked in this run; otherwise each folder gets a run of the task.",
    ),
]
Resume = Annotated[
    bool,
    typer.Option(
        "--resume",
        help="Go on after an interruption. A folder whose bytes have a run of this task is taken up where that run "
        "stopped. A folder that is decided isn't asked again.",
    ),
]


def pipeline(
    target: TargetName,
    folders: Folders,
    author: Author = None,
    again: Again = False,
    resume: Resume = False,
    device: DeviceName = None,
    _on: On = None,
    ray: Cluster = None,
    plain_network: PlainNetwork = False,
    jobs_per_node: JobsPerNode = 1,
    home: Home = None,
    _quiet: Quiet = False,
    _verbose: Verbose = False,
    as_json: Json = False,
) -> None:
    """Submit, verify, bench and promote each folder; a folder ends at its first refusal.

    Exit status: 0 if every folder is promoted, 1 if one isn't.

    Example: forge pipeline last examples/honest_cpp
    """
    from forge.app.machine.chosen_device import chosen_device
    from forge.app.work.folder_runs import find_target, require_folders
    from forge.errors import UsageError

    if again and resume:
        raise UsageError(
            "--again and --resume are given: expected one of them; --resume asks nothing again that is decided"
        )
    require_folders(folders)
    chosen_device(device)
    places = None if ray is None else _places(ray, plain_network=plain_network, jobs_per_node=jobs_per_node)
    with open_workspace(home) as workspace:
        meant = find_target(workspace, target)
        asked = _Pipeline(workspace, meant, folders, author=author, again=again, resume=resume, as_json=as_json)
        try:
            asked.ask_all() if places is None else asked.ask_cluster(places)
        except KeyboardInterrupt:
            say("to go on after this interruption, give the same command with --resume")
            raise
        alone = len(folders) == 1
        following = next_command(workspace, asked.results[0]["run_id"], folders[0]) if alone else None
    asked.print_results()
    _leave(asked.results, following)


def _places(cluster: str, *, plain_network: bool, jobs_per_node: int) -> list[str]:
    from forge.app.work.cluster import places_of

    return places_of(cluster, plain_network=plain_network, jobs_per_node=jobs_per_node)


class _Pipeline:
    """The folders that are asked, and what was found so far."""

    def __init__(
        self,
        workspace: "Workspace",
        target: "PipelineTarget",
        folders: Sequence[Path],
        *,
        author: str | None,
        again: bool,
        resume: bool,
        as_json: bool,
    ) -> None:
        self.workspace, self.target, self.folders = workspace, target, folders
        self.author, self.again, self.resume, self.as_json = author, again, resume, as_json
        self.results: list[Answer] = []

    def ask_all(self) -> None:
        """Ask one folder after the other; raise ForgeError with what was found so far if one can't be asked."""
        from forge.app.work.folder_runs import choose_run
        from forge.errors import ForgeError

        alone = len(self.folders) == 1
        for number, folder in enumerate(self.folders, start=1):
            try:
                chosen = choose_run(
                    self.workspace, self.target, folder, author=self.author, alone=alone, resume=self.resume
                )
                if not alone or chosen.origin != "named":
                    say(f"folder {number} of {len(self.folders)}: {folder}, {_told(chosen)}")
                answers = self._recorded(chosen) if chosen.origin == "decided before" else self._asked(chosen)
            except ForgeError as error:
                error.document |= {"task_id": self.target.task_id, "folders": self.results}
                if self.results and not self.as_json:
                    show_summary(self.results)
                raise
            self.results.append(finished(chosen, answers))

    def ask_cluster(self, cluster_places: Sequence[str]) -> None:
        """Submit every folder, let the places of a Ray cluster do the work, and collect what was recorded.

        A job that was lost is asked for again. What stays undecided is inconclusive: nothing is run on this machine.
        """
        from forge.app.work.decided_runs import counting
        from forge.app.work.folder_runs import choose_run
        from forge.app.work.lost_jobs import unanswered
        from forge.app.work.requests import request_work
        from forge.cli.side_by_side import serve_until_answered

        places = [("--on", place) for place in cluster_places]
        chosen, requested = [], list[str]()
        for folder in self.folders:
            one = choose_run(self.workspace, self.target, folder, author=self.author, alone=False, resume=self.resume)
            chosen.append(one)
            if one.origin != "decided before" and self._submission(one)["verdict"] == "accepted":
                request_work(self.workspace, self.workspace.find_run(one.run_id), "promote")
                requested.append(one.run_id)
        say(f"{len(requested)} of {len(chosen)} folders on {len(places)} places of the cluster")
        if requested:
            with counting(self.workspace, requested, tell_pace):
                serve_until_answered(self.workspace, requested, places, self.workspace.home)
        for one in chosen:
            answers = self._recorded(one)
            run = self.workspace.find_run(one.run_id)
            self.results.append(finished(one, answers | unanswered(self.workspace, run)))

    def print_results(self) -> None:
        """Print the summary, or the document. With one folder, it has the last phase's fields too."""
        if not self.as_json:
            show_summary(self.results)
            return
        verdicts = {one["verdict"] for one in self.results}
        whole = next(verdict for verdict in ("rejected", "inconclusive", "accepted") if verdict in verdicts)
        document: Answer = {"verdict": whole}
        if len(self.results) == 1:
            (only,) = self.results
            last = list(only["phases"].values())[-1]
            document = {**last, "kernel_id": only["kernel_id"], "phases": only["phases"]}
        emit_json(document | {"task_id": self.target.task_id, "folders": self.results})

    def _recorded(self, chosen: "FolderRun") -> dict[str, Answer]:
        """Return the recorded answers of a run that is decided; finish its seal if a kill prevented that."""
        from forge.app.phases.phase_answer import phase_answer
        from forge.app.runs import states
        from forge.app.work.folder_runs import recorded_phases

        run = states.finish_phase(self.workspace, self.workspace.find_run(chosen.run_id))
        return {name: phase_answer(event, workspace=self.workspace) for name, event in recorded_phases(run).items()}

    def _asked(self, chosen: "FolderRun") -> dict[str, Answer]:
        """Run the phases, up to the first that isn't accepted."""
        workspace, run_id = self.workspace, chosen.run_id
        steps: Mapping[str, Callable[[], Answer]] = {
            "submit": lambda: self._submission(chosen),
            "verify": lambda: verify_answer(workspace, run_id, again=self.again),
            "bench": lambda: bench_answer(workspace, run_id),
            "promote": lambda: promote_answer(workspace, run_id),
        }
        return _until_refused(steps, shown=_shown(self.as_json, alone=len(self.folders) == 1))

    def _submission(self, chosen: "FolderRun") -> Answer:
        """Submit the folder. A run that is taken up has the same bytes, also if it names another author."""
        if chosen.origin == "taken up":
            return self._recorded(chosen)["submit"]
        return submit_answer(self.workspace, chosen.run_id, chosen.folder, self.author)


def _told(chosen: "FolderRun") -> str:
    match chosen.origin:
        case "decided before":
            return f"decided before in run {chosen.run_id}, and not asked again"
        case "taken up":
            return f"taken up in run {chosen.run_id}, which hadn't ended"
        case "named" | "opened":
            return f"in run {chosen.run_id}"


def _shown(as_json: bool, *, alone: bool) -> Callable[[str, Answer], None]:
    """Return what prints a phase's answer: every one of a folder that is alone, otherwise refusals only."""

    def printed(name: str, answer: Answer) -> None:
        if not as_json and (alone or answer["verdict"] != "accepted"):
            show(name, answer)

    return printed


def _until_refused(
    steps: Mapping[str, Callable[[], Answer]], *, shown: Callable[[str, Answer], None]
) -> dict[str, Answer]:
    """Run the steps in order, up to the first that isn't accepted."""
    from forge.errors import EnvironmentUnfit

    answers: dict[str, Answer] = {}
    for name, step in steps.items():
        try:
            answers[name] = step()
        except EnvironmentUnfit as unfit:
            reason = {"code": "INFRASTRUCTURE", "message": unfit.message}
            unfit.document = {"verdict": "inconclusive", "kernel_id": None, "reason": reason, "phases": answers}
            raise
        shown(name, answers[name])
        if answers[name]["verdict"] != "accepted":
            break
    return answers


def _leave(results: Sequence[Answer], following: str | None) -> None:
    """Suggest the next command; exit with 1 unless every folder is accepted."""
    decided = [list(one["phases"].values())[-1] for one in results]
    if following is not None:
        leave(decided[0], following)
        return
    for answer in decided:
        if "signed_size" in answer:
            say_if_unsigned(answer)
    refused = [one for one in results if one["verdict"] != "accepted"]
    if not refused:
        suggest("next", "forge kernel list")
        return
    suggest("try", f"forge run show {refused[0]['run_id']} --log")
    raise typer.Exit(1)
