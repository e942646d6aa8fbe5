"""How a tree of hostile processes is started, bounded and ended; every process here is real."""

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import confined
import pytest
from confined import SMALL

from forge.errors import EnvironmentUnfit
from forge.sandbox import launch, zygote
from forge.sandbox.confinement import plan
from forge.sandbox.isolation import Level

LONG_S = 60.0
"""Seconds that only a hang takes, however busy the machine is."""
WALLS = pytest.mark.usefixtures("walled")

ORPHAN = """
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.closerange(0, 100)
        open("/dev/null"); time.sleep(600)  # MARKER
    os._exit(0)
os.wait()
"""


@pytest.fixture
def isolation(request: pytest.FixtureRequest) -> Level:
    level: Level = request.param
    if level != "none":
        confined.require(level)
    return level


@pytest.fixture(autouse=True)
def nothing_is_left(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Each test here also checks that no descriptor, child, thread, mount or directory outlives its guest."""
    zygote.dismiss()
    temporary = tmp_path_factory.mktemp("temporary")
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    before, children = (os.listdir("/proc/self/fd"), Path("/proc/mounts").read_text()), own_children()
    yield
    assert eventually(lambda: not any(thread.name.startswith("guest-") for thread in threading.enumerate()))
    assert len(os.listdir("/proc/self/fd")) <= len(before[0])
    assert Path("/proc/mounts").read_text() == before[1]
    assert os.listdir(temporary) == []
    assert own_children() <= children  # an earlier test's may still be there


def own_children() -> set[int]:
    """Every process that this one started and hasn't waited for."""
    lists = Path("/proc/self/task").glob("*/children")
    return {int(pid) for one in lists for pid in one.read_text().split()}


def eventually(condition: Callable[[], bool], timeout_s: float = LONG_S) -> bool:
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


@WALLS
def test_torch_can_be_imported_inside() -> None:
    pytest.importorskip("torch")
    ended, log = confined.run(
        "import torch; print(torch.ones(4) @ torch.ones(4))",
        flags=("-I",),
        limits=replace(SMALL, wall_s=60, memory_bytes=4 << 30, processes=64, open_files=256),
    )
    assert ended.returncode == 0, log
    assert "tensor(4.)" in log


@pytest.mark.parametrize("isolation", ["namespaces", "bubblewrap", "none"], indirect=True)
def test_an_exit_tells_status_time_and_memory(isolation: Level) -> None:
    ended, _ = confined.run("x = bytearray(50 << 20); raise SystemExit(7)", isolation=isolation)
    assert (ended.returncode, ended.signal, ended.timed_out, ended.flooded) == (7, None, False, False)
    assert ended.cpu_s is not None
    assert 0 < ended.cpu_s < 5
    assert ended.max_rss_bytes is not None
    assert 50 << 20 < ended.max_rss_bytes < 200 << 20


@pytest.mark.parametrize("isolation", ["namespaces", "bubblewrap", "none"], indirect=True)
def test_a_signal_is_told_as_a_signal(isolation: Level) -> None:
    ended, _ = confined.run("import os; os.kill(os.getpid(), 11)", isolation=isolation)
    assert (ended.returncode, ended.signal) == (None, 11)


@pytest.mark.parametrize("isolation", ["namespaces", "bubblewrap", "none"], indirect=True)
def test_an_endless_loop_is_killed_at_the_wall_limit(isolation: Level) -> None:
    ended, _ = confined.run("while True: pass", isolation=isolation, limits=replace(SMALL, wall_s=0.4, cpu_s=5))
    assert ended.timed_out
    assert (ended.returncode, ended.signal) == (None, signal.SIGKILL), "it isn't ended by its processor seconds"


@WALLS
def test_processor_time_is_a_backstop() -> None:
    ended, _ = confined.run("while True: pass", limits=replace(SMALL, cpu_s=1))
    assert ended.signal == signal.SIGXCPU


@pytest.mark.parametrize("isolation", ["namespaces", "bubblewrap", "none"], indirect=True)
def test_endless_output_is_killed_and_kept_short(isolation: Level) -> None:
    with confined.launch("import os\nwhile True: os.write(1, b'\\x1b[2J' * 9999)", isolation=isolation) as guest:
        ended = guest.wait(LONG_S)
        assert ended is not None
        assert ended.flooded
        assert guest.flooded
        assert len(guest.log().encode()) <= SMALL.log_bytes + 64
        assert "\x1b" not in guest.log()


@WALLS
def test_too_much_memory_is_a_memory_error() -> None:
    ended, log = confined.run("bytearray(1 << 30)")
    assert ended.returncode == 1
    assert "MemoryError" in log


@WALLS
def test_a_file_cannot_grow_past_its_limit() -> None:
    _, log = confined.run(
        "f = open('/scratch/f', 'wb', buffering=0)\nfor _ in range(9): f.write(bytes(1 << 20))",
        limits=replace(SMALL, file_bytes=2 << 20),
    )
    assert "File too large" in log


@WALLS
def test_a_fork_bomb_is_bounded_and_leaves_nothing() -> None:
    program = """
    import os
    children = 0
    while True:
        try:
            if os.fork() == 0:
                while True:
                    try: os.fork()
                    except OSError: pass  # MARKER-bomb
            children += 1
        except OSError as error:
            print(children, error.errno, flush=True)
            break
    import time; time.sleep(600)
    """
    marker = f"marker-bomb-{os.getpid()}"
    with confined.launch(program.replace("MARKER-bomb", marker)) as guest:
        assert eventually(lambda: " 11" in guest.log())
        assert len(confined.host_processes(marker)) <= SMALL.processes
        guest.kill()
        assert confined.host_processes(marker) == []


@pytest.mark.parametrize("isolation", ["namespaces", "bubblewrap", "none"], indirect=True)
def test_an_orphan_in_a_session_of_its_own_is_gone_after_kill(isolation: Level) -> None:
    marker = f"marker-kill-{isolation}-{os.getpid()}"
    with confined.launch(ORPHAN.replace("MARKER", marker) + "time.sleep(600)", isolation=isolation) as guest:
        assert eventually(lambda: len(confined.host_processes(marker)) == 2)
        guest.kill()
        assert confined.host_processes(marker) == []
        ended = guest.poll()
        assert ended is not None
        assert ended.signal == signal.SIGKILL


@pytest.mark.parametrize("isolation", ["namespaces", "bubblewrap", "none"], indirect=True)
def test_an_orphan_is_gone_after_a_normal_exit(isolation: Level) -> None:
    marker = f"marker-exit-{isolation}-{os.getpid()}"
    ended, log = confined.run(ORPHAN.replace("MARKER", marker) + "print('done')", isolation=isolation)
    assert (ended.returncode, log) == (0, "done\n")
    assert confined.host_processes(marker) == []


@WALLS
def test_orphans_are_reaped_while_the_guest_runs() -> None:
    program = """
    import os, time
    for _ in range(200):  # more than may exist at once
        pid = os.fork()
        if pid == 0:
            if os.fork() == 0:
                os._exit(0)
            os._exit(0)
        os.waitpid(pid, 0)
        time.sleep(0.001)
    print(len([n for n in os.listdir("/proc") if n.isdigit()]) < 10)
    """
    ended, log = confined.run(program)
    assert (ended.returncode, log) == (0, "True\n")


@pytest.mark.parametrize("isolation", ["namespaces", "bubblewrap", "none"], indirect=True)
def test_killing_the_host_kills_the_tree(isolation: Level, tmp_path: Path) -> None:
    marker = f"marker-host-{isolation}-{os.getpid()}"
    paths = [str(Path(__file__).parent), str(Path(__file__).parents[2])]
    host = f"""
import sys, time
sys.path[:0] = {paths!r}
import confined
guest = confined.launch({(ORPHAN.replace("MARKER", marker) + "time.sleep(600)")!r}, isolation={isolation!r})
print(guest._process.pid, flush=True)
time.sleep(600)
"""
    environment = {**os.environ, "TMPDIR": str(tmp_path)}  # a killed host can't remove its directories
    command = [sys.executable, "-c", host]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as process:
        assert process.stdout is not None
        supervisor = int(process.stdout.readline())
        count = 3  # the host's own command line has the marker too
        assert eventually(lambda: len(confined.host_processes(marker)) == count)
        process.kill()
        process.wait()
        assert eventually(lambda: confined.host_processes(marker) == [])
        assert eventually(lambda: not confined.running(supervisor))


@pytest.mark.parametrize("isolation", ["namespaces", "bubblewrap", "none"], indirect=True)
def test_a_guest_outlives_the_thread_that_started_it(isolation: Level) -> None:
    started: list[launch.Guest] = []
    program = "import time; time.sleep(0.5); print('finished')"
    thread = threading.Thread(target=lambda: started.append(confined.launch(program, isolation=isolation)))
    thread.start()
    thread.join()
    with started[0] as guest:
        ended = guest.wait(LONG_S)
        assert ended is not None
        assert (ended.returncode, guest.log()) == (0, "finished\n")


@WALLS
def test_what_is_left_in_scratch_never_reaches_the_host() -> None:
    before = {name: set(os.listdir(name)) for name in ("/", "/tmp", "/dev/shm")}
    program = """
    import os
    for place in ("/scratch", "/tmp", "/dev/shm"):
        open(place + "/left-by-a-guest", "w").write("x")
        os.symlink("/etc/shadow", place + "/link-by-a-guest")
    """
    ended, log = confined.run(program)
    assert ended.returncode == 0, log
    for name, content in before.items():
        assert not {left for left in set(os.listdir(name)) - content if "by-a-guest" in left}


@WALLS
def test_two_guests_see_nothing_of_each_other() -> None:
    with confined.launch("open('/tmp/mine', 'w').write('x'); import time; time.sleep(600)") as first:
        # folders below /tmp may be there as places that Python is mounted at
        look = "import os; print('mine' in os.listdir('/tmp'), os.listdir('/scratch'), os.getpid())"
        ended, log = confined.run(look)
        assert (ended.returncode, log) == (0, "False [] 2\n")
        first.kill()


@WALLS
def test_a_pipe_ends_when_the_guest_closes_it() -> None:
    """Neither the supervisor nor PID 1 keeps a copy."""
    read_end, write_end = os.pipe()
    with confined.launch(
        "import os, time; os.write(3, b'x'); os.close(3); time.sleep(600)", descriptors=(write_end,)
    ):
        os.close(write_end)
        assert os.read(read_end, 10) == b"x"
        assert os.read(read_end, 10) == b""
    os.close(read_end)


@pytest.mark.parametrize("isolation", ["namespaces", "bubblewrap", "none"], indirect=True)
def test_a_program_that_does_not_exist_never_starts(isolation: Level) -> None:
    asked = replace(confined.confinement(""), argv=("/usr/bin/no-such-program",))
    with pytest.raises(EnvironmentUnfit, match=r"step 'execve' failed with errno 2"):
        launch.start(asked, isolation=isolation)


@WALLS
def test_a_wall_that_cannot_be_built_names_its_step(tmp_path: Path) -> None:
    tree = launch.Bind(tmp_path, "/tree")
    without_a_place = launch.Bind(tmp_path, "/tree/no-such-directory/x")  # and none can be made in it
    asked = confined.confinement("", binds=(tree, without_a_place))
    told = {"namespaces": r"step 'binds' failed with errno 30", "bubblewrap": r"mkdir .*/tree.*Read-only file system"}
    with pytest.raises(EnvironmentUnfit, match=told[confined.level]):
        launch.start(asked, isolation=confined.level)
    assert os.listdir(tmp_path) == []


@WALLS
def test_killing_the_supervisor_kills_the_tree() -> None:
    marker = f"marker-supervisor-{os.getpid()}"
    with confined.launch(ORPHAN.replace("MARKER", marker) + "time.sleep(600)") as guest:
        assert eventually(lambda: len(confined.host_processes(marker)) == 2)
        os.kill(guest._process.pid, signal.SIGKILL)
        ended = guest.wait(LONG_S)
        assert ended is not None
        assert ended.signal == signal.SIGKILL
        assert confined.host_processes(marker) == []


@WALLS
def test_a_checkout_inside_a_bound_tree_is_hidden_and_its_interpreter_is_not(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    (tmp_path / "project" / "venv").mkdir(parents=True)
    (tmp_path / "project" / "secret").write_text("source")
    (tmp_path / "project" / "venv" / "library").write_text("public")
    (tmp_path / "module.py").write_text("source")
    asked = replace(
        confined.confinement("""
            import os
            print(os.listdir("/tree/project"), open("/tree/project/venv/library").read())
            print(repr(open("/tree/module.py").read()))
            """),
        masked=("/tree/project", "/tree/module.py", "/tree/absent"),
    )
    nested = (
        launch.Bind(tmp_path, "/tree"),
        launch.Bind(tmp_path / "project" / "venv", "/tree/project/venv"),
    )
    with launch.start(replace(asked, binds=asked.binds + nested), isolation=confined.level) as guest:
        guest.wait(LONG_S)
        assert guest.log() == "['venv'] public\n''\n"


def test_a_confinement_that_makes_no_sense_is_refused(tmp_path: Path) -> None:
    base = confined.confinement("")
    for wrong in (
        replace(base, argv=()),
        replace(base, binds=(launch.Bind(tmp_path, "/scratch"),)),
        replace(base, binds=(launch.Bind(tmp_path, "/a/../etc"),)),
        replace(base, binds=(launch.Bind(tmp_path, "relative"),)),
        replace(base, binds=(launch.Bind(tmp_path, "/a"), launch.Bind(tmp_path, "/a"))),
        replace(base, devices=(tmp_path,)),
        replace(base, masked=("/",)),
    ):
        with pytest.raises(ValueError, match=r"expected|twice"):
            plan(wrong, "namespaces", "/scratch")


def test_without_walls_targets_become_paths_of_the_host(tmp_path: Path) -> None:
    (tmp_path / "given").write_text("hello")
    (tmp_path / "program.py").write_text("import os, sys; print(open(sys.argv[1]).read(), os.environ['P'])")
    asked = replace(
        confined.confinement("", environment={"P": "/given/a:/b"}),
        argv=(sys.executable, "-I", "/given/program.py", "/given/given"),
        binds=(launch.Bind(tmp_path, "/given"),),
    )
    with launch.start(asked, isolation="none") as guest:
        ended = guest.wait(LONG_S)
        assert ended is not None
        assert (ended.returncode, guest.log()) == (0, f"hello {tmp_path}/a:/b\n")
        assert guest.isolation.level == "none"
        assert "user_ns" in guest.isolation.missing


def test_runtime_binds_hold_no_home_and_no_accounts() -> None:
    targets = {bind.target for bind in launch.runtime_binds()}
    assert not any(bind.writable for bind in launch.runtime_binds())
    assert str(Path.home()) not in targets
    assert not targets & {"/", "/etc", "/home", "/root", "/var", "/etc/passwd"}
