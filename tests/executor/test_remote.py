"""Jobs on another machine: the call, the answer, and everything that can go wrong between the two."""

import inspect
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest

from forge import __version__
from forge.domain.device import Device
from forge.domain.evidence import GateResult, WorkloadErrors
from forge.domain.policy import Policy
from forge.domain.verdict import Accepted, Rejected
from forge.errors import EnvironmentUnfit, RemoteFailed, UsageError
from forge.executor import Executor
from forge.executor.local import LocalExecutor
from forge.executor.ray import require_answer
from forge.executor.remote import ssh
from forge.executor.remote.answering import Answering, require_strong_enough
from forge.executor.remote.calls import ANSWERS, CALLS, VERSION, AskJob, AskSite, Hello, Refusal, packed_answer
from forge.executor.remote.executor import RemoteExecutor
from forge.executor.remote.frames import KINDS, LONGEST, Frame, packed, read_frame
from forge.executor.remote.ssh import SshConnection, ssh_command
from forge.lab.gates import GATES
from forge.lab.job import Job, Progress
from forge.lab.judge_version import gates_sha256
from forge.lab.sent_job import SentJob, received, sent
from forge.lab.verification import Examination
from forge.operations import find_operation
from forge.operations.own import own_operation
from forge.sandbox import calling_off
from forge.sandbox.calling_off import CalledOff
from tests.candidates import EXAMPLES, SHAPE, isolation, job_for
from tests.lab.reference.references import square_contract

ANSWERING = (sys.executable, "-m", "forge", "work", "answer")
KERNEL = (EXAMPLES / "honest_cpp" / "reference.py").read_text()
ASKED = "sys.stdin.buffer.read(10)"
"""Python line with which a scripted machine waits for the call."""
HELLO = packed(Frame("hello", Hello(version=VERSION, forge_version=__version__).model_dump_json().encode()))


@pytest.fixture(scope="module")
def there() -> Iterator[RemoteExecutor]:
    """Another process that answers, as another machine would."""
    connection = SshConnection("ssh://gpu-box", ANSWERING)
    yield RemoteExecutor(connection)
    connection.close()


@contextmanager
def scripted(answers: bytes, *, then: str = "") -> Iterator[RemoteExecutor]:
    """A machine that sends these bytes, whatever it is asked."""
    code = f"import sys, time\nsys.stdout.buffer.write({answers!r})\nsys.stdout.flush()\n{then}"
    connection = SshConnection("ssh://other", (sys.executable, "-c", code))
    yield RemoteExecutor(connection)
    connection.close()


def test_every_call_of_an_executor_can_be_sent() -> None:
    methods = {name for name, _ in inspect.getmembers(Executor, inspect.isfunction) if not name.startswith("_")}
    assert set(ANSWERS) == methods


def job(kernel: str = KERNEL) -> Job:
    return job_for(kernel, language="torch", forbidding=True)


def test_a_job_arrives_as_it_was_sent() -> None:
    one = job()
    assert received(SentJob.model_validate_json(sent(one).model_dump_json())) == one


def test_a_user_s_own_operation_is_known_there() -> None:
    own = replace(job(), operation=own_operation(square_contract(3), b"def kernel(x):\n    return x * x\n"))
    arrived = received(SentJob.model_validate_json(sent(own).model_dump_json()))
    assert arrived.operation.own == own.operation.own
    assert find_operation(own.operation.name).own == own.operation.own


def test_the_other_machine_judges_and_says_what_it_is(there: RemoteExecutor) -> None:
    site = there.site(Policy())
    assert site.gates_sha256 == gates_sha256(Policy())
    assert site.isolation == isolation()
    asked = job("def fused_add_rmsnorm(x, residual, weight, eps):\n    return x, residual\n")
    steps: list[str] = []
    examined = there.examine(asked, progress=steps.append)
    assert isinstance(examined.verdict, Rejected)
    assert examined.counterexample is not None
    assert "sources" in steps  # behind a wait, if another process measures
    assert there.floor_ns(asked, ceilings=None) > 0


def test_a_job_for_another_machine_is_refused(there: RemoteExecutor) -> None:
    gpu = Device(index=0, uuid="GPU-0", node="/dev/nvidia0")
    with pytest.raises(EnvironmentUnfit, match="for another machine"):
        there.examine(replace(job(), gpu=gpu), progress=print)


def test_a_weaker_sandbox_than_the_policy_allows_is_refused() -> None:
    require_strong_enough("namespaces", "bubblewrap")
    with pytest.raises(EnvironmentUnfit, match="sandbox is none: the policy allows none weaker than bubblewrap"):
        require_strong_enough("none", "bubblewrap")


