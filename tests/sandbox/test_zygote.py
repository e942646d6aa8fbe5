"""A guest that was forked stands behind the same walls as one that was executed, and knows as little."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from forge.domain.evidence import Isolation
from forge.languages import find_language
from forge.sandbox import zygote
from forge.sandbox.limits import Limits
from forge.sandbox.stage import OWN_BENCHMARK, Program, Stage
from tests.candidates import isolation

pytestmark = pytest.mark.usefixtures("walls")

LOOK = """
import gc, json, os, resource, sys, threading

frame, files = sys._getframe(), []
while frame:
    files.append(frame.f_code.co_filename)
    frame = frame.f_back
status = dict(line.split(":\\t") for line in open("/proc/self/status").read().splitlines() if ":\\t" in line)
try:
    import forge
    found = True
except ImportError:
    found = False
print(json.dumps({
    "torch was there": "torch" in sys.modules,
    "forge": found,
    "files": files,
    "environment": dict(os.environ),
    "kernel environment": open("/proc/self/environ").read().strip("\\0"),
    "command line": open("/proc/self/cmdline").read().strip("\\0"),
    "descriptors": sorted(os.listdir("/proc/self/fd")),
    "threads": threading.active_count(),
    "pid": os.getpid(),
    "uid": os.getuid(),
    "walls": {name: status[name] for name in ("NoNewPrivs", "Seccomp", "CapBnd", "CapEff")},
    "root": os.path.exists("/root") or os.path.exists("/home"),
    "interfaces": open("/proc/net/dev").read().count(":"),
    "limits": [resource.getrlimit(getattr(resource, "RLIMIT_" + name)) for name in ("NPROC", "DATA", "CORE")],
    "signals": [status[name] for name in ("SigBlk", "SigIgn")],
}), flush=True)
"""


@pytest.fixture
def stage() -> Iterator[Stage]:
    yield from staged(LOOK, warm=True)


def staged(
    script: str,
    *,
    warm: bool,
    language: str = "torch",
    environment: dict[str, str] | None = None,
    rare_modules: tuple[str, ...] = (),
) -> Iterator[Stage]:
    program = Program(
        language=find_language(language),
        files={"bench.py": script.encode()},
        environment=environment or {"SAID": "early"},
        warm=warm,
        rare_modules=rare_modules,
    )
    made = Stage(program, isolation())
    yield made
    made.remove()


def run(stage: Stage, wall_s: float = 120.0) -> str:
    nothing = os.open(os.devnull, os.O_RDWR)
    try:
        with stage.start(OWN_BENCHMARK, descriptors=(nothing,), limits=Limits(wall_s=wall_s), threads=2) as guest:
            assert guest.wait(wall_s + 60) is not None
            return guest.log()
    finally:
        os.close(nothing)


def look(stage: Stage) -> dict[str, object]:
    seen: dict[str, object] = json.loads(run(stage))
    return seen


def test_the_same_walls_stand(stage: Stage) -> None:
    forked = look(stage)
    executed = look(next(staged(LOOK, warm=False)))
    for name in ("walls", "uid", "root", "interfaces", "limits", "signals", "descriptors", "threads", "forge"):
        assert forked[name] == executed[name], name
    assert forked["pid"] == 2
    assert forked["torch was there"]
    assert not executed["torch was there"]


def test_it_finds_nothing_of_the_way_it_came(stage: Stage) -> None:
    seen = look(stage)
    assert seen["forge"] is False
    assert seen["command line"] == seen["kernel environment"] == ""
    assert isinstance(seen["files"], list)
    assert seen["files"][-1] == "<string>"
    assert not [name for name in seen["files"] if "sandbox" in name]


def test_variables_are_those_of_its_own_stage(stage: Stage) -> None:
    first = look(stage)
    second = look(next(staged(LOOK, warm=True, environment={"SAID": "late"})))
    executed = look(next(staged(LOOK, warm=False, environment={"SAID": "late"})))
    assert isinstance(first["environment"], dict)
    assert first["environment"]["SAID"] == "early"
    assert second["environment"] == executed["environment"]


def test_guests_leave_nothing_to_each_other() -> None:
    mark = "import torch\nprint(getattr(torch, 'left_behind', None))\ntorch.left_behind = 1\n"
    stage = next(staged(mark, warm=True))
    assert [run(stage), run(stage)] == ["None\n", "None\n"]


def test_a_zygote_that_died_is_replaced(stage: Stage) -> None:
    run(stage)
    for pid in zygote.pids():
        os.kill(pid, signal.SIGKILL)
    assert look(stage)["pid"] == 2


RARE = ("mailbox",)
"""A module that neither torch nor the harness imports."""


def test_rare_modules_are_imported_once_by_a_fork_of_the_usual_zygote() -> None:
    mark = "import sys, torch\nprint('mailbox' in sys.modules, getattr(torch, 'left', None))\ntorch.left = 1\n"
    usual, rare = next(staged(mark, warm=True)), next(staged(mark, warm=True, rare_modules=RARE))
    assert run(usual) == "False None\n"
    before = zygote.pids()
    assert [run(rare), run(rare), run(usual)] == ["True None\n", "True None\n", "False None\n"]
    (forked,) = zygote.pids() - before
    assert Path(f"/proc/{forked}/stat").read_text().rpartition(")")[2].split()[1] in map(str, before)


def test_guests_with_rare_modules_stand_behind_the_same_walls_and_find_nothing_of_the_way_they_came() -> None:
    seen, executed = look(next(staged(LOOK, warm=True, rare_modules=RARE))), look(next(staged(LOOK, warm=False)))
    assert seen["torch was there"]
    assert seen["pid"] == 2
    of_starts = ("walls", "uid", "root", "interfaces", "limits", "signals", "descriptors", "threads", "forge")
    for name in (*of_starts, "environment"):
        assert seen[name] == executed[name], name
    assert seen["command line"] == seen["kernel environment"] == ""
    assert isinstance(seen["files"], list)
    assert seen["files"][-1] == "<string>"
    assert not [name for name in seen["files"] if "sandbox" in name]


@pytest.mark.parametrize("ended", ["both", "the fork"])
def test_a_zygote_with_rare_modules_is_replaced_when_it_died_alone_or_with_its_parent(ended: str) -> None:
    stage = next(staged(LOOK, warm=True, environment={"SAID": ended}, rare_modules=RARE))
    before = zygote.pids()
    look(stage)
    made = zygote.pids() - before
    forked = {pid for pid in made if int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1]) in made}
    assert (len(made), len(forked)) == (2, 1)
    for pid in made if ended == "both" else forked:
        os.kill(pid, signal.SIGKILL)
    assert look(stage)["pid"] == 2


def test_a_program_that_fails_says_so_in_its_log() -> None:
    said = run(next(staged("raise SystemExit('the end')", warm=True)))
    assert said == "the end\n"


HOST = """
import os, sys
sys.path.insert(0, {root!r})
from tests.sandbox.test_zygote import staged
from forge.sandbox import zygote
from forge.sandbox.limits import Limits
from forge.sandbox.stage import OWN_BENCHMARK
said = "import time\\nprint('up', flush=True)\\ntime.sleep(3600)"
stage = next(staged(said, warm=True, rare_modules={rare!r}))
guest = stage.start(OWN_BENCHMARK, descriptors=(os.open(os.devnull, os.O_RDWR),), limits=Limits(), threads=2)
while "up" not in guest.log():
    pass
