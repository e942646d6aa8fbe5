"""The npm package as data: pinned, contained, never run; absent, the plan says so.

The package itself can't be had here: these folders have its published layout and schema, with texts of our own.
"""

import os
from pathlib import Path
from typing import Any

import orjson
import pytest

from forge.domain.digest import sha256
from forge.errors import UsageError
from forge.pipeline.plan import read_libraries
from forge.pipeline.skill_package import MOST_BYTES, PACKAGE, PIN, read_package
from forge.pipeline.skills import embedded_skills

TEXT = b"# A softmax kernel in Triton\n\nOne program per row.\n"
RECORD = {
    "id": "triton.write-triton-softmax-kernel",
    "name": "Write a softmax kernel",
    "category": "triton",
    "summary": "Writes a row softmax as a Triton kernel",
    "tags": ["softmax", "Row Reduction"],
    "difficulty": "intermediate",
    "hardware": ["nvidia", "amd"],
    "languages": ["python", "triton"],
    "version": "0.1.0",
    "entry": "skills/triton/write-triton-softmax-kernel/SKILL.md",
}
FOLDER = "skills/triton/write-triton-softmax-kernel"


def install(home: Path, *, pin: str = PIN, name_of: str = PACKAGE, **changes: Any) -> Path:
    root = home / "node_modules" / PACKAGE
    (root / FOLDER).mkdir(parents=True)
    (root / "package.json").write_bytes(orjson.dumps({"name": name_of, "version": pin, "bin": "dist/src/cli.js"}))
    record = {key: value for key, value in {**RECORD, **changes}.items() if value is not None}
    (root / FOLDER / "skill.json").write_bytes(orjson.dumps(record))
    (root / FOLDER / "SKILL.md").write_bytes(TEXT)
    return root


def test_an_absent_package_is_said_to_be_absent(tmp_path: Path) -> None:
    assert read_package(tmp_path) == ()
    embedded, library = read_libraries(tmp_path)[1]
    assert (embedded.state, embedded.skills) == ("read", len(embedded_skills()))
    assert (library.provider, library.state, library.version, library.sha256) == (PACKAGE, "absent", None, None)


def test_the_pinned_package_is_read_with_its_digests(tmp_path: Path) -> None:
    root = install(tmp_path)
    (skill,) = read_package(tmp_path)
    _, library = read_libraries(tmp_path)[1]
    assert skill.id == RECORD["id"]
    assert skill.sha256 == sha256(TEXT)
    assert skill.provider == f"{PACKAGE}@{PIN}"
    assert (skill.front.language, skill.front.platform) == (("triton",), ("cuda", "rocm"))
    assert skill.front.category == "operation"
    assert skill.front.tags == ("softmax", "row-reduction")
    assert (library.state, library.version, library.skills) == ("read", PIN, 1)
    (root / FOLDER / "SKILL.md").write_bytes(TEXT + b"More.\n")
    assert read_libraries(tmp_path)[1][1].sha256 != library.sha256


@pytest.mark.parametrize("version", ["0.1.9", "0.2.1", "1.0.0", "^0.2.0", ""])
def test_another_version_is_refused_with_the_command_that_installs_the_right_one(
    tmp_path: Path, version: str
) -> None:
    install(tmp_path, pin=version)
    with pytest.raises(UsageError, match=r"expected '0\.2\.0'") as refused:
        read_package(tmp_path)
    assert refused.value.hint is not None
    assert "--ignore-scripts" in refused.value.hint


def test_another_packages_name_is_refused(tmp_path: Path) -> None:
    install(tmp_path, name_of="@someone/kernel-skills")
    with pytest.raises(UsageError, match=r"package\.json"):
        read_package(tmp_path)


@pytest.mark.parametrize("entry", ["../../../secret.md", "/etc/hostname", "skills/none/SKILL.md", "skills", "."])
def test_an_entry_that_leads_out_or_nowhere_is_refused(tmp_path: Path, entry: str) -> None:
    install(tmp_path, entry=entry)
    (tmp_path / "secret.md").write_text("# Secret\n")
    with pytest.raises(UsageError, match="plain file inside the package"):
        read_package(tmp_path)


@pytest.mark.parametrize("entry", ["a\0b", "x" * 300, "loop"], ids=lambda text: ascii(text[:4]))
def test_an_entry_that_no_file_can_be_is_refused(tmp_path: Path, entry: str) -> None:
    root = install(tmp_path, entry=entry)
    (root / "loop").symlink_to("loop")
    with pytest.raises(UsageError, match="plain file inside the package"):
        read_package(tmp_path)


def test_a_linked_text_is_refused(tmp_path: Path) -> None:
    root = install(tmp_path)
    outside = tmp_path / "outside.md"
    outside.write_bytes(TEXT)
    (root / FOLDER / "SKILL.md").unlink()
    (root / FOLDER / "SKILL.md").symlink_to(outside)
    with pytest.raises(UsageError, match="no link"):
        read_package(tmp_path)


@pytest.mark.parametrize(
    "changes",
    [{"summary": None}, {"tags": []}, {"extra": 1}, {"id": "Triton"}, {"difficulty": "easy"}, {"version": "1"}],
    ids=str,
)
def test_a_record_that_breaks_the_schema_is_refused_with_its_path(tmp_path: Path, changes: dict[str, Any]) -> None:
    install(tmp_path, **changes)
    with pytest.raises(UsageError, match=r"skill\.json"):
        read_package(tmp_path)


def test_damaged_empty_or_overlong_files_are_refused(tmp_path: Path) -> None:
    root = install(tmp_path)
    text = root / FOLDER / "SKILL.md"
    text.write_bytes(b"#" * (MOST_BYTES + 1))
    with pytest.raises(UsageError, match="bytes: expected at most"):
        read_package(tmp_path)
    text.write_bytes(b"\xff")
    with pytest.raises(UsageError, match=r"skill\.json"):
        read_package(tmp_path)
    (root / FOLDER / "skill.json").write_bytes(b"{")
    with pytest.raises(UsageError, match=r"skill\.json"):
        read_package(tmp_path)
    (root / FOLDER / "skill.json").unlink()
    with pytest.raises(UsageError, match="expected some"):
        read_package(tmp_path)


def test_nothing_of_the_package_is_run(tmp_path: Path) -> None:
    root = install(tmp_path)
    trace = tmp_path / "ran"
    (root / "dist" / "src").mkdir(parents=True)
    program = root / "dist" / "src" / "cli.js"
    program.write_text(f"#!/bin/sh\ntouch {trace}\n")
    program.chmod(0o755)
    before = {path: path.stat().st_mtime_ns for path in root.rglob("*")}
    read_package(tmp_path)
    assert not os.path.lexists(trace)
    assert {path: path.stat().st_mtime_ns for path in root.rglob("*")} == before
