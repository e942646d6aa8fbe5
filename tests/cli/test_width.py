"""Tables on a narrow terminal: nothing that is copied or counted is broken in two."""

import os
import re
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forge.cli.colour import Painter
from forge.cli.output import number_text
from forge.cli.table_layout import cell_width, table_lines

PLAIN = Painter(coloured=False)
WORDS = st.text(st.sampled_from("ab01_=,./"), min_size=1, max_size=60)
CELLS = st.lists(WORDS, max_size=12).map(" ".join)


def printed(columns: list[str], rows: list[list[str]], *, width: int) -> str:
    return "\n".join(table_lines(columns, rows, PLAIN, limit=width))


@given(rows=st.lists(st.lists(CELLS, min_size=4, max_size=4), min_size=1, max_size=4), width=st.integers(40, 200))
def test_no_word_of_a_table_is_ever_broken(rows: list[list[str]], width: int) -> None:
    shown = printed(["one", "two", "three", "four"], rows, width=width).split()
    for row in rows:
        for cell in row:
            assert not set(cell.split()) - set(shown)


def test_a_table_that_fits_stays_within_the_terminal() -> None:
    rows = [["triton_rmsnorm_h200_bf16_b16_h4096_v1", "a reason of many words " * 12, "1.076"]]
    lines = printed(["kernel", "why", "speedup"], rows, width=80).splitlines()
    assert max(map(len, lines)) <= 80
    assert any("triton_rmsnorm_h200_bf16_b16_h4096_v1" in line and "1.076" in line for line in lines)


def test_rows_that_do_not_fit_are_printed_one_below_the_other() -> None:
    rows = [[f"{'long_' * 12}{place}", f"1.07{place}", f"{'other_' * 10}{place}"] for place in (1, 2)]
    lines = printed(["run", "speedup", "task"], rows, width=80).splitlines()
    assert [line.split() for line in lines] == [
        ["run", rows[0][0]],
        ["speedup", "1.071"],
        ["task", rows[0][2]],
        [],
        ["run", rows[1][0]],
        ["speedup", "1.072"],
        ["task", rows[1][2]],
    ]


def test_the_name_of_a_fact_is_never_folded() -> None:
    lines = printed(["", ""], [["language triton", "verified by an interpreter " * 3], ["key", "a" * 60]], width=80)
    assert [line.split("  ")[1] for line in lines.splitlines() if line[2:3].strip()] == ["language triton", "key"]


def test_an_empty_cell_of_a_row_that_does_not_fit_has_no_line() -> None:
    rows = [["long_" * 16, "", "1.07"], ["long_" * 16, "promoted", "1.08"]]
    lines = printed(["run", "gate", "speedup"], rows, width=80).splitlines()
    assert [line.split()[:1] for line in lines] == [["run"], ["speedup"], [], ["run"], ["gate"], ["speedup"]]


def test_a_terminal_shows_a_refusal_in_another_colour_than_an_acceptance_and_keeps_the_columns() -> None:
    columns, rows = ["gate", "verdict"], [["sources", "passed"], ["replay", "failed"], ["sizes", "not asked"]]
    plain = table_lines(columns, rows, PLAIN, limit=80)
    painted = table_lines(columns, rows, Painter(coloured=True), limit=80)
    assert [re.sub(r"\x1b\[\d*m", "", line) for line in painted] == plain
    colours = [re.findall(r"\x1b\[(\d+)m(?:passed|failed|not asked)", line) for line in painted]
    assert [one for found in colours for one in found] == ["32", "31", "33"]


def test_wide_letters_and_marks_keep_the_columns_apart() -> None:
    lines = table_lines(["author", "n"], [["\u6771\u4eac", "1"], ["e\u0301a", "2"]], PLAIN, limit=None)
    assert [line.rstrip()[-1] for line in lines[2:4]] == ["1", "2"]
    assert [cell_width(line) for line in lines[2:4]] == [12, 12]


def read_whole(terminal: int) -> bytes:
    shown = b""
    with os.fdopen(terminal, "rb", buffering=0) as stream:
        while True:
            try:
                read = stream.read(65536)
            except OSError:  # Linux's answer when the terminal's other end is closed
                return shown
            if not read:
                return shown
            shown += read


@pytest.mark.slow
def test_a_command_breaks_no_name_at_eighty_columns() -> None:
    ours, theirs = os.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", "from forge.__main__ import main; main()", "op", "list"],
        stdout=theirs,
        env={**os.environ, "COLUMNS": "80", "NO_COLOR": "1", "TERM": "dumb"},
    ) as asked:
        os.close(theirs)
        shown = read_whole(ours)
    assert asked.returncode == 0
    words = re.sub(r"\x1b\[[0-9;]*m", "", shown.decode()).split()
    assert {"fused_add_rmsnorm", "gated_rmsnorm_quant", "quantize_fp8_per_tensor"} <= set(words)


def test_numbers_are_printed_with_the_digits_that_they_are_worth() -> None:
    assert list(map(number_text, (1.2911932, 20341.7, 90830.01666666666, 0.94591, 0.0))) == (
        ["1.291", "20342", "90830", "0.9459", "0"]
    )