print(*zygote.pids(), flush=True)
import time; time.sleep(3600)
"""


@pytest.mark.parametrize("rare", [(), RARE])
def test_everything_ends_with_the_host(walls: Isolation, rare: tuple[str, ...]) -> None:
    del walls
    source = HOST.format(root=str(Path(__file__).parents[2]), rare=rare)
    host = subprocess.Popen([sys.executable, "-c", source], stdout=subprocess.PIPE, text=True)
    assert host.stdout is not None
    family = set(map(int, host.stdout.readline().split()))
    assert len(family) == 1 + len(rare)
    for pid in sorted(family):
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        family |= set(map(int, children))
    assert len(family) == 2 + len(rare)
    host.kill()
    host.wait()
    host.stdout.close()
    deadline_s = time.monotonic() + 60
    while any(Path(f"/proc/{one}").exists() for one in family):
        assert time.monotonic() < deadline_s
        time.sleep(0.02)


WHERE = """
maps = open("/proc/self/maps").read().splitlines()
print(next(line.split("-")[0] for line in maps if "libtorch_cpu" in line), flush=True)
"""


def test_guests_of_one_zygote_have_one_layout_and_those_of_a_new_one_another() -> None:
    stages = [next(staged(WHERE, warm=False, environment={"SAID": said})) for said in ("early", "late")]
    layouts = []
    for _ in range(2):
        fresh = stages[0].fresh_zygote(2)
        assert fresh is not None
        layouts.append({run(stage.forked_from(fresh)) for stage in stages})
        fresh.close()
        assert not fresh.alive()
    for stage in stages:
        stage.remove()
    assert [len(layout) for layout in layouts] == [1, 1]
    assert layouts[0] != layouts[1]


def test_a_guest_forked_from_anothers_zygote_has_the_variables_of_its_own_stage() -> None:
    mine, other = (next(staged(LOOK, warm=False, environment={"SAID": said})) for said in ("a", "b"))
    fresh = mine.fresh_zygote(2)
    assert fresh is not None
    seen = look(other.forked_from(fresh))
    fresh.close()
    for one in (mine, other):
        one.remove()
    assert isinstance(seen["environment"], dict)
    assert seen["environment"]["SAID"] == "b"
