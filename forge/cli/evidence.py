"""Prints a verdict's evidence: findings in the sources, the failing case in full, an earlier judgement."""

from typing import Any

from forge.cli.output import emit_table, say, shape_text

Answer = dict[str, Any]  # Any: a JSON document, taken apart for people
WIDEST = 12
"""Largest number of columns of a printed grid; wider ones don't fit on a terminal."""


def show_evidence(answer: Answer) -> None:
    """Print a table for each kind of evidence that the answer has."""
    reused = answer.get("reused")
    if reused:
        say(
            f"already judged: {answer['verdict']} at {reused['recorded_at']} (event {reused['seq']}); "
            "to judge it again, use --again in another run"
        )
    if answer.get("findings"):
        rows = [_finding_row(one) for one in answer["findings"]]
        emit_table("Findings in the sources", ("kind", "where", "source", "why"), rows)
    if answer.get("counterexample"):
        _show_counterexample(answer["counterexample"])
    if answer.get("built") and answer["verdict"] == "rejected":
        kept = [(one["path"], one["size_bytes"], one["kept_at"]) for one in answer["built"]]
        emit_table("Built files, to put beside kernel.py", ("file", "bytes", "kept as"), kept)


def _finding_row(finding: Answer) -> tuple[str, str, str, str]:
    more = f" (and {finding['further']} more places)" if finding.get("further") else ""
    place = f"{finding['file']}:{finding['line']}:{finding['column']}"
    return finding["kind"], place, finding["untrusted_excerpt"], finding["why"] + more


def _show_counterexample(case: Answer) -> None:
    at = f"{case['output']}[{', '.join(map(str, case['index']))}]"
    found = f"{shape_text(case['shape'])}, {case['inputs']}"
    if case.get("shrunk_from"):
        found += f" (shrunk from {shape_text(case['shrunk_from'])})"
    if case.get("wrong_elements"):
        found += f"; {case['wrong_elements']}"
    row = (at, *(f"{float(case[name]):.9g}" for name in ("expected", "got")), _error(case), _allowed(case))
    emit_table(f"Counterexample: {found}", ("where", "expected", "got", "error", "allowed"), [row])
    for operand in case.get("operands") or ():
        _show_values(operand["name"], operand["sizes"], operand["values"])
    expected, got = case.get("expected_values"), case.get("got_values")
    if expected and got:
        pairs = zip(expected["values"], got["values"], strict=True)
        cells = [want if want == have else f"{want} / {have}" for want, have in pairs]
        _show_values(f"{got['name']}: expected / got", got["sizes"], cells)


def _show_values(name: str, sizes: list[int], cells: list[str]) -> None:
    """Print values as a grid, the last axis across. All other axes together make the rows."""
    width = sizes[-1] if sizes else 1
    if not 1 <= width <= WIDEST:
        return
    rows = [cells[start : start + width] for start in range(0, len(cells), width)]
    emit_table(name, ("", *map(str, range(width))), [(number, *row) for number, row in enumerate(rows)])


def _allowed(case: Answer) -> str:
    return f"{float(case['allowed_error']):.3g}"


def _error(case: Answer) -> str:
    return f"{abs(float(case['got']) - float(case['expected'])):.3g}"
