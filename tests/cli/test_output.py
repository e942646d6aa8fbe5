"""What stands on stdout: JSON that is whole whatever the disk's names are, and that no terminal obeys."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from forge.cli.output import emit_json


def test_a_name_of_bytes_that_are_no_text_is_told_in_json(tmp_path: Path) -> None:
    home = os.fsencode(tmp_path) + b"/h\xff"
    os.mkdir(home)
    told = subprocess.run(
        [sys.executable, "-m", "forge", "init", "--json"], cwd=home, capture_output=True, text=True, check=False
    )
    assert told.returncode == 0, told.stderr
    assert json.loads(told.stdout)["home"].endswith(r"/h\udcff")


@pytest.mark.parametrize("obeyed", ["\x1b", "\x7f", "\x85", "\x9b", "\u061c", "\u200f", "\u2028", "\u202e", "\u2067"])
def test_what_a_terminal_would_obey_is_escaped_in_json(obeyed: str, capsys: pytest.CaptureFixture[str]) -> None:
    document = {f"na{obeyed}me": ["é 漢 🙂", f"a{obeyed}b"]}
    emit_json(document)
    said = capsys.readouterr().out
    assert obeyed not in said
    assert "é 漢 🙂" in said
    assert json.loads(said) == document


@pytest.mark.parametrize("columns", ["0", "", "100"])
def test_a_table_is_shown_on_a_terminal_whatever_width_the_environment_says(columns: str) -> None:
    ours, theirs = os.openpty()
    command = [sys.executable, "-c", "from forge.cli.output import emit_table; emit_table('', ('a',), [('shown',)])"]
    with os.fdopen(ours, "rb", buffering=0) as terminal:
        subprocess.run(command, stdout=theirs, check=True, env={**os.environ, "COLUMNS": columns})
        os.write(theirs, b"the end")  # there is something to read, whatever the table was
        assert b"shown" in terminal.read(10_000)
        os.close(theirs)
