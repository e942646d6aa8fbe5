"""Guests that want to hurt the machine: each is ended in time, leaves no process, and takes no more than it may."""

import os
import time
from dataclasses import replace
from pathlib import Path

import confined
import pytest

from forge.sandbox.launch import Exit

pytestmark = pytest.mark.usefixtures("walled")

TIGHT = replace(confined.SMALL, memory_bytes=256 << 20)
"""256 MiB for one process, 264 for all together."""
SLACK_S = 60.0
"""Seconds after its time limit in which a guest is ended, even on a busy machine. Programs that sleep take longer."""

TAKE = """
import ctypes, mmap, os, socket, sys, threading, time
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
def touched(size):
    taken = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    for at in range(0, size, 4096):
        taken[at] = 1
    return taken
"""

TOO_MUCH_TOGETHER = {
    "many processes, each within its limit": """
        for _ in range(8):
            if os.fork() == 0:
                kept = touched(100 << 20); time.sleep(3600)
        time.sleep(3600)
        """,
    "orphans in sessions of their own": """
        for _ in range(8):
            if os.fork() == 0:
                os.setsid()
                if os.fork() == 0:
                    kept = touched(100 << 20); time.sleep(3600)
                os._exit(0)
        time.sleep(3600)
        """,
    "shared memory without a name": """
        kept = mmap.mmap(-1, 1 << 30)
        for at in range(0, 1 << 30, 4096):
            kept[at] = 1
        time.sleep(3600)
        """,
    "shared memory that no page table shows": """
        kept = mmap.mmap(-1, 1 << 30)
        for start in range(0, 1 << 30, 1 << 20):
            for at in range(start, start + (1 << 20), 4096):
                kept[at] = 1
            kept.madvise(mmap.MADV_DONTNEED, start, 1 << 20)
        time.sleep(3600)
        """,
    "page tables for zeros": """
        size, step = 256 << 30, 2 << 20
        start = libc.mmap(None, size, 1, 0x4022, -1, 0)  # readable, private, anonymous, without a reserve
        for at in range(start, start + size, step):
            ctypes.c_char.from_address(at).value
        time.sleep(3600)
        """,
}


def suffer(program: str, **rest: object) -> tuple[Exit, str]:
    """Run it to its end, and check that its limits ended it, and everything with it."""
    marker = f"marker-damage-{os.getpid()}-{time.monotonic_ns()}"
    indented = "\n".join(line.removeprefix("        ") for line in program.splitlines())
    asked = {"limits": TIGHT, **rest}
    with confined.launch(f"{TAKE}\n{indented}\n# {marker}", **asked) as guest:
        ended = guest.wait(asked["limits"].wall_s + SLACK_S)
        assert ended is not None, "it is still running"
        assert confined.host_processes(marker) == []
        return ended, guest.log()


@pytest.mark.parametrize("attack", TOO_MUCH_TOGETHER)
def test_a_tree_cannot_take_more_than_its_total(attack: str) -> None:
    ended, log = suffer(TOO_MUCH_TOGETHER[attack], limits=TIGHT)
    assert ended.excess == "total", (ended, log)


def test_one_process_cannot_take_more_than_its_limit() -> None:
    ended, log = suffer("kept = []\nwhile True: kept.append(touched(1 << 20))")
    assert (ended.returncode, ended.excess) == (1, None)
    assert "Cannot allocate memory" in log


def test_what_is_shared_with_the_host_is_not_the_guests_and_children_share_theirs(tmp_path: Path) -> None:
    """A full arena and many children that only look at their parent's memory are within the limit."""
    program = """
        given = mmap.mmap(3, 400 << 20)
        sum(given[at] for at in range(0, len(given), 4096))
        kept = touched(100 << 20)
        children = []
        for _ in range(5):
            if (pid := os.fork()) == 0:
                assert sum(kept[at] for at in range(0, len(kept), 4096)) == len(kept) // 4096
                time.sleep(1); os._exit(0)
            children.append(pid)
        print([os.waitpid(pid, 0)[1] for pid in children])
        """
    with (tmp_path / "arena").open("w+b") as arena:
        os.ftruncate(arena.fileno(), 400 << 20)
        for _ in range(400):
            arena.write(b"x" * (1 << 20))
        arena.flush()
        ended, log = suffer(program, descriptors=(arena.fileno(),), limits=TIGHT)
    assert (ended.returncode, log) == (0, "[0, 0, 0, 0, 0]\n")


KERNEL_MEMORY = {
    "pipes": """
        def fill():
            while True:
                read, write = os.pipe()
                os.set_blocking(write, False)
                try:
                    libc.fcntl(write, 1031, 1 << 20)
                    while True: os.write(write, bytes(1 << 16))
                except BlockingIOError: pass
        """,
    "sockets": """
        def fill():
            while True:
                kept.append(socket.socketpair())
                kept[-1][0].setblocking(False)
                try:
                    while True: kept[-1][0].send(bytes(1 << 16))
                except BlockingIOError: pass
        """,
    "datagrams": """
        def fill():
            while True:
                kept.append(socket.socketpair(type=socket.SOCK_DGRAM))
                kept[-1][0].setblocking(False)
                try:
                    while True: kept[-1][0].send(b"x")
                except BlockingIOError: pass
        """,
    "epoll and eventfd": """
        import select
        def fill():
            while True:
                epoll = select.epoll(); kept.append(epoll)
                for number in range(40): epoll.register(os.eventfd(0), 1)
        """,
    "inotify": """
        def fill():
            while True:
                if (number := libc.inotify_init()) < 0: raise OSError
                for n in range(1000):
                    path = f"/tmp/{os.getpid()}/{n}"
                    os.makedirs(path)
                    libc.inotify_add_watch(number, path.encode(), 2)
        """,
    "mappings": """
        def fill():
            while True:
                if libc.mmap(None, 4096, (n := len(kept)) % 2, 0x22, -1, 0) == 2**64 - 1: raise OSError
                kept.append(n)
        """,
}


