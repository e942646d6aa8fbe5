"""What a hostile program finds behind the walls: each attack is one expression that must fail in one way."""

import json
import os
import socket
import struct
import sys
from pathlib import Path

import confined
import pytest

from forge.sandbox import limits
from forge.sandbox.guest_entry import kernel, seccomp
from forge.sandbox.guest_entry.syscalls import AUDIT_ARCH, FCNTL, REFUSED, REFUSED_CHOICES, WITHOUT_DEVICES

pytestmark = pytest.mark.usefixtures("walled")

HARNESS = """
import ctypes, json, os, signal, socket, resource, sys
libc = ctypes.CDLL(None, use_errno=True)
def call(number, *arguments):
    ctypes.set_errno(0)
    result = libc.syscall(number, *[ctypes.c_long(a) if isinstance(a, int) else a for a in arguments])
    return "worked" if result >= 0 else ctypes.get_errno()
def errno_of(f, *arguments):
    try:
        f(*arguments)
        return "worked"
    except OSError as error:
        return error.errno or type(error).__name__
    except Exception as error:
        return type(error).__name__
seen = {}
for name, text in json.loads(sys.argv[1]).items():
    seen[name] = eval(text)
os.write(3, json.dumps(seen).encode())
"""

ARCH = os.uname().machine
NR = REFUSED.get(ARCH, {})
EPERM, ENOENT, ESRCH, EACCES, EROFS, ENOSYS, ENETUNREACH = 1, 2, 3, 13, 30, 38, 101


def ask(questions: dict[str, str], **rest: object) -> dict[str, object]:
    read_end, write_end = os.pipe()
    try:
        asked = confined.confinement(HARNESS, descriptors=(write_end,), **rest)  # type: ignore[arg-type]
        asked = type(asked)(**{**vars(asked), "argv": (*asked.argv, json.dumps(questions))})
        with confined.start(asked, isolation=confined.level) as guest:
            os.close(write_end)
            write_end = -1
            ended = guest.wait(confined.WALL_S + 60)
            assert ended is not None
            assert ended.returncode == 0, guest.log()
            answers = json.loads(os.read(read_end, 1 << 20))
            assert isinstance(answers, dict)
            return answers
    finally:
        os.close(read_end)
        if write_end >= 0:
            os.close(write_end)


def test_every_privileged_system_call_is_refused() -> None:
    answers = ask({name: f"call({number}, 0, 0, 0, 0, 0, 0)" for name, number in NR.items()})
    assert answers == dict.fromkeys(NR, EPERM)


def test_a_guest_leaves_the_kernel_no_work_for_the_time_in_which_it_is_stopped() -> None:
    """A timer that a stopped process has set goes off while another process is timed."""
    functions = {"timer_create": "1, 0, bytes(8)", "timerfd_create": "1, 0", "signalfd": "-1, bytes(128), 0"}
    said = {name: f"(libc.{name}({arguments}), ctypes.get_errno())" for name, arguments in functions.items()}
    assert ask(said) == {name: [-1, EPERM] for name in functions}
    numbers = {name: f"call({number}, 0, 0, 0, 0)" for name, number in WITHOUT_DEVICES[ARCH].items()}
    assert ask(numbers) == dict.fromkeys(numbers, EPERM)


def test_a_guest_may_not_make_the_kernel_favour_it_while_it_is_timed() -> None:
    """By a core of its own, by operands in huge pages, or by work for it while another side is timed."""
    choices = REFUSED_CHOICES[ARCH]
    (prctl, _, _), (madvise, _, _) = choices["PR_SCHED_CORE"], choices["MADV_COLLAPSE"]
    refused = {
        name: f"call({number}, *[{value} * (at == {place}) for at in range(5)])"
        for name, (number, place, value) in choices.items()
    }
    may_be_traced, not_needed = 3, 4
    allowed = {
        "ask whether it may be traced": f"call({prctl}, {may_be_traced}, 0, 0, 0, 0)",
        "need no pages": f"call({madvise}, 0, 0, {not_needed})",
    }
    assert ask({**refused, **allowed}) == {**dict.fromkeys(refused, EPERM), **dict.fromkeys(allowed, "worked")}


