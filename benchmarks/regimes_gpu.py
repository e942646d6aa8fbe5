"""Counts how often a kernel is called faster than itself, in the cold and in the resident regime, on a GPU.

Usage: python benchmarks/regimes_gpu.py regimes.json [--kernel ID] [--trials 300] [--seconds 500]

The document is written anew after each trial, so an interrupted run keeps what it has. Each trial is a whole
measurement by `forge.lab.timing.graph_replay` with the default policy's process pairs and rounds. A kernel's launch
plan is the candidate and the incumbent at once. A claim is a lower end at or above 1.10x with no pair lost. With 300
trials and none, the chance of a claim is below 1 % with 95 % confidence.
"""

import argparse
import dataclasses
import json
import random
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from forge.app.kernels.answers import find_promotion
from forge.app.machine.chosen_executor import executor_here
from forge.app.phases.phase_inputs import artifact_of
from forge.app.phases.replication import replication_case
from forge.app.workspace import Workspace
from forge.domain.device import Ceilings
from forge.domain.policy import Policy
from forge.lab.finding import Failed
from forge.lab.job import Job
from forge.lab.launch_plan.launcher import kept_plan
from forge.lab.timing.cpu_processes import CANDIDATE
from forge.lab.timing.graph_replay import ReplaySamples, ResidentSamples, measure_replays
from forge.lab.timing.incumbent import PROMOTED
from forge.lab.timing.paired_interval import interval, pair_ratios
from forge.pipeline.job import job_of
from forge.sandbox.plans import Captured

Trial = dict[str, Any]  # Any: a JSON document
CLAIM = 1.10
"""Ratio from which a lower end is a claim: the default threshold of a promotion."""
KERNEL = "triton_rmsnorm_h200_bf16_b16_h4096_v1"
"""Identifier of a kernel in the shipped registry whose operands fit into half of an H200's cache."""


def compared(samples: ReplaySamples | ResidentSamples) -> Trial:
    """Return the interval of the kernel against itself, and whether the rule would claim a speedup."""
    ratios = pair_ratios(samples.per_call_ns(PROMOTED), samples.per_call_ns(CANDIDATE))
    found = interval(ratios)
    claimed = found.low >= CLAIM and all(ratio > 0 for ratio in ratios)
    median_us = sorted(value for rounds in samples.per_call_ns(CANDIDATE) for value in rounds)
    return {
        "ratio": found.ratio,
        "low": found.low,
        "high": found.high,
        "claimed": claimed,
        "us": median_us[len(median_us) // 2] / 1000,
    }


def job_and_plan(home: Path, kernel: str) -> tuple[Job, Captured, Ceilings]:
    """Return a kernel's job and plan here; what is recorded on the way goes into a copy of the workspace."""
    executor = executor_here()
    policy = Policy(baselines=("eager",))
    with Workspace.open(home) as workspace:
        promoted = find_promotion(workspace, kernel).event
        plan = kept_plan(artifact_of(workspace, promoted.artifact_sha256))
        evidence = replication_case(workspace, promoted, executor.site(policy)).evidence
    if plan is None:
        raise SystemExit(f"{kernel} has no launch plan: expected a kernel of a GPU")
    return job_of(dataclasses.replace(evidence, policy=policy)), plan, executor.calibrate()


def copied(home: Path, target: Path) -> Path:
    """Copy a workspace's ledger and blobs, since measuring records the machine."""
    shutil.copy(home / "kernel_registry.db", target)
    shutil.copytree(home / "forge_runs" / "cas", target / "forge_runs" / "cas")
    return target


def one_trial(job: Job, plan: Captured, ceilings: Ceilings) -> Trial:
    """Measure the kernel against itself once."""
    rng = random.SystemRandom()
    taken = measure_replays(job, plan, plan, ceilings=ceilings, rng=rng, progress=lambda _: None)
    if isinstance(taken, Failed):
        return {"failed": taken.reason.message}
    return {"cold": compared(taken), "resident": taken.resident and compared(taken.resident)}


def main() -> int:
    """Measure the kernel against itself, and write each trial and the counts as JSON."""
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=Path)
    parser.add_argument("--kernel", default=KERNEL, help="a kernel of the shipped registry that was promoted here")
    parser.add_argument("--trials", type=int, default=300)
    parser.add_argument("--seconds", type=float, default=1e9, help="no trial begins after these")
    options = parser.parse_args()
    deadline = time.monotonic() + options.seconds
    with tempfile.TemporaryDirectory() as folder:
        job, plan, ceilings = job_and_plan(copied(Path.cwd(), Path(folder)), options.kernel)
    found: list[Trial] = []
    while len(found) < options.trials and time.monotonic() < deadline:
        found.append(one_trial(job, plan, ceilings))
        claims = {
            regime: sum(bool(one and one["claimed"]) for trial in found for one in (trial.get(regime),))
            for regime in ("cold", "resident")
        }
        told = {"kernel": options.kernel, "threshold": CLAIM, "claims": claims, "trials": found}
        print(f"{len(found)} of {options.trials}: claims {claims}", file=sys.stderr, flush=True)
        options.out.write_text(json.dumps(told, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
