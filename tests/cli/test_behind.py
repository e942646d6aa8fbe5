"""What readers are told where the published registry is behind its ledger, or nothing can be published at all."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from forge.app.workspace import Workspace
from forge.events import KernelRevoked
from forge.ledger.signatures import checkpoints
from forge.lookup import Registry
from tests.app.prepared import benchmarked_run
from tests.cli.asking import SHAPE, Answer, ask
from tests.unwritable import obey_modes, unwritable

KERNEL = "cpp_fused_add_rmsnorm_cpu_fp32_b16_h4096_v1"
SLOT = ("--op", "fused_add_rmsnorm", "--gpu", "cpu", "--dtype", "fp32", "--shape", SHAPE)
FORGE = (sys.executable, "-m", "forge")


@pytest.fixture
def promoted(home: Path) -> Path:
    benchmarked_run(home)
    assert ask("promote", "last", "--home", home).status == 0
    return home


def revoke_only(home: Path) -> None:
    """The state that a process leaves which is killed between the event's commit and its publication."""
    workspace = Workspace.open(home)
    event = KernelRevoked(
        kernel_id=KERNEL, family=KERNEL.removesuffix("_v1"), reason="wrong", severity="unsafe", evidence=()
    )
    workspace.ledger.append((event,), actor=workspace.actor, correlation_id=event.stream())
    workspace.ledger.close()
    assert workspace.presence is not None
    workspace.presence.leave()


def ask_there(home: Path, *command: object) -> Answer:
    """A command in a process that may not write where the modes say so, root's too."""
    ran = subprocess.run(
        [*FORGE, *map(str, command), "--home", str(home)],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=obey_modes,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    )
    return Answer(ran.returncode, ran.stdout, ran.stderr)


def test_a_recommendation_says_that_a_revocation_is_not_published_yet(promoted: Path) -> None:
    model = ("recommend", "--model", "llama3.1-8b", "--gpu", "h200", "--home", promoted)
    assert "stale" not in ask(*model).err
    revoke_only(promoted)
    assert "note: kernel_registry: the registry is stale: it shows event " in ask(*model).err
    notes = ask(*model, "--json").document["plans"][0]["notes"]
    assert sum("forge kernel list publishes them" in note for note in notes) == 1
    assert ask("kernel", "list", "--home", promoted).status == 0
    assert "stale" not in ask(*model).err


def test_a_lookup_answers_with_no_kernel_that_the_ledger_has_revoked(promoted: Path) -> None:
    assert ask("lookup", *SLOT, "--home", promoted).status == 0
    revoke_only(promoted)
    answer = ask("lookup", *SLOT, "--home", promoted, "--json")
    assert (answer.status, answer.document["kernel_id"]) == (1, None)


def test_an_engine_sees_that_the_ledger_has_decided_something_since(promoted: Path) -> None:
    registry = Registry.open(promoted)
    assert not registry.health().stale
    revoke_only(promoted)
    assert registry.health().stale
    assert ask("run", "list", "--home", promoted).status == 0
    assert registry.refresh()
    assert not registry.health().stale


def test_an_engine_without_the_ledger_is_told_of_the_pointer_alone(promoted: Path, tmp_path: Path) -> None:
    alone = Path(shutil.copytree(promoted / "kernel_registry", tmp_path / "alone" / "kernel_registry"))
    assert not Registry.open(alone).health().stale
    (alone.parent / "kernel_registry.db").write_bytes(b"no ledger")
    assert not Registry.open(alone).health().stale


def test_a_revocation_is_published_before_it_is_signed(promoted: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answered: list[str] = []

    def look(*arguments: object, **options: object) -> None:
        answered.append(
            Registry.open(promoted).lookup(op="fused_add_rmsnorm", gpu="cpu", dtype="fp32", shape=SIZES).match
        )
        return issue(*arguments, **options)

    issue = checkpoints.issue
    monkeypatch.setattr("forge.app.workspace.issue", look)
    assert ask("kernel", "revoke", KERNEL, "--reason", "wrong", "--home", promoted).status == 0
    assert answered == ["none"]


SIZES = {"batch": 16, "hidden_size": 4096}
READS = (
    ("kernel", "list"),
    ("kernel", "show", KERNEL),
    ("kernel", "history", KERNEL),
    ("audit", "leaderboard"),
    ("audit", "why", KERNEL),
    ("audit", "sql", "SELECT count(*) FROM kernels"),
    ("audit", "rejections"),
    ("audit", "effectiveness"),
)


@pytest.mark.slow
@pytest.mark.parametrize("history", [False, True], ids=["without history.db", "as it was left"])
def test_a_copy_that_cannot_be_written_answers_every_question(
    promoted: Path, tmp_path: Path, *, history: bool
) -> None:
    expected = {command: ask(*command, "--home", promoted).out for command in READS}
    copy = Path(shutil.copytree(promoted, tmp_path / "copy"))
    if not history:
        (copy / "kernel_registry" / "history.db").unlink()
    before = sorted(copy.rglob("*"))
    with unwritable(copy), unwritable(copy / "kernel_registry"):
        for command, out in expected.items():
            answer = ask_there(copy, *command)
            assert (answer.status, answer.out) == (0, out), answer
    assert sorted(copy.rglob("*")) == before


def test_a_copy_that_cannot_be_published_answers_with_nothing_revoked(promoted: Path, tmp_path: Path) -> None:
    revoke_only(promoted)
    copy = Path(shutil.copytree(promoted, tmp_path / "copy"))
    with unwritable(copy), unwritable(copy / "kernel_registry"):
        answer = ask_there(copy, "lookup", *SLOT)
    assert answer.status == 1
    assert KERNEL not in answer.out
    assert "lacks event" in answer.err
