"""A real ssh and a real sshd on loopback between this machine's Forge and another process of it.

Without an sshd in PATH or in SSHD these tests are skipped.
"""

import getpass
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from forge.domain.policy import Policy
from forge.domain.verdict import Rejected
from forge.errors import RemoteFailed
from forge.executor.remote.executor import RemoteExecutor
from forge.executor.remote.ssh import SshConnection, ssh_command
from forge.lab.judge_version import gates_sha256
from forge.sandbox import calling_off
from forge.sandbox.calling_off import CalledOff
from tests.candidates import job_for
from tests.executor.test_remote import processes_below

SSHD = os.environ.get("SSHD") or shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin")
pytestmark = pytest.mark.skipif(SSHD is None, reason="there is no sshd here")
WRONG = "def fused_add_rmsnorm(x, residual, weight, eps):\n    return x, residual\n"
ENDLESS = "def fused_add_rmsnorm(x, residual, weight, eps):\n    while True:\n        pass\n"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, int]]:
    """The address of Forge behind an sshd of this user, and the process of that sshd."""
    folder = tmp_path_factory.mktemp("sshd")
    for name in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name], check=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    (folder / "forge").write_text(f'#!/bin/sh\nexec {sys.executable} -m forge "$@"\n')
    (folder / "forge").chmod(0o755)
    (folder / "sshd_config").write_text(
        f"ListenAddress 127.0.0.1:{port}\nHostKey {folder}/host\nAuthorizedKeysFile {folder}/user.pub\n"
        f"StrictModes no\nUsePAM no\nPidFile none\nPermitRootLogin yes\n"
    )
    (folder / "ssh_config").write_text(
        f"IdentityFile {folder}/user\nIdentitiesOnly yes\nUserKnownHostsFile {folder}/known\n"
        "StrictHostKeyChecking accept-new\nLogLevel ERROR\n"
    )
    daemon = subprocess.Popen([str(SSHD), "-D", "-e", "-f", folder / "sshd_config"], stderr=subprocess.DEVNULL)
    until = time.monotonic() + 120
    while not _listens(port) and daemon.poll() is None and time.monotonic() < until:
        time.sleep(0.1)
    assert daemon.poll() is None, "sshd ended"
    yield f"ssh://{getpass.getuser()}@127.0.0.1:{port}{folder}/forge", daemon.pid
    daemon.terminate()
    daemon.wait()


@pytest.fixture
def address(served: tuple[str, int]) -> str:
    return served[0]


def _listens(port: int) -> bool:
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) == 0


def connection(address: str) -> SshConnection:
    """A connection by the real ssh, with the settings of the test in place of the user's."""
    program, *rest = ssh_command(address)
    folder = Path(address[address.index("/", len("ssh://")) :]).parent
    return SshConnection(address, [program, "-F", str(folder / "ssh_config"), *rest])


def test_a_job_is_judged_behind_a_real_ssh(address: str) -> None:
    over = connection(address)
    executor = RemoteExecutor(over)
    assert executor.site(Policy()).gates_sha256 == gates_sha256(Policy())
    examined = executor.examine(job_for(WRONG, language="torch"), progress=lambda _: None)
    assert isinstance(examined.verdict, Rejected)
    over.close()


def test_a_job_that_is_called_off_ends_behind_a_real_ssh(served: tuple[str, int]) -> None:
    """Everything that ran there is gone, and the next job gets a new connection."""
    address, daemon = served
    over = connection(address)
    executor, in_candidate, there = RemoteExecutor(over), threading.Event(), set[int]()
    executor.site(Policy())

    def call_off() -> None:
        in_candidate.wait()
        there.update(processes_below(daemon) - {daemon})
        calling_off.call_off()

    calling = threading.Thread(target=call_off)
    calling.start()
    try:
        with pytest.raises(CalledOff):
            executor.examine(
                job_for(ENDLESS, language="torch"),
                progress=lambda step: in_candidate.set() if step == "signature" else None,
            )
    finally:
        in_candidate.set()
        calling.join()
        calling_off.resume()
    assert len(there) > 3, "the connection's own sshd, Forge there, and the candidate behind its wall"
    until = time.monotonic() + 60  # far below the limit of the candidate's own work
    while there & processes_below(daemon) or any(processes_below(one) for one in there):
        assert time.monotonic() < until, there
        time.sleep(0.02)
    assert executor.site(Policy()).gates_sha256 == gates_sha256(Policy())
    over.close()


def test_a_forge_that_is_not_there_is_one_clear_error(address: str) -> None:
    with pytest.raises(RemoteFailed, match="ended the connection"):
        RemoteExecutor(connection(address + "-nowhere")).site(Policy())


def test_a_port_where_nothing_listens_is_one_clear_error() -> None:
    with pytest.raises(RemoteFailed, match="ended the connection"):
        RemoteExecutor(SshConnection("ssh://x", ssh_command("ssh://127.0.0.1:9"))).site(Policy())
