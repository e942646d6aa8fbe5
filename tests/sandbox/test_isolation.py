import os
import subprocess
import sys

import pytest

from forge.sandbox.isolation import LEVELS, REQUIRED, at_least, judge
from forge.sandbox.probe import probe


def test_the_probe_reports_every_wall_or_none() -> None:
    probed = probe()
    assert probed is probe()
    if probed.level == "none":
        assert set(probed.missing) & set(REQUIRED)
    else:
        assert not set(probed.missing) & set(REQUIRED)
        assert {"user_ns", "pid_ns", "mount_ns", "net_ns", "ipc_ns", "uts_ns", "seccomp"} <= set(probed.parts)


@pytest.mark.parametrize("absent", REQUIRED)
def test_one_missing_wall_is_no_isolation(absent: str) -> None:
    parts = [part.replace("landlock", "landlock_abi_1") for part in REQUIRED if part != absent]
    judged = judge(parts)
    assert judged.level == "none"
    assert absent in judged.missing


def test_a_level_is_at_least_itself_and_what_is_weaker() -> None:
    assert [[at_least(level, minimum) for minimum in LEVELS] for level in LEVELS] == [
        [True, False],
        [True, True],
    ]


def test_an_unknown_level_is_refused() -> None:
    with pytest.raises(ValueError, match="bubble"):
        at_least("bubble", "none")  # type: ignore[arg-type]


AS_ORDINARY_USER = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
prefix = os.path.realpath(sys.base_prefix)
if os.getuid() == 0:
    # the interpreter may lie below a home that the other user can't enter: show it in one that it can
    top = "/" + prefix.split("/")[1]
    if top not in ("/usr", "/opt"):
        assert libc.unshare(0x20000) == 0
        assert libc.mount(None, b"/", None, 0x4000 | 1 << 18, None) == 0
        hold = os.open(prefix, os.O_PATH)
        assert libc.mount(b"tmpfs", top.encode(), b"tmpfs", 0, b"mode=755") == 0
        os.makedirs(prefix)
        assert libc.mount(b"/proc/self/fd/%d" % hold, prefix.encode(), None, 4096, None) == 0
    os.setgroups([]); os.setgid(4321); os.setuid(4321)
sys.path.insert(0, sys.argv[1])
from forge.sandbox.probe import probe
print(probe().level, *probe().missing, sep="\\n")
"""


def test_an_ordinary_user_gets_the_same_walls() -> None:
    if probe().level == "none":
        pytest.skip("no namespaces here")
    repository = __file__.rsplit("/", 3)[0]
    done = subprocess.run(
        [sys.executable, "-c", AS_ORDINARY_USER, repository],
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    if os.getuid() == 0 and "Permission" in done.stderr:
        pytest.skip("the repository can't be read by another user")
    assert done.stdout.split() == ["namespaces"], done.stderr


def test_without_the_right_to_make_namespaces_the_probe_says_none() -> None:
    """A process that may not unshare, as in a plain container, gets the honest answer."""
    program = """
import sys
sys.path.insert(0, sys.argv[1])
from forge.sandbox.enter import kernel, privileges, seccomp
from forge.sandbox.probe import probe
if sys.platform == "linux":
    privileges.forbid_gain()
    seccomp.filter_calls()
print(probe().level, len(probe().missing))
"""
    repository = __file__.rsplit("/", 3)[0]
    done = subprocess.run(
        [sys.executable, "-c", program, repository], capture_output=True, text=True, check=False, timeout=30
    )
    assert done.stdout.split() == ["none", str(len(REQUIRED) + 1)], done.stderr
