"""What adopted programs hand in: doubts that are listed until they are answered, and reports that are shown."""

import json
from hashlib import sha256
from pathlib import Path

import pytest

from forge.adopt import adopting
from forge.lookup import Registry
from tests.cli.asking import ask, copied
from tests.cli.test_decisions import FIRST, SECOND, two_kernels

__all__ = ["two_kernels"]


@pytest.fixture
def home(two_kernels: Path, tmp_path: Path) -> Path:
    copied(two_kernels, tmp_path / "home")
    return tmp_path / "home"


def report(home: Path, tmp_path: Path, kernel_id: str = FIRST, **changes: object) -> Path:
    source = (home / "kernel_registry" / "kernels" / FIRST / "kernel.py").read_bytes()
    document = {
        "schema_version": 1,
        "kind": "kernel_doubt",
        "kernel_id": kernel_id,
        "sha256": sha256(source).hexdigest(),
        "generation": "0" * 64,
        "shape": {"batch": 16, "hidden_size": 4096},
        "scalars": {"eps": 1e-6},
        "output": "y",
        "excess": 12.5,
        "inputs": [],
    } | changes
    path = tmp_path / "doubt.json"
    path.write_text(json.dumps(document))
    return path


def listed(home: Path) -> list[dict]:
    return ask("audit", "doubts", "--home", home, "--json").document["rows"]


def test_a_doubt_is_listed_until_a_person_has_answered_and_decides_nothing(home, tmp_path):
    said = ask("kernel", "doubt", report(home, tmp_path), "--home", home, "--json")
    assert said.status == 0, said
    (row,) = listed(home)
    assert (row["seq"], row["kernel_id"], row["output"], row["excess"]) == (said.document["seq"], FIRST, "y", 12.5)
    assert ask("kernel", "show", FIRST, "--home", home, "--json").document["status"] == "active"
    assert ask("ledger", "verify", "--home", home).status == 0
    assert ask("kernel", "doubt", report(home, tmp_path), "--home", home).status == 1
    assert ask("kernel", "keep", FIRST, "--reason", "faulty memory", "--home", home).status == 0
    assert listed(home) == []
    assert ask("kernel", "keep", FIRST, "--reason", "again", "--home", home).status == 2


def test_a_revocation_answers_a_doubt(home, tmp_path):
    assert ask("kernel", "doubt", report(home, tmp_path, excess=None), "--home", home).status == 0
    assert ask("kernel", "revoke", FIRST, "--reason", "wrong", "--yes", "--home", home).status == 0
    assert listed(home) == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"kernel_id": "cpp_nothing_v1"}, "unknown kernel"),
        ({"sha256": "1" * 64}, "wasn't promoted here"),
        ({"kind": "adoption"}, "is no report of a doubt: kind"),
        ({"schema_version": 2}, "schema_version"),
        ({"shape": {"batch": -1}}, "shape.batch"),
        ({"generation": "x"}, "generation"),
    ],
)
def test_what_is_no_doubt_about_a_kernel_of_the_workspace_is_refused(home, tmp_path, change, said):
    answer = ask("kernel", "doubt", report(home, tmp_path, **change), "--home", home)
    assert answer.status == 2
    assert said in answer.err


def test_a_promotion_publishes_what_its_operation_is(home):
    registry = Registry.open(home)
    assert set(registry.operations) == {"fused_add_rmsnorm"}
    adopted = adopting.adopt(home, trust="promoted", refresh_s=0)
    try:
        assert adopted.operations["fused_add_rmsnorm"].described.scalars == {"eps": 1e-6}
    finally:
        adopted.close()
    assert ask("op", "describe", "--home", home, "--json").document == {}
    assert SECOND in {kernel.kernel.kernel_id for kernel in registry._shown.generation.offers_of("fused_add_rmsnorm")}


def test_a_report_of_calls_is_shown_as_a_table_and_as_json(tmp_path):
    line = {
        "op": "rmsnorm", "device": "cpu", "dtype": "fp32", "shape": {"batch": 4}, "backend": "source",
        "kernel_id": "a_kernel_v1", "sha256": "0" * 64, "reason": None, "hits": 7, "captured": 0, "shadowed": 1,
        "shadow_breaches": 0, "detail": "",
    }  # fmt: skip
    document = {
        "schema_version": 1, "kind": "adoption", "generation": "0" * 64, "lines": [line],
        "withdrawn": {"another_v1": "a shadow call differed"}, "doubts": [],
    }  # fmt: skip
    path = tmp_path / "report.json"
    path.write_text(json.dumps(document))
    shown = ask("adopt", "report", path)
    assert shown.status == 0
    assert "a_kernel_v1" in shown.out
    assert "another_v1" in shown.out
    assert ask("adopt", "report", path, "--json").document == document


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"kind": "kernel_doubt", "schema_version": 1}', '{"kind": 1'])
def test_what_is_no_report_is_refused(tmp_path, content):
    path = tmp_path / "report.json"
    path.write_text(content)
    answer = ask("adopt", "report", path)
    assert answer.status == 2
    assert "expected a JSON file that Adopted.write_report wrote" in answer.err
    assert "indices" not in answer.err, "a word of Python's"
    assert ask("adopt", "report", tmp_path / "nothing").status == 2
