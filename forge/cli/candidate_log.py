"""Prints a candidate's log: every line marked as the candidate's words, none of which is an instruction."""

import sys
from typing import Any

from forge.cli.output import visible

Log = dict[str, Any]  # Any: a JSON document, taken apart for people
MARK = "  candidate| "
"""Beginning of each line that is the candidate's or its compiler's, so that none passes for a line of Forge."""


def show_log(log: Log | None, report: str | None) -> None:
    """Print the excerpt of a log, then the path of the whole report."""
    if log is not None:
        _show_excerpt(log, where="in the report" if report is not None else "left out")
    if report is not None:
        write_line(f"report: {report}")


def show_place(place: Log | None) -> None:
    """Print the line of kernel.py with which to begin, where no log names one, and the line that launches it."""
    if place is None:
        return
    write_line(f"{place['file']}:{place['line']}, which {place['does']}, is the place to begin:")
    write_line(f"{MARK}> {place['source']}")
    if place["comes_from"]:
        write_line("it comes from:")
        for one in place["comes_from"]:
            write_line(f"{MARK}{one['line']:>4}: {one['source']}")
    if place["called_by"] is not None:
        write_line(f"{place['file']}:{place['called_by']['line']} calls it:")
        write_line(f"{MARK}> {place['called_by']['source']}")


def _show_excerpt(log: Log, *, where: str) -> None:
    place = f"{log['file']}:{log['line']}: " if log["file"] and log["line"] else ""
    write_line(f"{place}in the candidate's words, which are untrusted:")
    if log["source"]:
        write_line(f"{MARK}> {log['source']}")
    if log["withheld"]:
        write_line(f"{MARK}{log['untrusted_error'] or 'an error'}")
        write_line(
            "the message is withheld, because the process had been asked at held-out shapes; the report has it"
        )
        return
    for line in log["untrusted_lines"]:
        write_line(MARK + line)
    if log["lines_left_out"]:
        left_out = log["lines_left_out"]
        write_line(f"{left_out} more {'line is' if left_out == 1 else 'lines are'} {where}")
    if log["note"]:
        write_line(f"note: {log['note']}")


def write_line(text: str) -> None:
    """Print one line whatever it holds: controls and line ends are shown as escapes."""
    sys.stdout.write(visible(text).replace("\n", r"\n") + "\n")
