"""Where the seconds from a candidate to its decision go, on a GPU: by step, and by what the host's threads do in it.

    python benchmarks/decision_time.py HOME --slot softmax@prefill [--times 2] [--json FILE]

HOME is a workspace; a new one gets the policy of benchmarks/registry.py, so every installed contender is measured.
The slot is named as in benchmarks/registry.py. The steps are those that verifying and timing report as progress.
Beside each step stand the places in Forge's code where its threads were found, in seconds: a thread of this process
looks every 20 ms. A second time in the same process shows what is warm then: compiled baselines, screened contenders.
"""

import argparse
import collections
import json
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

from registry import EXAMPLES, POLICY, Item, items, named

from forge.app.phases import phases
from forge.app.tasks.create import create_task
from forge.app.workspace import Workspace
from forge.errors import ForgeError
from forge.events import BenchmarkRecorded, CandidateVerified
from forge.pipeline.create import TaskRequest
from forge.platforms.cuda import devices, gpu_facts

EVERY_S = 0.02
"""Seconds between two looks at the threads."""
FRAMES = 5
"""Number of Forge's frames that name a place: the innermost ones."""
WAITING = "launch.Guest._watch"
"""Place of the threads that wait for their guest's end, which cost nothing."""
PLACES = 6
"""Number of places shown for a step."""
LEAST_S = 0.2
"""Seconds of a step from which its places are shown."""
FORGE = str(Path(phases.__file__).resolve().parents[2])

Json = dict[str, Any]  # Any: a JSON document


@dataclass
class Step:
    """One step as progress named it, and where the threads were found meanwhile."""

    name: str
    began_s: float
    main: collections.Counter[str] = field(default_factory=collections.Counter)
    others: collections.Counter[str] = field(default_factory=collections.Counter)


class Steps:
    """Steps so far, and a thread that looks at all others."""

    def __init__(self) -> None:
        self.all: list[Step] = []
        self._main = threading.get_ident()
        self._ended = threading.Event()
        self._watching = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> "Steps":
        self._watching.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._watching.join()

    def begin(self, name: str) -> None:
        """Begin a step; the one before ends."""
        self.all.append(Step(name, time.monotonic()))
        print(f"{self.all[-1].began_s - self.all[0].began_s:7.1f} s  {name}", file=sys.stderr, flush=True)

    def _watch(self) -> None:
        own = threading.get_ident()
        while not self._ended.wait(EVERY_S):
            if not self.all:
                continue
            step = self.all[-1]
            for thread, frame in sys._current_frames().items():
                place = place_of(frame)
                if thread != own and place and not place.startswith(WAITING):
                    (step.main if thread == self._main else step.others)[place] += 1


def place_of(frame: FrameType | None) -> str:
    """Return the innermost functions of Forge on a thread's stack; empty for a thread of other code."""
    found: list[str] = []
    while frame is not None and len(found) < FRAMES:
        if frame.f_code.co_filename.startswith(FORGE):
            found.append(f"{Path(frame.f_code.co_filename).stem}.{frame.f_code.co_qualname}")
        frame = frame.f_back
    return " < ".join(found)


def told(steps: list[Step], ended_s: float) -> list[Json]:
    """Return each step with its seconds and its places."""
    ends = [one.began_s for one in steps[1:]] + [ended_s]
    return [
        {
            "step": one.name,
            "seconds": round(end - one.began_s, 3),
            "main": {place: round(count * EVERY_S, 2) for place, count in one.main.most_common(PLACES)},
            "others": {place: round(count * EVERY_S, 2) for place, count in one.others.most_common(PLACES)},
        }
        for one, end in zip(steps, ends, strict=True)
    ]


def decided(workspace: Workspace, item: Item, gpu: str) -> Json:
    """Take one candidate to its decision; what was verified before is taken over."""
    request = TaskRequest(op=item.op, language=item.language, gpu=gpu, dtype=item.dtype, shape=item.shape)
    run = create_task(workspace, request).run_id
    with Steps() as steps:
        began_s = time.monotonic()
        steps.begin("submit")
        phases.submit_candidate(workspace, workspace.find_run(run), EXAMPLES / item.folder, author="forge benchmark")
        steps.begin("verify")
        event = phases.verify_candidate(
            workspace, workspace.find_run(run), progress=lambda step: steps.begin(f"verify: {step}")
        )
        if isinstance(event, CandidateVerified):
            steps.begin("bench")
            event = phases.benchmark_candidate(
                workspace, workspace.find_run(run), progress=lambda step: steps.begin(f"bench: {step}")
            )
        ended_s = time.monotonic()
    reason = getattr(event, "reason", None)
    answer: Json = {
        "item": item.label,
        "seconds": round(ended_s - began_s, 2),
        "decision": event.TYPE,
        "reason": reason.model_dump(mode="json") if reason is not None else None,
        "contenders": [one.model_dump(mode="json") for one in getattr(event, "contenders", ())],
        "steps": told(steps.all, ended_s),
    }
    if isinstance(event, BenchmarkRecorded):
        answer["speedups"] = [one.model_dump(mode="json") for one in event.workloads[0].speedups]
    return answer


def shown(answer: Json) -> None:
    """Print the steps of one decision, and the places of the longer ones."""
    print(f"\n{answer['item']}: {answer['decision']} after {answer['seconds']} s {answer['reason'] or ''}")
    for one in answer["contenders"]:
        print(f"    {one['contender']} {one.get('version')}: {json.dumps(one['standing'])[:200]}")
    for one in answer["steps"]:
        print(f"{one['seconds']:8.2f} s  {one['step']}")
        if one["seconds"] >= LEAST_S:
            for thread in ("main", "others"):
                for place, seconds in one[thread].items():
                    print(f"{'':12}{thread:6} {seconds:7.2f} s  {place}")


def opened(home: Path) -> Workspace:
    """Open a workspace; make one with the registry's policy if there is none."""
    if (home / "kernel_registry.db").exists():
        return Workspace.open(home)
    home.mkdir(parents=True, exist_ok=True)
    (home / "policy.toml").write_text(POLICY)
    return Workspace.create(home, origin="forge benchmark")


def main() -> None:
    """Decide the slot as often as asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("home", type=Path)
    parser.add_argument("--slot", required=True, help="named as in benchmarks/registry.py --only")
    parser.add_argument("--times", type=int, default=1)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    found = list(items(named(options.slot)))
    if not found:
        parser.error(f"{options.slot!r} names no candidate: expected an operation or a folder, with @decode or so")
    facts = [gpu_facts(device.uuid) for device in devices()]
    if not facts or facts[0] is None:
        sys.exit("this needs a GPU: nvidia-smi lists none")
    answers: list[Json] = []
    try:
        with opened(options.home) as workspace:
            for item in found * options.times:
                answers.append(decided(workspace, item, facts[0].slug))
                shown(answers[-1])
    except ForgeError as error:
        sys.exit(f"{type(error).__name__}: {error}")
    finally:
        if options.json:
            options.json.write_text(json.dumps(answers, indent=1))


if __name__ == "__main__":
    main()