def test_no_guest_learns_by_a_file_that_another_one_is_there() -> None:
    """Locks seem to succeed for everybody; leases and notices are refused."""
    two = "[os.open('/usr/bin/env', os.O_RDONLY) for _ in range(2)]"
    locked = {
        "flock": f"[errno_of(__import__('fcntl').flock, one, 6) for one in {two}]",
        "open files": f"[call({FCNTL[ARCH]}, one, 37, b'\\x01' + bytes(63)) for one in {two}]",
    }
    refused = {name: f"call({number}, 0)" for name, number in WITHOUT_DEVICES[ARCH].items() if "inotify" in name}
    leases = {str(command): f"call({FCNTL[ARCH]}, 0, {command}, 0)" for command in (1024, 1026)}
    answers = ask({**locked, **refused, **leases})
    assert answers == {**dict.fromkeys(locked, ["worked"] * 2), **dict.fromkeys((*refused, *leases), EPERM)}


def test_new_namespaces_by_any_call_are_refused() -> None:
    clone = seccomp.CLONE[ARCH]
    questions = {
        hex(flag): f"call({clone}, {flag} | 17, 0, 0, 0, 0)"
        for flag in (0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000)
    }
    answers = ask({**questions, "clone3": "call(435, 0, 0)"})
    assert answers == {**dict.fromkeys(questions, EPERM), "clone3": ENOSYS}


@pytest.mark.skipif(ARCH != "x86_64", reason="x32 is an x86_64 convention")
def test_another_calling_convention_kills_the_process() -> None:
    ended, _ = confined.run("import ctypes; ctypes.CDLL(None).syscall(0x40000000 | 39)")
    assert ended.signal == 31  # SIGSYS


def test_the_filter_never_jumps_past_its_end() -> None:
    for machine in AUDIT_ARCH:
        code = seccomp.program(machine)
        for at, (operation, yes, no, _) in enumerate(code):
            if operation & 7 == 5:  # a jump
                assert at + 1 + max(yes, no) < len(code)
        assert len(b"".join(struct.pack("=HBBI", *each) for each in code)) == 8 * len(code)


def test_a_step_that_fails_is_named(tmp_path: Path) -> None:
    with pytest.raises(kernel.StepFailed) as caught, kernel.step("a wall"):
        os.stat(tmp_path / "missing")
    assert (caught.value.step, caught.value.errno) == ("a wall", ENOENT)


def test_the_network_is_closed() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        answers = ask(
            {
                "connect to the host": f"errno_of(socket.create_connection, ('127.0.0.1', {port}), 1)",
                "connect outside": "errno_of(socket.create_connection, ('1.1.1.1', 443), 1)",
                "udp": "errno_of(socket.socket(2, 2).sendto, b'x', ('1.1.1.1', 53))",
                "dns": "errno_of(socket.getaddrinfo, 'example.org', 443)",
                "bind": "errno_of(socket.socket().bind, ('0.0.0.0', 8080))",
                "vsock": "errno_of(socket.socket, 40, 1)",
                "netlink": "errno_of(socket.socket, 16, 3)",
                "packet": "errno_of(socket.socket, 17, 3)",
            }
        )
    assert answers.pop("connect to the host") in {EACCES, ENETUNREACH}
    assert answers.pop("connect outside") in {EACCES, ENETUNREACH}
    assert answers.pop("udp") == ENETUNREACH
    assert answers.pop("bind") == EACCES
    assert answers.pop("dns") != "worked"
    assert answers == dict.fromkeys(("vsock", "netlink", "packet"), 97)


