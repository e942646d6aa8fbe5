"""Shows what a second node is worth, and that a node that is killed loses nothing and repeats nothing.

    python benchmarks/cluster.py --candidates 30            one node is killed halfway
    python benchmarks/cluster.py --candidates 30 --apart    two nodes beside two machines apart

Both need the extra `ray`; the nodes are two of this machine. Each candidate is a C++ example that is built and then
refused. Without --apart the pipeline is given again with --resume after the kill, and the document says how many
candidates are decided and how many are decided more than once. With --apart the candidates are judged by two nodes
for one workspace, and by two workers of two workspaces, and the document has both rates.
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
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

os.environ |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "a" * 32, "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}
ROOT = Path(__file__).resolve().parents[1]
HONEST = ROOT / "examples" / "honest_cpp"
POLL_S = 0.5
"""Time between two looks at the ledger, in seconds."""


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


def decided(home: Path) -> Counter[str]:
    """Return how often each candidate was decided."""
    from forge.app.workspace import Workspace

    with Workspace.open(home, read_only=True) as opened:
        events = opened.ledger.read(types=("CandidateRejected", "CandidateVerified"))
        return Counter(str(getattr(one.event, "candidate", "")) for one in events)


@contextmanager
def cluster() -> Iterator[tuple[Any, Any]]:
    """Two nodes of this machine, which ask for a token: the cluster and its second node."""
    from ray.cluster_utils import Cluster

    found = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    try:
        yield found, found.add_node(num_cpus=1)
    finally:
        found.shutdown()


def pipeline(home: Path, task: str, folders: Sequence[Path], address: str, *more: str) -> None:
    """Judge folders on the nodes of a cluster."""
    forge("pipeline", task, *folders, "--ray", address, "--plain-network", "--home", home, "--json", *more)


def with_a_kill(count: int, folder: Path) -> dict[str, object]:
    """Judge candidates, kill a node when half of them are decided, and go on."""
    home, folders = folder / "home", made(folder, count)
    task, at = workspace(home), 0
    began = time.monotonic()
    with cluster() as (nodes, second):
        judging = threading.Thread(target=pipeline, args=(home, task, folders, nodes.address))
        judging.start()
        while judging.is_alive() and at < count // 2:
            time.sleep(POLL_S)
            at = decided(home).total()
        nodes.remove_node(second, allow_graceful=False)
        judging.join()
        first = decided(home).total()
        pipeline(home, task, folders, nodes.address, "--resume")
    counts = decided(home)
    stands = forge("ledger", "verify", "--home", home, "--json").returncode == 0
    return {
        "candidates": count,
        "decided_when_the_node_was_killed": at,
        "decided_by_the_first_command": first,
        "decided": len(counts),
        "decided_more_than_once": sum(number > 1 for number in counts.values()),
        "ledger_stands": stands,
        "took_s": round(time.monotonic() - began, 1),
    }


def beside_two_apart(count: int, folder: Path) -> dict[str, object]:
    """Judge the same candidates by two nodes of one cluster, and by two workers of two workspaces."""
    folders, half = made(folder, count), count // 2
    one = folder / "one"
    task = workspace(one)
    with cluster() as (nodes, _):
        began = time.monotonic()
        pipeline(one, task, folders, nodes.address)
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
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="forge-cluster-") as folder:
        ask = beside_two_apart if chosen.apart else with_a_kill
        print(json.dumps(ask(chosen.candidates, Path(folder)), indent=1))


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    main()
