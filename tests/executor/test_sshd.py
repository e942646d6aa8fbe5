"""A real ssh and a real sshd on loopback between this machine's Forge and another process of it.

Without an sshd in PATH or in SSHD these tests are skipped.
"""

import threading
import time
from collections.abc import Iterator
from dataclasses import replace

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
from tests.executor.sshd import SSHD, Served, served
from tests.executor.test_remote import processes_below

pytestmark = pytest.mark.skipif(SSHD is None, reason="there is no sshd here")
WRONG = "def fused_add_rmsnorm(x, residual, weight, eps):\n    return x, residual\n"
ENDLESS = "def fused_add_rmsnorm(x, residual, weight, eps):\n    while True:\n        pass\n"


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("sshd")) as found:
        yield found


def connection(there: Served) -> SshConnection:
    """A connection by the real ssh, with the settings of the test in place of the user's."""
    program, *rest = ssh_command(there.address)
    return SshConnection(there.address, [program, "-F", str(there.settings), *rest])


def test_a_job_is_judged_behind_a_real_ssh(there: Served) -> None:
    over = connection(there)
    executor = RemoteExecutor(over)
    assert executor.site(Policy()).gates_sha256 == gates_sha256(Policy())
    examined = executor.examine(job_for(WRONG, language="torch"), progress=lambda _: None)
    assert isinstance(examined.verdict, Rejected)
    over.close()


def test_a_job_that_is_called_off_ends_behind_a_real_ssh(there: Served) -> None:
    """Everything that ran there is gone, and the next job gets a new connection."""
    over = connection(there)
    executor, in_candidate, ran = RemoteExecutor(over), threading.Event(), set[int]()
    executor.site(Policy())

    def call_off() -> None:
        in_candidate.wait()
        ran.update(processes_below(there.daemon) - {there.daemon})
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
    assert len(ran) > 3, "the connection's own sshd, Forge there, and the candidate behind its wall"
    until = time.monotonic() + 60  # far below the limit of the candidate's own work
    while ran & processes_below(there.daemon) or any(processes_below(one) for one in ran):
        assert time.monotonic() < until, ran
        time.sleep(0.02)
    assert executor.site(Policy()).gates_sha256 == gates_sha256(Policy())
    over.close()


def test_a_forge_that_is_not_there_is_one_clear_error(there: Served) -> None:
    with pytest.raises(RemoteFailed, match="ended the connection"):
        RemoteExecutor(connection(replace(there, forge=there.forge.with_name("nowhere")))).site(Policy())


def test_a_port_where_nothing_listens_is_one_clear_error() -> None:
    with pytest.raises(RemoteFailed, match="ended the connection"):
        RemoteExecutor(SshConnection("ssh://x", ssh_command("ssh://127.0.0.1:9"))).site(Policy())
