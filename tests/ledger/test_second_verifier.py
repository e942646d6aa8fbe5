"""A ledger can be read without Forge: a second verifier, written from two pages alone, reads the one that ships."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from forge.domain.digest import canonical
from tests.ledger.forging import forge
from tests.second_verifier.canonical import canonical as canonical_by_the_page

ROOT = Path(__file__).parents[2]
READER = ROOT / "tests" / "second_verifier"
SHIPPED = {
    "events": 2134,
    "notes": 108,
    "runs": 103,
    "files": 1185,
    "digests": 269,
    "benchmarks": 111,
    "promotions": 60,
}
"""What the ledger that ships holds; blobs are counted by the reader."""


def read(home: Path) -> dict[str, Any]:
    """What the second verifier says, in a process that has the standard library and its own files only."""
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(READER), str(home)], capture_output=True, text=True, check=False, cwd="/"
    )
    assert done.stdout, done.stderr
    said: dict[str, Any] = json.loads(done.stdout)
    assert done.returncode == bool(said["faults"])
    return said


def test_the_ledger_that_ships_is_derived_again_without_forge() -> None:
    said = read(ROOT)
    assert said["faults"] == []
    assert SHIPPED.items() <= said["counts"].items()
    own = {path.stem for path in READER.glob("*.py")}
    roots = {name.partition(".")[0] for name in said["modules"]}
    assert roots <= sys.stdlib_module_names | own, "neither Forge nor a library"


def test_a_promotion_of_1_62x_turned_into_9_62x_is_found(tmp_path: Path) -> None:
    shutil.copy(ROOT / "kernel_registry.db", tmp_path)
    shutil.copytree(ROOT / "forge_runs", tmp_path / "forge_runs", copy_function=os.link)
    old, new = "1.6232663937417076", "9.623266393741707"
    forge(tmp_path / "kernel_registry.db", lambda seq, _, text: text.replace(old, new) if seq >= 755 else text)
    (fault,) = read(tmp_path)["faults"]
    assert fault[:2] == [755, "confirmation speedup over compile ratio"]


def test_a_page_lists_what_the_reader_takes_for_stored_bytes() -> None:
    page = (ROOT / "docs" / "reference" / "blobs.md").read_text()
    reader = (READER / "__main__.py").read_text()
    table = reader.partition("BLOBS = ")[2].partition("}\n")[0] + "}"
    listed = {row.split(" | ")[0].strip("| ") for row in page.splitlines() if row.startswith("| ") and "`" in row}
    assert listed - {"KernelRevoked"} == {line.split('"')[1] for line in table.splitlines() if ":" in line}


@given(
    st.dictionaries(
        st.text(), st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**53), 2**53) | st.text()
    )
)
def test_the_page_spells_values_as_the_writer_does(value: dict[str, object]) -> None:
    assert canonical_by_the_page(value) == canonical(value)


def test_small_and_large_numbers_are_spelled_as_the_page_says() -> None:
    numbers = [0.0001, 0.00001, 9.8e-5, 1e-6, 9.8e-7, 1e15, 1e16, 1.5e300, 5.0, -1e-5, -0.0]
    assert canonical_by_the_page(numbers) == canonical(numbers)  # type: ignore[arg-type]  # a list of JSON
