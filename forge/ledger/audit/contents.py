"""Compares events with the content of the bytes that they name: samples, reports, and files of sealed runs."""

import sqlite3
from pathlib import Path

from forge.ledger.audit.each_ledger import imported_ledgers, problem_of, rows_of
from forge.ledger.audit.models import TYPES as MODEL_TYPES
from forge.ledger.audit.models import ModelNumbers
from forge.ledger.audit.numbers import TYPES as NUMERIC_TYPES
from forge.ledger.audit.numbers import Numbers
from forge.ledger.audit.report import AuditProblem
from forge.ledger.audit.reports import TYPES as REPORT_TYPES
from forge.ledger.audit.reports import report_problems
from forge.ledger.audit.sealed_files import TYPES as FILE_TYPES
from forge.ledger.audit.sealed_files import sealed_file_problems
from forge.ledger.audit.session_spreads import TYPES as SPREAD_TYPES
from forge.ledger.audit.session_spreads import spread_problems


def content_problems(connection: sqlite3.Connection, runs: Path) -> list[AuditProblem]:
    """Return what events of this ledger, and of imported ones, say that the bytes they name don't."""
    found = list(sealed_file_problems(rows_of(connection, None, FILE_TYPES), runs))
    for ledger_id in (None, *imported_ledgers(connection)):
        of_runs = Numbers(runs, run_folders=ledger_id is None).problems(rows_of(connection, ledger_id, NUMERIC_TYPES))
        of_models = ModelNumbers(runs).problems(rows_of(connection, ledger_id, MODEL_TYPES))
        of_reports = report_problems(rows_of(connection, ledger_id, REPORT_TYPES), runs)
        of_spreads = spread_problems(rows_of(connection, ledger_id, SPREAD_TYPES), runs)
        problems = (*of_runs, *of_models, *of_reports, *of_spreads)
        found += problems if ledger_id is None else (problem_of(ledger_id, one) for one in problems)
    return found
