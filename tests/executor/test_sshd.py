"""A real ssh and a real sshd on loopback between this machine's Forge and another process of it.

Without an sshd in PATH or in SSHD these tests are skipped.
"""

import getpass
import os
import shutil
import socket
import subprocess
import sys
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
from tests.candidates import job_for

SSHD = os.environ.get("SSHD") or shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin")
pytestmark = pytest.mark.skipif(SSHD is None, reason="there is no sshd here")
WRONG = "def fused_add_rmsnorm(x, residual, weight, eps):\n    return x, residual\n"


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of Forge behind an sshd of this user."""
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
    yield f"ssh://{getpass.getuser()}@127.0.0.1:{port}{folder}/forge"
    daemon.terminate()
    daemon.wait()


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


def test_a_forge_that_is_not_there_is_one_clear_error(address: str) -> None:
    with pytest.raises(RemoteFailed, match="ended the connection"):
        RemoteExecutor(connection(address + "-nowhere")).site(Policy())


def test_a_port_where_nothing_listens_is_one_clear_error() -> None:
    with pytest.raises(RemoteFailed, match="ended the connection"):
        RemoteExecutor(SshConnection("ssh://x", ssh_command("ssh://127.0.0.1:9"))).site(Policy())