def test_what_the_system_refuses_there_is_no_verdict() -> None:
    answering = Answering(LocalExecutor(Path("/dev/null/lock")))
    described = answering.answer(CALLS.dump_json(AskSite(policy=Policy())), print)
    assert described.kind == "answer"
    refused = answering.answer(CALLS.dump_json(AskJob(call="examine_build", job=sent(job()))), print)
    assert refused.kind == "refusal"
    assert Refusal.model_validate_json(refused.payload).code == "ENVIRONMENT_UNFIT"


@pytest.mark.parametrize(
    ("answers", "then", "said"),
    [
        (b"bash: forge: command not found\n", "", "expected a message of Forge"),
        (b"", "", "ended the connection"),
        (HELLO[:-3], "", "in the middle of a message"),
        (HELLO, "", "broke|ended the connection"),
        (HELLO + b"\x04" + (2**30).to_bytes(8), ASKED, "1073741824 bytes"),
        (HELLO + packed(Frame("answer", b'[{"environment": 3}]')), ASKED, "the answer to site can't be read at"),
        (HELLO + packed(Frame("refusal", b"[]")), ASKED, "sent a refusal that can't be read"),
        (HELLO + HELLO, ASKED, "sent hello: expected an answer"),
        (packed(Frame("hello", b'{"version": 7, "forge_version": "9.9"}')), ASKED, "Forge 9.9"),
    ],
    ids=[
        *("no Forge there", "ends at once", "cut short", "ends after its greeting", "a gigabyte"),
        *("no answer's form", "no refusal's form", "a second greeting", "another version"),
    ],
)
def test_what_is_no_answer_is_one_clear_error(answers: bytes, then: str, said: str) -> None:
    with scripted(answers, then=then) as other, pytest.raises(EnvironmentUnfit, match=said):
        other.site(Policy())


class Forging:
    """A machine that answers every call with one examination."""

    name, node = "ssh://forging", "f" * 12

    def __init__(self, examined: Examination) -> None:
        self._answer = Frame("answer", packed_answer("examine", examined))

    def hello(self) -> bytes:
        return Hello(version=VERSION, forge_version=__version__).model_dump_json().encode()

    def ask(self, call: bytes, *, progress: Progress) -> Frame:  # noqa: ARG002 (a connection takes them)
        return self._answer

    def end(self) -> None:
        pass

    def close(self) -> None:
        pass


def test_an_acceptance_needs_the_answer_of_every_gate_and_no_error_beyond_its_bound() -> None:
    passed = tuple(GateResult(name=gate.name, verdict="passed", observed="-", threshold="-") for gate in GATES)
    beyond = WorkloadErrors(shape=SHAPE, inputs="normal", max_relative_error=1.0, bound_used=2.0)
    whole = Examination(verdict=Accepted(), stage="verify", gates=passed)
    assert RemoteExecutor(Forging(whole)).examine(job(), progress=lambda _: None) == whole
    failed = (*passed[:-1], passed[-1].model_copy(update={"verdict": "failed"}))
    for less in (
        replace(whole, gates=()),
        replace(whole, gates=passed[1:]),
        replace(whole, gates=failed),
        replace(whole, workloads=(beyond,)),
        replace(whole, stage="build"),
    ):
        with pytest.raises(RemoteFailed, match="an acceptance that isn't whole"):
            RemoteExecutor(Forging(less)).examine(job(), progress=lambda _: None)


def test_a_machine_that_says_nothing_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ssh, "SILENT_S", 0.2)
    monkeypatch.setattr(ssh, "END_S", 0.2)
    with scripted(HELLO, then="time.sleep(60)") as other, pytest.raises(RemoteFailed, match="sent nothing for"):
        other.site(Policy())


def test_another_judge_there_is_refused_with_both_digests(tmp_path: Path) -> None:
    other = Policy(rounds=40)
    described = Answering(LocalExecutor(tmp_path / "lock")).answer(CALLS.dump_json(AskSite(policy=other)), print)
    both = f"{gates_sha256(other)}, this machine with {gates_sha256(Policy())}"
    with scripted(HELLO + packed(described), then=ASKED) as there, pytest.raises(EnvironmentUnfit, match=both):
        there.site(Policy())


DAY_LATE = """
import time
later = time.time
time.time = lambda: later() + 86_400
from forge.__main__ import main
main()
"""
"""Program that runs Forge where the system's clock is a day ahead."""


def test_a_clock_that_is_off_changes_nothing_and_a_missing_compiler_is_no_verdict() -> None:
    command = ("/usr/bin/env", "PATH=/nonexistent", sys.executable, "-c", DAY_LATE, "work", "answer")
    connection = SshConnection("ssh://box", command)
    other = RemoteExecutor(connection)
    site = other.site(Policy())
    assert site.environment.compiler is None
    wrong = job("def fused_add_rmsnorm(x, residual, weight, eps):\n    return x, residual\n")
    assert isinstance(other.examine(replace(wrong, isolation=site.isolation), progress=print).verdict, Rejected)
    cpp = job_for((EXAMPLES / "honest_cpp" / "kernel.py").read_text(), language="cpp")
    with pytest.raises(EnvironmentUnfit, match="compiler"):
        other.examine(replace(cpp, isolation=site.isolation), progress=print)
    connection.close()


