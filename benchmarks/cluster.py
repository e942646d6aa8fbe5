"""Shows what a second node is worth, and that a node that is killed loses nothing and repeats nothing.

    python benchmarks/cluster.py --candidates 30                        one node is killed halfway
    python benchmarks/cluster.py --candidates 30 --apart                two nodes beside two machines apart
    python benchmarks/cluster.py --candidates 1000 --cpus-per-node 16   on a machine with 32 cores

It needs the repository, Python 3.11, g++ and the extras `lab` and `ray`; the nodes are two of this machine. With
--cpus-per-node each node keeps to cores of its own, and has a job for every two of them. Each candidate is a C++
example that is compiled and then refused. Without --apart the pipeline is given again with --resume after the kill,
and the document says how many candidates are decided and how many are decided more than once. Until then a line in
JSON says every ten seconds how far it is, so that a run that is cut short still tells something. It ends with 1 if a
candidate has no decision, or two. With --apart the candidates are judged by two nodes for one workspace, and by two
workers of two workspaces, and both rates are told.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "a" * 32, "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}
ROOT = Path(__file__).resolve().parents[1]
HONEST = ROOT / "examples" / "honest_cpp"
POLL_S = 0.5
"""Time between two looks at the ledger, in seconds."""
TOLD_EVERY_S = 10.0
"""Time between two lines that say how far a run is, in seconds. Chosen; a run of eight minutes has 48."""
OBJECT_STORE_BYTES = 100 << 20
"""Memory of a node's object store, in bytes. Jobs and answers pass it. By default Ray takes a third of all."""
CORES_OF_A_JOB = 2
"""Number of cores for each job of a node: one compiles or runs the candidate, the other judges."""


def forge(*words: object) -> subprocess.CompletedProcess[str]:
    """Run a command; what it says goes to the error output."""
    command = [sys.executable, "-m", "forge", *map(str, words)]
    ran = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if ran.returncode not in (0, 1):
        raise RuntimeError(f"{command} ended with {ran.returncode}: {ran.stdout[-2000:]}")
    return ran


def made(folder: Path, count: int) -> list[Path]:
    """Write candidates that are built and then refused, each with other bytes and another text."""
    found = []
    text = (HONEST / "kernel.py").read_text()
    for number in range(count):
        one = folder / f"candidate_{number:04}"
        shutil.copytree(HONEST, one)
        (one / "kernel.py").write_text(f"{text}\n\nraise ValueError({number})\n")
        found.append(one)
    return found


def workspace(home: Path) -> str:
    """Make a workspace with one task; return the task's id."""
    forge("init", home)
    task = ("--op", "fused_add_rmsnorm", "--gpu", "cpu", "--language", "cpp", "--dtype", "fp32")
    shape = ("--shape", "batch=4,hidden_size=256")
    return str(json.loads(forge("task", "create", *task, *shape, "--home", home, "--json").stdout)["task_id"])


def events(home: Path, *types: str) -> list[Any]:
    """Return the events of some types."""
    from forge.app.workspace import Workspace

    with Workspace.open(home, read_only=True) as opened:
        return [one.event for one in opened.ledger.read(types=types)]


def decided(home: Path) -> Counter[str]:
    """Return how often each candidate was decided."""
    return Counter(one.candidate for one in events(home, "CandidateRejected", "CandidateVerified"))


def decided_by(home: Path) -> dict[str, int]:
    """Return how many candidates each node decided."""
    named = {one.env_sha256: one.environment.worker for one in events(home, "EnvironmentCaptured")}
    return dict(Counter(named[one.env_sha256] for one in events(home, "CandidateRejected", "CandidateVerified")))


def twice(counts: Counter[str]) -> int:
    """Return how many candidates were decided more than once."""
    return sum(number > 1 for number in counts.values())


def submitted(home: Path) -> int:
    """Return how many candidates were submitted."""
    return len(events(home, "CandidateSubmitted"))


def lost(home: Path) -> int:
    """Return how many jobs were lost with a node. Each left no verdict."""
    return len(events(home, "VerificationErrored"))


@dataclass(frozen=True)
class Nodes:
    """Two nodes of this machine."""

    address: str
    jobs_per_node: int
    kill: Callable[[], None]
    """Function that kills the second node."""


