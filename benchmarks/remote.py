"""Measures what a job costs beyond the local executor when another process answers it, in milliseconds.

    python benchmarks/remote.py         a process that answers over a pipe, as behind ssh
    python benchmarks/remote.py --ray   also a node of a Ray cluster on this machine; it needs the extra `ray`

The job is a candidate whose sources are refused, so that almost nothing but the way is measured; the candidate's
files are padded to the size that a built candidate has. All sides are asked in turns.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

from forge.domain.policy import Policy
from forge.executor import Executor
from forge.executor.local import LocalExecutor
from forge.executor.ray import RayAddress, RayConnection
from forge.executor.remote.executor import RemoteExecutor
from forge.executor.remote.ssh import SshConnection
from forge.lab.job import Job

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.candidates import job_for

ROUNDS = 40
PADDING = b"#" * 2_000_000
"""Comment of two megabytes, about what a built candidate and its launch plan have."""


def took_ms(executor: Executor, job: Job) -> float:
    """Return how long one job took, in milliseconds."""
    began = time.perf_counter()
    executor.examine_build(job, progress=lambda _: None)
    return (time.perf_counter() - began) * 1000


@contextmanager
def behind_a_pipe() -> Iterator[Executor]:
    """Let a process of this machine answer, as one behind ssh does."""
    connection = SshConnection("ssh://here", (sys.executable, "-m", "forge", "work", "answer"))
    yield described(RemoteExecutor(connection))
    connection.close()


@contextmanager
def node_of_a_cluster() -> Iterator[Executor]:
    """Let a node of a cluster of this machine answer."""
    os.environ |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "a" * 32}
    import ray
    from ray.cluster_utils import Cluster

    found = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "num_gpus": 0, "include_dashboard": False})
    connection = RayConnection(RayAddress(found.address, found.head_node.node_id, None))
    yield described(RemoteExecutor(connection))
    connection.close()
    ray.shutdown()
    found.shutdown()


def described(executor: RemoteExecutor) -> Executor:
    """Let the other side describe itself, which it does before its first job."""
    executor.site(Policy())
    return executor


def main() -> None:
    """Ask all executors in turns and print the medians."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--ray", action="store_true", help="also ask a node of a Ray cluster on this machine")
    ways = {"remote": behind_a_pipe} | ({"ray": node_of_a_cluster} if options.parse_args().ray else {})
    asked = job_for("def other():\n    pass\n", language="torch")
    asked = replace(asked, files={**asked.files, "reference.py": PADDING})
    with ExitStack() as opened:
        sides: dict[str, Executor] = {"local": LocalExecutor(Path(tempfile.gettempdir()) / "forge-remote.lock")}
        sides |= {name: opened.enter_context(way()) for name, way in ways.items()}
        times: dict[str, list[float]] = {name: [] for name in sides}
        for _ in range(ROUNDS):
            for name, executor in sides.items():
                times[name].append(took_ms(executor, asked))
    medians = {name: statistics.median(values) for name, values in times.items()}
    beyond = {f"{name}_beyond_local": medians[name] - medians["local"] for name in ways}
    print(json.dumps({name: round(took, 2) for name, took in {**medians, **beyond}.items()}))


if __name__ == "__main__":
    main()
