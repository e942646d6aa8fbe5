import os
import subprocess
import sys

import confined
import pytest

from forge.sandbox.capabilities import probe
from forge.sandbox.isolation import LEVELS, OPTIONAL, REQUIRED, at_least, judge


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
        [True, False, False],
        [True, True, False],
        [True, True, True],
    ]


def test_an_unknown_level_is_refused() -> None:
    with pytest.raises(ValueError, match="chroot"):
        at_least("chroot", "none")  # type: ignore[arg-type]


LOOK = """
import sys
sys.path.insert(0, sys.argv[1])
from forge.sandbox.capabilities import probe
print(probe().level, *probe().missing, sep="\\n")
"""


def test_an_ordinary_user_gets_the_same_walls() -> None:
    if probe().level == "none":
        pytest.skip("no namespaces here")
    repository = __file__.rsplit("/", 3)[0]
    done = subprocess.run(
        [sys.executable, "-c", confined.AS_USER, sys.executable, "-c", LOOK, repository],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    if os.getuid() == 0 and "Permission" in done.stderr:
        pytest.skip("the repository can't be read by another user")
    assert done.stdout.split()[:1] == ["namespaces"], done.stderr


def test_without_the_right_to_make_namespaces_the_probe_says_none() -> None:
    """A process that may not unshare, as in a plain container, gets the honest answer."""
    program = """
import sys
sys.path.insert(0, sys.argv[1])
from forge.sandbox.guest_entry import kernel, privileges, seccomp
from forge.sandbox.capabilities import probe
if sys.platform == "linux":
    privileges.forbid_gain()
    seccomp.filter_calls()
print(probe().level, len(probe().missing))
"""
    repository = __file__.rsplit("/", 3)[0]
    done = subprocess.run(
        [sys.executable, "-c", program, repository], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.stdout.split() == ["none", str(len(REQUIRED) + len(OPTIONAL))], done.stderr


WITHOUT_UNSHARE = """
import os, struct, sys
sys.path.insert(0, sys.argv[1])
from forge.sandbox.guest_entry import kernel, privileges, seccomp
from forge.sandbox.capabilities import attempt, probe
calls = {"x86_64": 272, "aarch64": 97}
code = [(0x20, 0, 0, 0), (0x15, 0, 1, calls[os.uname().machine]), (6, 0, 0, 0x50001), (6, 0, 0, 0x7FFF0000)]
privileges.forbid_gain()
kernel.syscall("seccomp", 1, 1, seccomp._Program(len(code), b"".join(struct.pack("=HBBI", *one) for one in code)))
print(probe().level, attempt("namespaces").problem)
"""


def test_where_only_bubblewrap_may_make_namespaces_it_is_the_next_rung() -> None:
    """As with AppArmor's rule; bubblewrap uses another system call than ours, which is all that this leaves it."""
    confined.require("bubblewrap")
    repository = __file__.rsplit("/", 3)[0]
    command = [sys.executable, "-c", WITHOUT_UNSHARE, repository]
    if os.getuid() == 0:
        command = [sys.executable, "-c", confined.AS_USER, *command]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    if os.getuid() == 0 and "Permission" in done.stderr:
        pytest.skip("the repository can't be read by another user")
    level, _, problem = done.stdout.partition(" ")
    assert level == "bubblewrap", done
    assert "step 'namespaces' failed with errno 1" in problem
