"""Descriptions of operations are published by digest; a ledger without one is published as before."""

import hashlib
import json

from forge.events.operation import OperationDescribed
from forge.ledger.audit.described import DescribedOperations
from tests.projections.histories import LEDGER_ID, asked, opened, promoted, rebuild
from tests.projections.values import digest


def head_of(files: dict[str, bytes]) -> dict:
    (snapshot,) = (content for name, content in files.items() if name.startswith("lookup-"))
    return json.loads(snapshot)


def described(op: str, name: str) -> OperationDescribed:
    return OperationDescribed(op=op, description_sha256=digest(name), reference_sha256=digest("reference"))


def test_the_newest_description_of_an_operation_stands_in_the_snapshot() -> None:
    history = opened()
    promoted(history)
    before = rebuild(history.events, history.head, LEDGER_ID)
    assert "ops" not in head_of(before)
    history.add(described("rmsnorm", "first"))
    seq = history.add(described("rmsnorm", "second"))
    after = rebuild(history.events, history.head, LEDGER_ID)
    expected = {"rmsnorm": {"description": digest("second"), "reference": digest("reference")}}
    assert head_of(after)["ops"] == expected
    assert head_of(after)["kernels"] == head_of(before)["kernels"]
    assert asked(history, "SELECT op, seq FROM operations") == [("rmsnorm", seq)]


def test_the_auditor_compares_a_snapshots_operations_with_events_and_files(tmp_path) -> None:
    described_ops = DescribedOperations(tmp_path)
    content = {"description": b"{}", "reference": b"pass"}
    digests = {name: hashlib.sha256(one).hexdigest() for name, one in content.items()}
    described_ops.take(5, {"op": "rmsnorm", **{f"{name}_sha256": value for name, value in digests.items()}})
    folder = tmp_path / "ops"
    folder.mkdir()
    (folder / "rmsnorm.json").write_bytes(content["description"])
    (folder / "rmsnorm.py").write_bytes(content["reference"])
    stated = {"rmsnorm": digests}
    assert not list(described_ops.problems("snapshot", stated, 5))
    assert not list(described_ops.problems("snapshot", {}, 4))
    assert [one.what for one in described_ops.problems("snapshot", {}, 5)] == ["published snapshot: ops.rmsnorm"]
    (extra,) = described_ops.problems("snapshot", {**stated, "softmax": digests}, 5)
    assert extra.expected == "no event describes it"
    (folder / "rmsnorm.py").write_bytes(b"other")
    (edited,) = described_ops.problems("snapshot", stated, 5)
    assert edited.what == "published ops/rmsnorm.py"
