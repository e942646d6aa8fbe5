"""What a session costs beside its phases, and its replay: python benchmarks/sessions.py [REQUESTS].

One session asks a model that answers at once, request after request, in a new workspace; then it is replayed. Printed
are the time of a round, the time of the replay, both also as processor time, and the largest memory of this process.
The last figure is of rounds with a candidate that is refused at submission: a run is opened, planned and closed.
"""

import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from forge.app.sessions.model_exchange import ModelAnswer
from forge.app.sessions.opening import Means, SessionRequest, open_session, work_off
from forge.app.sessions.replaying import replay_session
from forge.app.workspace import Workspace
from forge.domain.authoring import Ask, BudgetLeft, Draft, Finished, LogEntry, Step, Submit
from forge.domain.budget import Amounts, Price
from forge.domain.digest import Digest, sha256
from forge.domain.session import SessionTerms

AMPLE = 10**14
REFUSED_ROUNDS = 20
SHAPE = ("--dtype", "fp32", "--shape", "batch=4,hidden_size=256")


@dataclass(frozen=True)
class Steps:
    """An author that proposes one kind of step a number of times."""

    make: Callable[[int], Step]
    count: int
    name: str = "benchmark"

    @property
    def identity(self) -> Digest:
        return sha256(f"{self.name} {self.count}".encode())

    def propose(self, seed: int, log: Sequence[LogEntry], left: BudgetLeft) -> Step:
        del seed, left
        return self.make(len(log)) if len(log) < self.count else Finished(reason="nothing_left", detail="done")


class Echo:
    """A model that answers at once."""

    def answer(self, step: Ask, *, request_id: str) -> ModelAnswer:
        return ModelAnswer(text=f"{request_id}: {step.prompt}", prompt_tokens=10, answer_tokens=10)


def forge(*arguments: object) -> None:
    subprocess.run([sys.executable, "-m", "forge", *map(str, arguments)], check=True, capture_output=True)


def timed(work: Callable[[], object]) -> tuple[float, float]:
    wall, processor = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - wall, time.process_time() - processor


def main() -> None:
    requests = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        forge("init", home)  # in processes of their own, since the trial of a task loads torch
        forge("task", "create", "--home", home, "--op", "rmsnorm", "--language", "cpp", "--gpu", "cpu", *SHAPE)
        with Workspace.open(home) as workspace:
            measure(workspace, requests)


def measure(workspace: Workspace, requests: int) -> None:
    task = workspace.find_run("last").task_id
    request = SessionRequest(
        task=task,
        seed=1,
        budget=Amounts(**dict.fromkeys(Amounts.model_fields, AMPLE)),
        prices=(Price(model="echo", prompt_micro_dollars=1, answer_micro_dollars=1),),
        terms=SessionTerms(refused_rounds=REFUSED_ROUNDS + 1, rounds_without_gain=REFUSED_ROUNDS + 1),
    )
    asking = Steps(lambda place: Ask(model="echo", prompt=f"prompt {place}", most_tokens=100), requests)
    refused = Steps(
        lambda place: Submit(drafts=(Draft(files={"kernel.py": str(place)}, hypothesis=""),)), REFUSED_ROUNDS
    )
    asked = open_session(workspace, asking, request)
    wall, processor = timed(lambda: work_off(workspace, asked, asking, Means(model=Echo())))
    print(f"a round with a request: {1000 * wall / requests:.1f} ms, processor {1000 * processor / requests:.1f} ms")
    wall, processor = timed(lambda: replay_session(workspace, asked, asking))
    print(f"replay of {requests} requests: {wall:.2f} s, processor {processor:.2f} s")
    handed_in = open_session(workspace, refused, request)
    wall, processor = timed(lambda: work_off(workspace, handed_in, refused, Means()))
    per_round = (1000 * wall / REFUSED_ROUNDS, 1000 * processor / REFUSED_ROUNDS)
    print(f"a round with a refused candidate: {per_round[0]:.1f} ms, processor {per_round[1]:.1f} ms")
    print(f"memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


if __name__ == "__main__":
    main()
