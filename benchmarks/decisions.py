"""Measures how many decisions one head records in a minute, with answers that are there at once.

    python benchmarks/decisions.py --runs 100 --workers 1
    python benchmarks/decisions.py --runs 100 --workers 4 --road refused

Each decision is one run that was submitted before, in a workspace that grows. Workers send its jobs to a machine that
answers at once (`tests/executor/at_once.py`), over a script in place of ssh, as they do with places of a cluster.
What is measured is the head alone: sending, checking, recording, sealing and publishing. By the road `timed` a
candidate is verified, timed and found too slow; by `refused` it is refused when it is verified; by `promote`
everything but the decision is recorded before, and one in each family is promoted.

The rate is that between the first decision and the last, so that the start of the workers isn't in it.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from datetime import datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from forge.app.phases.phases import submit_candidate
from forge.app.work.requests import request_work
from forge.app.workspace import Workspace
from forge.events import RunSealed
from tests.app.prepared import benchmarked_run
from tests.cli.asking import HONEST, QUICK_POLICY, ask, copied, create_task

ROOT = Path(__file__).parents[1]
AT_ONCE = ROOT / "tests" / "executor" / "at_once.py"
ROADS = ("timed", "refused", "promote")


def prepare(home: Path, road: str, number: int, task_id: str) -> None:
    """Make one run ready, and ask for its decision."""
    if road == "promote":
        create_task(home)
        benchmarked_run(home)
    else:
        ask("run", "open", task_id, "--home", home)
        folder = copied(HONEST, home.parent / f"candidate_{number}")
        word = "refuse" if road == "refused" else "slow"
        (folder / "kernel.py").write_text(f"{(HONEST / 'kernel.py').read_text()}\n# {word} {number}\n")
        with Workspace.open(home) as workspace:
            submit_candidate(workspace, workspace.find_run("last"), folder, author="a benchmark")
    with Workspace.open(home) as workspace:
        request_work(workspace, workspace.find_run("last"), "promote")


def answering_at_once(folder: Path) -> dict[str, str]:
    """Return an environment in which ssh leads to the machine that answers at once."""
    folder.mkdir()
    script = folder / "ssh"
    script.write_text(f"#!/bin/sh\nexec {sys.executable} {AT_ONCE} work answer\n")
    script.chmod(0o755)
    return {**os.environ, "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}


def seals(home: Path) -> list[datetime]:
    """Return when each run was sealed."""
    with Workspace.open(home, read_only=True) as workspace:
        return [datetime.fromisoformat(one.recorded_at) for one in workspace.ledger.read(types=(RunSealed.TYPE,))]


def main() -> None:
    """Make the runs ready, let the workers decide them, and print the rate."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--road", choices=ROADS, default="timed")
    asked = parser.parse_args()
    if asked.runs < 2:
        parser.error(
            f"--runs {asked.runs}: expected 2 or more, since the rate is that between the first and the last"
        )
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        Workspace.create(home, origin="benchmarks/decisions.py").__exit__(None)
        (home / "policy.toml").write_text(QUICK_POLICY)
        task_id, began = create_task(home)["task_id"], time.perf_counter()
        for number in range(asked.runs):
            prepare(home, asked.road, number, task_id)
        prepared_s = time.perf_counter() - began
        place = [] if asked.road == "promote" else ["--on", "ssh://at-once"]
        command = [sys.executable, "-m", "forge", "work", "--once", "--json", "--home", str(home), *place]
        environment, began = answering_at_once(Path(folder) / "bin"), time.perf_counter()
        workers = [
            subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=ROOT, env=environment)
            for _ in range(asked.workers)
        ]
        answers = [json.loads(line) for worker in workers for line in worker.communicate()[0].splitlines()]
        took_s, sealed = time.perf_counter() - began, seals(home)
    between_s = (sealed[-1] - sealed[0]).total_seconds()
    told = {"road": asked.road, "runs": asked.runs, "workers": asked.workers, "decided": len(sealed)}
    told |= {"failed": sum(one["error"] is not None for one in answers), "took_s": round(took_s, 1)}
    told |= {"decisions_per_minute": round(60 * (len(sealed) - 1) / between_s)}
    print(
        json.dumps(told | {"submitted_per_minute": round(60 * asked.runs / prepared_s), "load": os.getloadavg()[0]})
    )


if __name__ == "__main__":
    main()
