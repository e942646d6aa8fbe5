"""An own operation has a name that people read; a comment in its file changes neither it nor its kernels."""

import dataclasses
import random
from pathlib import Path

import pytest

from forge.app.tasks.create import Opened
from forge.app.tasks.references import Confirmable, freeze_reference, parse_name
from forge.app.workspace import Workspace
from forge.domain.digest import sha256
from forge.domain.evidence import Admission
from forge.domain.own_operation import Contract
from forge.domain.source_syntax import syntax_sha256
from forge.errors import IntegrityError, UsageError
from forge.lab.reference.infer import Inferred
from forge.operations import OPERATIONS
from forge.operations.own import find_own, make_known, own_name, own_operation
from forge.pipeline.create import parse_terms
from forge.pipeline.reference import create_own
from forge.pipeline.submit import default_entry
from tests.cli.asking import ask
from tests.lab.reference.references import square_contract
from tests.pipeline.making import POLICY, made, request

SOURCE = b"import torch\n\n\ndef kernel(x):\n    return x * x\n"
COMMENTED = SOURCE.replace(b"\n    return", b"  # squares\n    return")
CHANGED = SOURCE.replace(b"x * x", b"x * x * 1")
STRONG = Admission(mutants=9, killed=9, honest=2)


def contract_of(source: bytes, **changes: object) -> Contract:
    named = {"source_sha256": sha256(source), "syntax_sha256": syntax_sha256(source), **changes}
    return square_contract(8).model_copy(update=named)


def frozen(workspace: Workspace, source: bytes, **changes: object) -> Opened:
    """A task of the file, as if this contract had been inferred."""
    inferred = Inferred(contract_of(source, **changes), source, STRONG, ({"batch": 3},))
    return freeze_reference(workspace, Confirmable(inferred, parse_terms(request(), workspace.policy)))


def test_a_comment_keeps_the_name_and_another_tree_is_another_operation() -> None:
    names = [own_name(contract_of(source)) for source in (SOURCE, COMMENTED, CHANGED)]
    assert names[0] == names[1] != names[2]
    assert own_name(contract_of(SOURCE, slug="scale")).startswith("own_scale_")


def test_an_operation_of_an_older_ledger_keeps_the_name_of_its_bytes() -> None:
    older = [contract_of(source, syntax_sha256=None) for source in (SOURCE, COMMENTED)]
    assert own_name(older[0]) == "own_square_" + OLD_DIGITS
    assert own_name(older[0]) != own_name(older[1])
    assert "syntax_sha256" not in older[0].model_dump(mode="json")


OLD_DIGITS = "d3003c0a"
"""Digits of the name that Forge gave this contract before syntax trees counted."""


def test_a_changed_comment_asks_the_same_in_the_same_family(empty: Path) -> None:
    with Workspace.open(empty) as workspace:
        first, second, third = (frozen(workspace, source) for source in (SOURCE, COMMENTED, CHANGED))
    assert second.same_as == (first.task_id,)
    assert second.task_id[:-9] == first.task_id[:-9]
    assert third.same_as == ()


def test_op_list_and_op_show_know_own_operations(empty: Path) -> None:
    with Workspace.open(empty) as workspace:
        first, second = frozen(workspace, SOURCE), frozen(workspace, COMMENTED)
        frozen(workspace, SOURCE, slug="squares")
    name = own_name(contract_of(SOURCE))
    listed = ask("op", "list", "--home", empty, "--json").document
    assert [one["op"] for one in listed if one["op"].startswith("own_")] == sorted(
        [name, own_name(contract_of(SOURCE, slug="squares"))]
    )
    assert "Own operations of this workspace" in ask("op", "list", "--home", empty).out
    for asked in (name, "square_", "own_square_"):
        shown = ask("op", "show", asked, "--home", empty, "--json").document
        assert shown["op"] == name
        assert shown["tasks"] == [first.task_id, second.task_id]
        assert shown["kernels"] == []
        assert "# squares" in shown["reference"]
    assert "2 own operations begin with 'square'" in ask("op", "show", "square", "--home", empty).error
    unknown = ask("op", "show", "own_nothing", "--home", empty)
    assert (unknown.status, "unknown operation 'own_nothing'" in unknown.error) == (2, True)


def test_a_lookup_takes_the_beginning_of_an_own_operations_name(empty: Path) -> None:
    with Workspace.open(empty) as workspace:
        frozen(workspace, SOURCE)
    for name in ("square", "own_square", own_name(contract_of(SOURCE))):
        slot = ("lookup", "--op", name, "--gpu", "cpu", "--dtype", "fp32", "--shape", "batch=8")
        answer = ask(*slot, "--home", empty, "--json")
        assert (answer.status, answer.document["match"]) == (1, "none")
    unknown = ask("lookup", "--op", "squares", *slot[3:], "--home", empty)
    assert (unknown.status, f"unknown operation 'squares': expected one of {name}, " in unknown.error) == (2, True)


def test_the_catalogue_is_shown_outside_of_a_workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/")  # not tmp_path: a workspace may lie above it
    monkeypatch.delenv("FORGE_HOME", raising=False)
    assert len(ask("op", "list", "--json").document) == len(OPERATIONS)
    assert ask("op", "list", "--home", tmp_path).status == 2
    assert ask("op", "show", "own_square").status == 2


@pytest.mark.parametrize("bad", ["", "Pool", "own_pool", "1pool", "pool-2", "p" * 41, "mean pool"])
def test_a_name_that_is_no_identifier_is_refused(bad: str) -> None:
    with pytest.raises(UsageError, match="bad name"):
        parse_name(bad)
    assert parse_name("masked_mean_pool") == "masked_mean_pool"
    assert parse_name(None) == ""


@pytest.mark.parametrize(
    ("kernel", "entry"),
    [
        (b"def kernel(x):\n    return x\n", "kernel"),
        (b"def other(x):\n    return x\n", None),
        (b"def kernel(:\n", None),
        (b"def kernel(x): ...\ndef OP(x): ...\n", None),
    ],
)
def test_the_references_own_name_is_an_entry_point(kernel: bytes, entry: str | None, empty: Path) -> None:
    contract = contract_of(SOURCE)
    task, _ = create_own(
        Inferred(contract, SOURCE, STRONG, ()), parse_terms(request(), POLICY), policy=POLICY, rng=random.Random(1)
    )
    with Workspace.open(empty) as workspace:
        frozen(workspace, SOURCE)
    assert default_entry(kernel.replace(b"OP", task.op.encode()), task) == (entry or task.op)
    assert own_operation(contract, SOURCE).name == task.op


def test_an_operation_of_the_catalogue_has_its_own_name_as_entry_point() -> None:
    assert default_entry(b"def kernel(x): ...\n", made()) == "rmsnorm"


def test_a_second_operation_of_the_same_digits_is_refused() -> None:
    first, second = (own_operation(contract_of(source, slug="twins"), source) for source in (SOURCE, CHANGED))
    make_known(first)
    make_known(own_operation(contract_of(COMMENTED, slug="twins"), COMMENTED))
    with pytest.raises(IntegrityError, match="two operations have the name 'own_twins_"):
        make_known(dataclasses.replace(second, name=first.name))
    assert find_own(first.name).own != second.own
