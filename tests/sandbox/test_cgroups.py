"""Groups are made where this user may make them, and nothing of them is left."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import confined
import pytest

from forge.sandbox import cgroups

PLACES = {
    place.directory for one in cgroups.CONTROLLERS if isinstance(place := cgroups.find(one), cgroups.CgroupPlace)
}

needs_groups = pytest.mark.skipif(not PLACES, reason="this user can make no cgroup here")


def groups(pid: int | None = None) -> set[str]:
    """The groups that a process has made, this one unless said otherwise."""
    owner = f"-{pid or os.getpid()}-"
    return {entry.name for place in PLACES for entry in place.iterdir() if owner in entry.name}


def test_what_is_missing_is_explained() -> None:
    lacking = dict(cgroups.explain())
    for controller in cgroups.CONTROLLERS:
        reached = isinstance(cgroups.find(controller), cgroups.CgroupPlace)
        assert (cgroups.PARTS[controller] in lacking) is not reached
    assert all(one.reason and one.hint for one in lacking.values())


@needs_groups
@pytest.mark.usefixtures("walled")
def test_a_guest_is_in_a_group_of_its_own_from_its_first_instruction_and_the_group_ends_with_it() -> None:
    before = groups()
    with confined.launch("import os, time; print(os.getpid(), flush=True); time.sleep(30)  # marker-group") as guest:
        made = groups() - before
        (pid,) = confined.host_processes("marker-group")
        membership = Path(f"/proc/{pid}/cgroup").read_text()
        assert any(name in membership for name in made)
        assert set(cgroups.PARTS.values()) & set(guest.isolation.parts)
        guest.kill()
    assert not made & groups()


@needs_groups
@pytest.mark.usefixtures("walled")
def test_a_start_that_fails_leaves_no_group() -> None:
    before = groups()
    asked = replace(confined.confinement(""), argv=("/usr/bin/no-such-program",))
    with pytest.raises(Exception, match="execve"):
        confined.start(asked, isolation=confined.level)
    assert groups() <= before


@needs_groups
def test_a_dead_hosts_groups_are_swept_and_no_others() -> None:
    (place, *_) = sorted(PLACES)
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as living:
        namespace = os.stat("/proc/self/ns/pid").st_ino
        ticks = cgroups._start_ticks(living.pid)
        names = {
            "alive": f"forge-{namespace}-{living.pid}-{ticks}-0",
            "number used again": f"forge-{namespace}-{living.pid}-{(ticks or 0) - 1}-0",
            "dead": f"forge-{namespace}-{2**22 + 1}-1-0",
            "another machine's, as far as we can see": f"forge-{namespace + 1}-{2**22 + 1}-1-0",
            "a stranger's": "forge-is-also-a-blacksmith",
        }
        try:
            for name in names.values():
                (place / name).mkdir()
            cgroups.sweep(place)
            left = {what for what, name in names.items() if (place / name).exists()}
        finally:
            for name in names.values():
                if (place / name).exists():
                    (place / name).rmdir()
            living.kill()
    assert left == {"alive", "another machine's, as far as we can see", "a stranger's"}


@needs_groups
@pytest.mark.usefixtures("walled")
def test_a_killed_hosts_group_is_gone_after_the_next_start() -> None:
    paths = [str(Path(__file__).parent), str(Path(__file__).parents[2])]
    host = f"""
import sys, time
sys.path[:0] = {paths!r}
import confined
guest = confined.launch("import time; time.sleep(60)", isolation={confined.level!r})
print("started", flush=True)
time.sleep(60)
"""
    with subprocess.Popen([sys.executable, "-c", host], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert groups(process.pid)
        process.send_signal(signal.SIGKILL)
        process.wait()
        for _ in range(1200):  # its tree is still ending
            for place in PLACES:
                cgroups.sweep(place)
            if not groups(process.pid):
                break
            time.sleep(0.05)
        assert not groups(process.pid)


@pytest.mark.parametrize(
    ("events", "excess"),
    [
        ("low 0\nhigh 0\nmax 12\noom 0\noom_kill 0\noom_group_kill 0\n", None),
        ("low 0\nhigh 0\nmax 12\noom 1\noom_kill 3\noom_group_kill 1\n", "total"),
        ("low 0\nhigh 0\nmax 0\noom 0\noom_kill 1\noom_group_kill 0\n", "machine"),
        ("oom_kill_disable 0\nunder_oom 0\noom_kill 1\n\noom 7\n", "total"),
        ("oom_kill_disable 0\nunder_oom 0\noom_kill 1\n\noom 0\n", "machine"),
        ("oom_kill_disable 0\nunder_oom 0\noom_kill 1\n", "total"),
    ],
)
def test_a_process_killed_below_the_groups_limit_is_held_against_the_machine(events: str, excess: str | None) -> None:
    assert cgroups.excess_in(events) == excess