def test_files_of_the_host_do_not_exist(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.db"
    ledger.write_text("answers")
    repository = Path(__file__).resolve().parents[2]
    hidden = (
        *("/etc/shadow", "/var", "/sys", "/run", "/boot", "/.host"),
        *(str(Path.home() / name) for name in (".bashrc", ".ssh", ".config", ".cache")),
        *(str(ledger), str(tmp_path), str(repository / "pyproject.toml"), str(repository / ".git")),
        *(str(repository / "forge"), "/dev/vda", "/dev/kvm", "/dev/fuse", "/dev/tty", "/dev/mem"),
    )
    needed = (Path(sys.prefix), Path(sys.base_prefix))  # the folders above them are places that they're mounted at
    hidden = tuple(path for path in hidden if not any(tree.is_relative_to(path) for tree in needed))
    answers = ask({path: f"errno_of(os.stat, {path!r})" for path in hidden})
    assert answers == dict.fromkeys(hidden, ENOENT)


def test_the_only_account_is_the_guest() -> None:
    assert ask({"passwd": "open('/etc/passwd').read()"})["passwd"] == "guest:x:65534:65534::/scratch:/bin/sh\n"


def test_forge_can_neither_be_imported_nor_found() -> None:
    repository = str(Path(__file__).resolve().parents[2])
    packages = next(path for path in sys.path if path.endswith("site-packages"))
    answers = ask(
        {
            "import": "errno_of(__import__, 'forge')",
            "package": f"errno_of(os.listdir, {packages + '/forge'!r})",
            "pointers": f"[n for n in os.listdir({packages!r}) if n.endswith('.pth') and "
            f"{repository!r} in open(os.path.join({packages!r}, n)).read()]",
            "path": f"{repository!r} in sys.path",
            "site-packages are there": f"{packages!r} in sys.path",
            "init's command line": "open('/proc/1/cmdline').read().strip(chr(0))",
        },
        flags=("-I",),
    )
    assert answers["package"] in {ENOENT, "worked"}  # absent, or an empty directory: the import says which
    assert {name: answers[name] for name in answers if name != "package"} == {
        "import": "ModuleNotFoundError",
        "pointers": [],
        "path": False,
        "site-packages are there": True,
        "init's command line": "",
    }


def test_bound_trees_and_the_root_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "given").write_text("original")
    tmp_path.chmod(0o777)
    (tmp_path / "given").chmod(0o666)
    bind = confined.Bind(tmp_path, "/given")
    flags = os.O_WRONLY | os.O_CREAT
    answers = ask(
        {
            "read": "open('/given/given').read()",
            "overwrite": f"errno_of(os.open, '/given/given', {flags})",
            "create": f"errno_of(os.open, '/given/new', {flags})",
            "remove": "errno_of(os.unlink, '/given/given')",
            "interpreter": f"errno_of(os.open, os.path.realpath(sys.executable), {flags})",
            "usr": f"errno_of(os.open, '/usr/new', {flags})",
            "root": f"errno_of(os.open, '/new', {flags})",
            "etc": f"errno_of(os.open, '/etc/passwd', {flags})",
            "dev": "errno_of(os.mknod, '/dev/new')",
            "proc": f"errno_of(os.open, '/proc/self/oom_score_adj', {flags})",
            "device node": "errno_of(os.mknod, '/scratch/node', 0o20666, os.makedev(1, 1))",
            "list the root": "errno_of(os.listdir, '/')",
        },
        binds=(bind,),
    )
    assert answers.pop("read") == "original"
    assert set(answers.values()) <= {EACCES, EROFS, EPERM}
    assert (tmp_path / "given").read_text() == "original"


def test_a_guest_with_devices_can_name_its_threads_and_nothing_more_in_proc() -> None:
    """CUDA needs the first; a device that every machine has stands for a GPU here."""
    writing = os.O_WRONLY
    names = ("sys/kernel/core_pattern", "sys/vm/overcommit_memory", "sysrq-trigger", "sys/kernel/hostname")
    refused = (*names, "1/comm", "1/oom_score_adj", "kmsg", "kcore")
    questions = {name: f"errno_of(os.open, '/proc/{name}', {writing})" for name in refused}
    own = {"own": "open(f'/proc/self/task/{os.getpid()}/comm', 'w').write('named')"}
    answers = ask({**own, **questions}, devices=(Path("/dev/tty"),) if Path("/dev/tty").exists() else ())
    assert answers.pop("own") == 5
    assert "worked" not in answers.values()


