"""What may be said, from the command line: a kernel's sentences, and pages held against a ledger."""

import shutil
from pathlib import Path

import pytest

from tests.cli.asking import ask, files

ROOT = Path(__file__).parents[2]
KERNEL = "triton_rmsnorm_h200_bf16_b16_h4096_v1"


@pytest.fixture
def shipped(tmp_path: Path) -> Path:
    """The ledger that ships, alone."""
    folder = tmp_path / "shipped"
    folder.mkdir()
    shutil.copy(ROOT / "kernel_registry.db", folder)
    return folder


@pytest.fixture
def page(tmp_path: Path) -> Path:
    return tmp_path / "page.md"


def test_a_kernels_sentences_are_all_supported_when_they_are_checked(shipped: Path, page: Path) -> None:
    before = files(shipped)
    found = ask("kernel", "claims", KERNEL, "--home", shipped, "--json").document
    assert found["may_be_quoted"] is True
    assert "1.291x as fast as `torch.compile` (95 % interval 1.288 to 1.295x)" in found["sentences"][0]["text"]
    assert all(one["text"].endswith(f"event {one['seq']}, {one['event_type']}.") for one in found["sentences"])
    page.write_text("\n\n".join(one["text"] for one in found["sentences"]))
    answer = ask("claims", "check", page, "--home", shipped, "--json")
    assert (answer.status, answer.document["ok"]) == (0, True)
    (report,) = answer.document["files"]
    assert len(report["supported"]) == sum(one["about"] in ("speed", "floor", "time") for one in found["sentences"])
    assert files(shipped) == before, "looking writes nothing"


def test_a_flagged_page_is_a_refusal_that_says_what_would_be_true(shipped: Path, page: Path) -> None:
    page.write_text(f"{KERNEL} is up to 13x faster than PyTorch.\n")
    answer = ask("claims", "check", page, "--home", shipped, "--json")
    assert answer.status == 1
    (flagged,) = answer.document["files"][0]["flagged"]
    assert {fault["problem"] for fault in flagged["faults"]} >= {"no_baseline", "best_case"}
    assert "1.291x as fast as `torch.compile`" in flagged["instead"]
    table = ask("claims", "check", page, "--home", shipped)
    assert (table.status, "instead:" in table.out) == (1, True)


def test_a_page_that_claims_nothing_is_fine(shipped: Path, page: Path) -> None:
    page.write_text("# A page\n\nIt says nothing.\n")
    assert ask("claims", "check", page, "--home", shipped).status == 0


def test_a_kernel_that_is_not_there_is_named_with_those_near_it(shipped: Path) -> None:
    answer = ask("kernel", "claims", KERNEL + "0", "--home", shipped)
    assert answer.status == 2
    assert KERNEL in answer.error


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("binary.md", b"\x7fELF\x00\x00", "control characters"),
        ("latin.md", b"caf\xe9", "UTF-8"),
        ("big.md", b"x" * (2**20 + 1), "more than 1048576 bytes"),
        ("kernel.py", b"x = 1", "no Markdown"),
        ("deep.md", b">" * 200 + b" 2x", "nested"),
        ("long.md", b"word " * 5000, "too long"),
        ("brackets.md", b"![" * 400_000, "too long"),
    ],
)
def test_what_is_no_page_is_refused(name: str, content: bytes, complaint: str, shipped: Path, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    answer = ask("claims", "check", tmp_path / name, "--home", shipped)
    assert answer.status == 2
    assert complaint in answer.error


def test_a_file_that_no_disk_could_hold_vouches_for_nothing(shipped: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"<!-- measured: {'a' * 300}.json -->\n\nStartup is 1.25x faster.\n")
    answer = ask("claims", "check", page, "--home", shipped, "--json")
    assert (answer.status, answer.document["ok"]) == (1, False)


def test_a_missing_file_and_a_folder_are_refused(shipped: Path, tmp_path: Path) -> None:
    for path in (tmp_path / "gone.md", tmp_path):
        answer = ask("claims", "check", path, "--home", shipped)
        assert answer.status == 2
        assert "can't read" in answer.error