@pytest.mark.parametrize("attack", KERNEL_MEMORY)
def test_kernel_memory_has_a_bound(attack: str) -> None:
    """Every process takes until it is refused: the limits on files and processes, or on memory, end that."""
    program = f"""{KERNEL_MEMORY[attack]}
        kept = []
        for _ in range(6):
            if os.fork() == 0:
                try: fill()
                except (OSError, MemoryError): pass
                time.sleep(3600)
        time.sleep(3600)
        """
    ended, log = suffer(program, limits=replace(TIGHT, wall_s=1))
    assert ended.timed_out or ended.excess is not None or ended.signal == 9
    assert log == ""


MQ_OPEN, KEYCTL = (240, 250) if os.uname().machine == "x86_64" else (180, 219)

REFUSED = {
    "raise a limit": "resource.setrlimit(resource.RLIMIT_NPROC, (9999, 9999))",
    "raise the file limit": "resource.setrlimit(resource.RLIMIT_FSIZE, (-1, -1))",
    "be the last to be killed": "open('/proc/self/oom_score_adj', 'w').write('-1000')",
    "go first": "os.nice(-20)",
    "go before everyone": "os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50))",
    "lock memory": "checked(libc.mlock(ctypes.c_void_p(start), ctypes.c_size_t(128 << 20)))",
    "lock all to come": "checked(libc.mlockall(3) or libc.mlock(ctypes.c_void_p(start), ctypes.c_size_t(128 << 20)))",
    "memory that is a file": "os.memfd_create('x')",
    "memory of System V": "checked(libc.shmget(0, 1 << 20, 0o1600))",
    "semaphores of System V": "checked(libc.semget(0, 30000, 0o1600))",
    "messages of System V": "checked(libc.msgget(0, 0o1600))",
    "a large queue": f"checked(libc.syscall({MQ_OPEN}, b'q', 0o102, 0o600, (ctypes.c_long * 8)(0, 10, 9 << 20)))",
    "keys": f"checked(libc.syscall({KEYCTL}, 0, -3, 0))",
    "a name from nowhere": "checked(libc.prctl(15, ctypes.c_void_p(1), 0, 0, 0))",
    "another root": "os.chroot('/scratch')",
    "the clock": "time.clock_settime(time.CLOCK_REALTIME, 0)",
    "the host's name": "socket.sethostname('x' * 60)",
}


@pytest.mark.parametrize("attack", REFUSED)
def test_what_reaches_past_the_guest_is_refused(attack: str) -> None:
    program = f"""
        import resource
        start = libc.mmap(None, 128 << 20, 3, 0x22, -1, 0)
        def checked(result):
            if result < 0: raise OSError(ctypes.get_errno(), "refused")
        try:
            {REFUSED[attack]}
            print("worked")
        except (OSError, ValueError, AttributeError) as error:
            print("refused", type(error).__name__)
        """
    ended, log = suffer(program)
    assert (ended.returncode, log.split()[0]) == (0, "refused"), log


LASTING = {
    "a fork bomb": """
        while True:
            try: os.fork()
            except OSError: pass
        """,
    "a bomb of threads": """
        def grow():
            while True:
                try: threading.Thread(target=grow).start()
                except RuntimeError: time.sleep(0.01)
        grow()
        """,
    "a bomb of orphans": """
        while True:
            try:
                if os.fork() == 0:
                    os.setsid()
                    if os.fork(): os._exit(0)
            except OSError: pass
        """,
    "stopping everyone": """
        if os.fork() == 0:
            os.kill(-1, 19)
        os.kill(os.getpid(), 19)
        """,
    "closing everything": """
        os.closerange(0, 1 << 16)
        time.sleep(3600)
        """,
    "killing its parent": """
        for number in range(1, 65):
            try: os.kill(os.getppid(), number)
            except OSError: pass
        time.sleep(3600)
        """,
    "ignoring every signal": """
        import signal
        for number in signal.valid_signals() - {9, 19}:
            try: signal.signal(number, signal.SIG_IGN)
            except OSError: pass
        while True: pass
        """,
    "locks without end": """
        import fcntl
        file = open("/scratch/f", "w")
        for at in range(0, 1 << 40, 2):
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, at)
        """,
    "files without end": """
        for number in range(1 << 40):
            try: open(f"/scratch/{number}", "w").close()
            except OSError: pass
        """,
    "one big sleep in the kernel": """
        libc.vfork.restype = ctypes.c_int
        if libc.vfork() == 0:
            while True: pass
        """,
}


@pytest.mark.parametrize("attack", LASTING)
def test_what_never_ends_by_itself_is_ended(attack: str) -> None:
    ended, log = suffer(LASTING[attack], limits=replace(TIGHT, wall_s=0.7))
    # with many processors a bomb of processes takes more than its memory before its time is over
    assert ended.timed_out or ended.excess == "total", (ended, log)


def test_the_end_of_the_first_process_ends_them_all() -> None:
    ended, log = suffer("""
        for _ in range(5):
            if os.fork() == 0:
                os.setsid()
                while True: pass
        print("gone")
        """)
    assert (ended.returncode, ended.timed_out, log) == (0, False, "gone\n")