def test_a_disk_that_takes_nothing_there_is_no_verdict() -> None:
    connection = SshConnection("ssh://box", ANSWERING)
    other = RemoteExecutor(connection)
    other.site(Policy())
    assert connection._process is not None
    resource.prlimit(connection._process.pid, resource.RLIMIT_FSIZE, (0, 0))
    with pytest.raises(EnvironmentUnfit, match="ssh://box: OSError"):
        other.examine(job(), progress=print)
    connection.close()


def test_what_is_at_work_ends_with_the_connection() -> None:
    process = subprocess.Popen(ANSWERING, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    endless = job("def fused_add_rmsnorm(x, residual, weight, eps):\n    while True:\n        pass\n")
    for call in (AskSite(policy=endless.policy), AskJob(call="examine", job=sent(endless))):
        process.stdin.write(packed(Frame("call", CALLS.dump_json(call))))
    process.stdin.flush()
    steps = list[bytes]()
    while len(steps) < 2:  # the sources, then the first gate, which calls it
        frame = read_frame(process.stdout.read)
        assert frame is not None
        steps += [frame.payload] if frame.kind == "progress" else []
    process.stdin.close()
    process.wait(60)  # far below the limit of the candidate's own work
    process.stdout.close()


def processes_below(root: int) -> set[int]:
    """Return a process and all that it started, and they."""
    parents = dict[int, int]()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, parent = stat.read_text().rpartition(")")[2].split()[:2]
            if state not in ("Z", "X"):
                parents[int(stat.parent.name)] = int(parent)
    below, more = set[int](), {root} & set(parents)
    while more:
        below |= more
        more = {one for one, parent in parents.items() if parent in below} - below
    return below


def test_a_job_that_is_called_off_ends_there_and_the_next_gets_a_new_connection(there: RemoteExecutor) -> None:
    endless = job("def fused_add_rmsnorm(x, residual, weight, eps):\n    while True:\n        pass\n")
    there.site(endless.policy)
    assert isinstance(there._connection, SshConnection)
    assert there._connection._process is not None
    answering, at_work, in_candidate = there._connection._process.pid, set[int](), threading.Event()

    def call_off() -> None:
        in_candidate.wait()
        at_work.update(processes_below(answering))
        calling_off.call_off()

    calling = threading.Thread(target=call_off)
    calling.start()
    try:
        with pytest.raises(CalledOff):
            there.examine(endless, progress=lambda step: in_candidate.set() if step == "signature" else None)
        with pytest.raises(CalledOff):
            there.site(endless.policy)
    finally:
        in_candidate.set()
        calling.join()
        calling_off.resume()
    assert len(at_work) > 1, "the candidate ran there"
    until = time.monotonic() + 60  # far below the limit of the candidate's own work
    while any(processes_below(one) for one in at_work):
        assert time.monotonic() < until, at_work
        time.sleep(0.02)
    assert there.site(endless.policy).gates_sha256 == gates_sha256(endless.policy)
    assert there._connection._process.pid != answering


@pytest.mark.parametrize(
    "address",
    [
        "",
        "gpu-box",
        "http://gpu-box",
        "ssh://",
        "ssh://-oProxyCommand=x",
        "ssh://box:99999",
        "ssh://a:b@box",
        "ssh://box?x",
    ],
)
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(UsageError, match="expected ssh://"):
        ssh_command(address)


@pytest.mark.parametrize("cluster", ["127.0.0.1:9", "127.0.0.1", "auto", "127.0.0.1:x", "127.0.0.1:99999999"])
def test_a_cluster_that_does_not_answer_is_one_clear_error(cluster: str) -> None:
    with pytest.raises(RemoteFailed, match="no Ray cluster answers") as failed:
        require_answer(cluster)
    assert failed.value.exit_status == 3
    assert failed.value.hint


def test_an_address_becomes_a_command_without_a_shell_here() -> None:
    assert ssh_command("ssh://ada@gpu-box:2222/opt/forge it/bin/forge")[-7:] == [
        *("-l", "ada", "-p", "2222", "--", "gpu-box"),
        "'/opt/forge it/bin/forge' work answer",
    ]


def test_a_message_longer_than_its_kind_allows_is_not_sent() -> None:
    for kind in KINDS:
        if LONGEST[kind] < 10**6:
            with pytest.raises(RemoteFailed, match="expected at most"):
                packed(Frame(kind, bytes(LONGEST[kind] + 1)))
