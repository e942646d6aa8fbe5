"""Bundles of a forger who owns the other ledger: every hash and signature is right, and the events make no sense."""

import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from forge.app.workspace import Workspace
from forge.domain.digest import canonical
from forge.ledger.chain import StoredRow
from forge.projections.imported import first_refusal
from tests.app.prepared import benchmarked_run
from tests.cli.asking import QUICK_POLICY, SHAPE, ask, built_once, copied, create_task, history, ledger_stands
from tests.ledger.forging import forge
from tests.ledger.sharing import Machine, taken_in

SLOT = ("--op", "fused_add_rmsnorm", "--gpu", "cpu", "--dtype", "fp32", "--shape", SHAPE)


@pytest.fixture(scope="session")
def far(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ledger of its own on another machine, with a kernel of the same name as the one here."""

    def build(folder: Path) -> None:
        assert ask("init", folder, "--origin", "kernels/far").status == 0
        (folder / "policy.toml").write_text(QUICK_POLICY)
        create_task(folder)
        promoted(folder)

    return built_once(tmp_path_factory, "far", build)


@pytest.fixture
def elsewhere(far: Path, tmp_path: Path) -> Path:
    """A copy of that ledger of the test's own."""
    return copied(far, tmp_path / "elsewhere")


def promoted(home: Path) -> Path:
    benchmarked_run(home)
    assert ask("promote", "last", "--home", home).status == 0
    return home


def exported(home: Path, change: Callable[[str, Any], None]) -> Path:
    """A bundle of a ledger in which events were changed, and all that follows was derived and signed anew.

    `forge ledger export` wouldn't open such a workspace, so the forger writes the bundle without it.
    """

    def edit(_: int, kind: str, payload: str) -> str:
        document = json.loads(payload)
        before = json.dumps(document)
        change(kind, document)
        return payload if json.dumps(document) == before else canonical(document).decode()

    forge(home / "kernel_registry.db", edit)
    for derived in ("keys", "kernel_registry"):
        shutil.rmtree(home / derived)
    bundle = home.with_name("forged.bundle")
    with closing(sqlite3.connect(home / "kernel_registry.db")) as connection:
        ledger_id, origin = connection.execute("SELECT ledger_id, origin FROM ledger_meta").fetchone()
    Machine(home, ledger_id, origin).export(bundle)
    return bundle


def with_fields(wanted: str, **fields: object) -> Callable[[str, Any], None]:
    return lambda kind, document: document.update(fields) if kind == wanted else None


def faster(kind: str, document: Any) -> None:
    if kind == "KernelPromoted":
        document["speedup"]["ratio"] *= 6


FORGED: dict[str, tuple[Callable[[str, Any], None], str]] = {
    "another author": (with_fields("KernelPromoted", author="eve"), "author 'eve', expected 'forge examples'"),
    "a shape that was never timed": (
        with_fields("KernelPromoted", coverage={"verified": [], "measured": [{"batch": 512, "hidden_size": 8}]}),
        "beyond the shapes measured",
    ),
    "another speedup": (faster, "figures other than those of event"),
    "a substitute for the target": (with_fields("CandidateVerified", simulated=True), "simulated"),
    "another outcome": (with_fields("RunSealed", outcome="rejected"), "expected 'promoted', as its events say"),
    "a field that no event has": (with_fields("KernelPromoted", blessed=True), "can't be read"),
}


@pytest.mark.parametrize("case", FORGED)
def test_a_bundle_in_which_a_promotion_is_none_is_refused(case: str, empty: Path, elsewhere: Path) -> None:
    change, says = FORGED[case]
    bundle = exported(elsewhere, change)
    before = history(empty), sorted((empty / "forge_runs").rglob("cas/*/*"))
    for more in ((), ("--dry-run",)):
        refused = ask("ledger", "import", bundle, "--home", empty, *more)
        assert refused.status == 1
        assert says in refused.error
    assert (history(empty), sorted((empty / "forge_runs").rglob("cas/*/*"))) == before
    assert ask("ledger", "imported", "--home", empty, "--json").document == []


def test_such_rows_that_an_older_forge_took_in_are_found(empty: Path, elsewhere: Path) -> None:
    bundle = exported(elsewhere, FORGED["another author"][0])
    with Workspace.open(empty) as workspace:
        taken_in(workspace.ledger, workspace.blobs, bundle)
    report = ask("ledger", "verify", "--home", empty, "--json")
    assert report.status == 1
    problems = report.document["problems"]
    assert all("what the event stands on" in one["what"] for one in problems)
    assert any(FORGED["another author"][1] in one["found"] for one in problems)


def test_a_kernel_of_another_ledger_never_stands_for_one_of_the_same_name(home: Path, elsewhere: Path) -> None:
    promoted(home)
    bundle = home.with_name("far.bundle")
    assert ask("ledger", "export", bundle, "--home", elsewhere).status == 0
    before = ask("kernel", "list", "--home", home, "--json").document
    found = ask("lookup", *SLOT, "--home", home, "--json").document
    documents = {
        name: (home / "kernel_registry" / name).read_bytes() for name in ("verified_kernels.json", "versions.json")
    }
    for new in (True, False):
        answer = ask("ledger", "import", bundle, "--home", home, "--json")
        assert (answer.status, answer.document["new_events"] > 0) == (0, new)
    (ledger,) = ask("ledger", "imported", "--home", home, "--json").document
    assert [one["kernel_id"] for one in ledger["promotions"]] == [one["kernel_id"] for one in before]
    assert ask("kernel", "list", "--home", home, "--json").document == before
    again = ask("lookup", *SLOT, "--home", home, "--json").document
    assert (again["kernel_id"], again["sha256"]) == (found["kernel_id"], found["sha256"])
    assert documents == {name: (home / "kernel_registry" / name).read_bytes() for name in documents}
    assert ask("ledger", "rebuild", "--home", home).status == 0
    assert documents == {name: (home / "kernel_registry" / name).read_bytes() for name in documents}
    assert ledger_stands(home)


def test_rows_with_one_id_or_one_key_twice_and_an_unknown_type_are_refused(home: Path) -> None:
    with Workspace.open(home) as workspace:
        rows, ledger_id = list(workspace.ledger.rows()), workspace.ledger.ledger_id
    assert first_refusal(ledger_id, iter(rows)) is None

    def told(place: int, **columns: object) -> str:
        changed: list[StoredRow] = [*rows]
        changed[place] = rows[place]._replace(**columns)
        return str(first_refusal(ledger_id, iter(changed)))

    assert "same id or key" in told(-1, event_id=rows[0].event_id)
    assert "same id or key" in told(-1, idempotency_key=rows[1].idempotency_key)
    assert "unknown event type 'KernelBlessed'" in told(-1, type="KernelBlessed")
    assert "before that of event" in told(-1, recorded_at="2020-01-01T00:00:00.000000Z")
    assert "may not write" in told(2, actor="agent:m")


def test_what_was_withdrawn_there_is_shown_as_withdrawn_here(empty: Path, elsewhere: Path) -> None:
    (benchmark,) = (one["seq"] for one in history(elsewhere) if one["type"] == "BenchmarkRecorded")
    assert ask("benchmark", "invalidate", benchmark, "--reason", "the clock", "--home", elsewhere).status == 0
    bundle = empty.with_name("far.bundle")
    assert ask("ledger", "export", bundle, "--home", elsewhere).status == 0
    assert ask("ledger", "import", bundle, "--home", empty).status == 0
    (ledger,) = ask("ledger", "imported", "--home", empty, "--json").document
    assert [one["status"] for one in ledger["promotions"]] == ["evidence_invalid"]