def test_a_writable_bind_takes_files(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    bind = confined.Bind(tmp_path, "/out", writable=True)
    ask({"write": "open('/out/made', 'w').write('by the guest')"}, binds=(bind,))
    assert (tmp_path / "made").read_text() == "by the guest"


def test_the_environment_is_only_what_was_given() -> None:
    given = {"GIVEN": "yes", "HOME": "/scratch"}
    text = ask({"environ": "open('/proc/self/environ').read()"}, environment=given)["environ"]
    assert text == "GIVEN=yes\0HOME=/scratch\0"


def test_the_hosts_groups_identity_and_programs_have_no_names() -> None:
    answers = ask(
        {
            "groups": "[line for line in open('/proc/self/cgroup') if line.rstrip().split(':', 2)[2] != '/']",
            "uid": "open('/proc/self/uid_map').read().split()[0]",
            "init": "errno_of(os.readlink, '/proc/1/exe')",
            "sys": "errno_of(os.listdir, '/sys')",
            "us": "errno_of(os.listdir, '/.enter')",
            "our code": "errno_of(open, '/.enter/forge/sandbox/guest_entry/seccomp.py')",
        }
    )
    assert answers.pop("us") in {EACCES, ENOENT}
    assert answers.pop("our code") in {EACCES, ENOENT}
    assert answers == {"groups": [], "uid": "65534", "init": EACCES, "sys": ENOENT}


def test_only_the_given_descriptors_are_open() -> None:
    leaked = os.open("/etc/passwd", os.O_RDONLY)
    os.set_inheritable(leaked, True)
    read_end, write_end = os.pipe()
    try:
        program = """
        import os
        links = {}
        for name in os.listdir("/proc/self/fd"):
            try:
                links[int(name)] = os.readlink(f"/proc/self/fd/{name}")
            except FileNotFoundError:
                pass  # the listing's own
        os.write(3, b"three"); os.write(5, b"five")
        print(sorted(links), links[0], links[1] == links[2])
        """
        third_read, third_write = os.pipe()
        ended, log = confined.run(program, descriptors=(write_end, read_end, third_write))
        assert ended.returncode == 0, log
        assert log.split("\n")[0] == "[0, 1, 2, 3, 4, 5] /dev/null True"
        assert os.read(read_end, 100) == b"three"
        assert os.read(third_read, 100) == b"five"
    finally:
        for number in (leaked, read_end, write_end, third_read, third_write):
            os.close(number)


def test_the_guest_is_nobody_without_privileges() -> None:
    answers = ask(
        {
            "ids": "[*os.getresuid(), *os.getresgid(), os.getgroups()]",
            "status": "dict(l.strip().partition(':\\t')[::2] for l in open('/proc/self/status'))",
            "become root": "errno_of(os.setuid, 0)",
            "map": "open('/proc/self/uid_map').read().split()",
            "hostname": "socket.gethostname()",
            "session": "os.getsid(0) == os.getpid()",
            "core": "resource.getrlimit(resource.RLIMIT_CORE)",
            "oom": "open('/proc/self/oom_score_adj').read()",
        }
    )
    status = answers.pop("status")
    assert isinstance(status, dict)
    assert {status[name] for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == {"0" * 16}
    assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")
    mapped = answers.pop("map")
    assert isinstance(mapped, list)
    assert mapped[0] == "65534"
    assert mapped[2] == "1"
    assert answers == {
        "ids": [65534] * 6 + [answers["ids"][-1]],  # type: ignore[index]
        "become root": 22,
        "hostname": "guest",
        "session": True,
        "core": [0, 0],
        "oom": "1000\n",
    }


def test_the_guest_is_not_root_on_the_host() -> None:
    with confined.launch(f"import time; time.sleep(3600)  # marker-uid-{os.getpid()}") as guest:
        (pid,) = confined.host_processes(f"marker-uid-{os.getpid()}")
        status = Path(f"/proc/{pid}/status").read_text()
        (line,) = (line for line in status.splitlines() if line.startswith("Uid:"))
        expected = "65534" if os.getuid() == 0 else str(os.getuid())
        assert line.split()[1:] == [expected] * 4
        guest.kill()


def test_processes_of_the_host_cannot_be_signalled_or_seen() -> None:
    answers = ask(
        {
            "host": f"errno_of(os.kill, {os.getpid()}, 9)",
            "everyone": "errno_of(os.kill, -1, 9)",
            "init": "errno_of(os.kill, 1, 9)",
            "init by every signal": "[errno_of(os.kill, 1, n) for n in range(1, 32)] and None",
            "init is alive": "errno_of(os.kill, 1, 0)",
            "processes": "sorted(int(n) for n in os.listdir('/proc') if n.isdigit())",
            "init's memory": "errno_of(open, '/proc/1/mem', 'r+b')",
            "init's files": "errno_of(os.listdir, '/proc/1/fd')",
            "init's environment": "errno_of(open, '/proc/1/environ')",
            "parent": "os.getppid()",
        }
    )
    assert answers.pop("host") == ESRCH
    assert answers.pop("everyone") in {ESRCH, EPERM}
    assert answers.pop("init") in {"worked", EPERM}  # the kernel drops it
    assert answers.pop("init is alive") in {"worked", EPERM}
    assert answers.pop("init by every signal") is None
    assert answers == {
        "processes": [1, 2],
        "init's memory": EACCES,
        "init's files": EACCES,
        "init's environment": EACCES,
        "parent": 1,
    }


def test_scratch_is_bounded_and_harms_nobody() -> None:
    program = """
    import errno, os
    total = 0
    for directory in ("/scratch", "/tmp", "/dev/shm"):
        try:
            for number in range(100):
                with open(f"{directory}/{number}", "wb", buffering=0) as file:
                    total += file.write(bytes(1 << 20))
        except OSError as error:
            assert error.errno == errno.ENOSPC, error
    os.unlink("/scratch/0")
    open("/scratch/again", "wb").write(b"x")
    print(total)
    """
    ended, log = confined.run(program)
    assert ended.returncode == 0, log
    assert 7 << 20 <= int(log) <= 8 << 20


def test_limits_must_be_above_zero() -> None:
    for bad in (0, -1, float("nan")):
        with pytest.raises(ValueError, match="wall_s"):
            limits.Limits(wall_s=bad)