@contextmanager
def cluster(cpus: int | None) -> Iterator[Nodes]:
    """Start two nodes, which ask for a token. With `cpus`, each keeps to that number of cores of its own."""
    from ray.cluster_utils import Cluster

    # without a GPU, also on a machine that has one: candidates are for the processor
    own = {"num_cpus": cpus or 1, "num_gpus": 0, "object_store_memory": OBJECT_STORE_BYTES}
    found = Cluster(initialize_head=True, head_node_args={**own, "include_dashboard": False})
    try:
        second = found.add_node(**own)
        if cpus is not None:
            cores = sorted(os.sched_getaffinity(0))
            keep_to(found.head_node, cores[:cpus])
            keep_to(second, cores[cpus : 2 * cpus])
        yield Nodes(
            found.address,
            max(1, (cpus or 1) // CORES_OF_A_JOB),
            lambda: found.remove_node(second, allow_graceful=False),
        )
    finally:
        found.shutdown()


def keep_to(node: Any, cores: Sequence[int]) -> None:  # Any: Ray's package has no types that mypy reads
    """Let a node's raylet, its workers, and those that it starts from now on, run on these cores alone."""
    waiting = [started.process.pid for started in node.all_processes["raylet"]]
    while waiting:
        for thread in Path(f"/proc/{waiting.pop()}/task").iterdir():
            os.sched_setaffinity(int(thread.name), cores)
            waiting += map(int, (thread / "children").read_text().split())


def pipeline(home: Path, task: str, folders: Sequence[Path], nodes: Nodes, *more: str) -> None:
    """Judge folders on the nodes of a cluster."""
    at = ("--ray", nodes.address, "--plain-network", "--jobs-per-node", nodes.jobs_per_node)
    forge("pipeline", task, *folders, *at, "--home", home, "--json", *more)


class Watch:
    """Looks at a workspace's ledger while a pipeline runs, and tells how far it is."""

    def __init__(self, home: Path, judging: threading.Thread) -> None:
        self._home, self._judging = home, judging
        self._began_s = self._told_s = time.monotonic()
        self.first_s: float | None = None
        """Time from the beginning until the first decision was seen, in seconds."""

    def elapsed_s(self) -> float:
        """Return the time since the pipeline began."""
        return time.monotonic() - self._began_s

    def until(self, count: int | None) -> int:
        """Return the number of decisions when there are `count`, or when the pipeline ends."""
        at = decided(self._home).total()
        while self._judging.is_alive() and (count is None or at < count):
            time.sleep(POLL_S)
            at = decided(self._home).total()
            if at and self.first_s is None:
                self.first_s = self.elapsed_s()
            if time.monotonic() - self._told_s >= TOLD_EVERY_S:
                self.tell("judging")
        return at

    def tell(self, what: str) -> None:
        """Print how far it is."""
        self._told_s, counts = time.monotonic(), decided(self._home)
        far = {"at": what, "after_s": round(self.elapsed_s(), 1), "submitted": submitted(self._home)}
        far |= {"decided": len(counts), "decided_more_than_once": twice(counts), "lost_jobs": lost(self._home)}
        print(
            json.dumps(far | {"decided_by_each_node": decided_by(self._home), "load": os.getloadavg()[0]}), flush=True
        )


def with_a_kill(count: int, folder: Path, *, cpus: int | None) -> dict[str, object]:
    """Judge candidates, kill a node when half of them are decided, and go on."""
    home, folders = folder / "home", made(folder, count)
    task = workspace(home)
    with cluster(cpus) as nodes:
        judging = threading.Thread(target=pipeline, args=(home, task, folders, nodes))
        watch = Watch(home, judging)
        judging.start()
        at = watch.until(count // 2)
        killed_after_s = watch.elapsed_s()
        nodes.kill()
        watch.tell("a node was killed")
        first = watch.until(None)
        took_s = watch.elapsed_s()
        watch.tell("the first command ended")
        pipeline(home, task, folders, nodes, "--resume")
        resume_took_s = watch.elapsed_s() - took_s
        watch.tell("the second command ended")
    counts = decided(home)
    judged_s = killed_after_s - (watch.first_s or 0.0)
    stands = forge("ledger", "verify", "--home", home, "--json").returncode == 0
    return {
        "candidates": count,
        "cores": len(os.sched_getaffinity(0)),
        "jobs_per_node": nodes.jobs_per_node,
        "decided_when_the_node_was_killed": at,
        "decided_by_the_first_command": first,
        "decided": len(counts),
        "decided_more_than_once": twice(counts),
        "lost_jobs_asked_for_again": lost(home),
        "decided_by_each_node": decided_by(home),
        "ledger_stands": stands,
        "first_decision_after_s": round(watch.first_s or 0.0, 1),
        "per_minute_before_the_kill": round(60 * at / judged_s, 1) if judged_s > 0 else None,
        "per_minute_after_the_kill": round(60 * (first - at) / (took_s - killed_after_s), 1),
        "killed_after_s": round(killed_after_s, 1),
        "first_command_took_s": round(took_s, 1),
        "resume_took_s": round(resume_took_s, 1),
    }


def beside_two_apart(count: int, folder: Path, *, cpus: int | None) -> dict[str, object]:
    """Judge the same candidates by two nodes of one cluster, and by two workers of two workspaces."""
    folders, half = made(folder, count), count // 2
    one = folder / "one"
    task = workspace(one)
    with cluster(cpus) as nodes:
        began = time.monotonic()
        pipeline(one, task, folders, nodes)
        together_s = time.monotonic() - began
    homes = [(folder / "left", folders[:half]), (folder / "right", folders[half:])]
    tasks = [workspace(home) for home, _ in homes]
    began = time.monotonic()
    apart = [
        threading.Thread(target=forge, args=("pipeline", task, *own, "--home", home, "--json"))
        for (home, own), task in zip(homes, tasks, strict=True)
    ]
    for each in apart:
        each.start()
    for each in apart:
        each.join()
    apart_s = time.monotonic() - began
    rates = {"two_nodes_per_hour": 3600 * count / together_s, "two_apart_per_hour": 3600 * count / apart_s}
    return {"candidates": count, **rates, "ratio": apart_s / together_s, "load": os.getloadavg()[0]}


def main() -> None:
    """Measure what was asked for, and print it."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--candidates", type=int, default=30)
    options.add_argument("--apart", action="store_true")
    options.add_argument(
        "--cpus-per-node", type=int, metavar="N", help="cores of each node; with --apart leave it out"
    )
    chosen = options.parse_args()
    cpus, here = chosen.cpus_per_node, len(os.sched_getaffinity(0))
    if chosen.candidates < 2 or (cpus is not None and not (cpus >= 1 and 2 * cpus <= here and not chosen.apart)):
        options.error(f"expected 2 candidates or more, and without --apart 1 to {here // 2} cores for each node")
    with tempfile.TemporaryDirectory(prefix="forge-cluster-") as folder:
        ask = beside_two_apart if chosen.apart else with_a_kill
        found = ask(chosen.candidates, Path(folder), cpus=cpus)
        print(json.dumps(found, indent=1))
    if not chosen.apart and (found["decided"] != chosen.candidates or found["decided_more_than_once"]):
        sys.exit(1)


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    main()
