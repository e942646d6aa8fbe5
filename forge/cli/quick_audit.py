"""Answers plain audits without the parser, which takes a third of such a command's time.

The answer is the audit's own; only its options are read here. Every mistake is left to the whole command, which says
what is wrong.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from forge.cli.plain_options import HOME, JSON, plain_options


@dataclass(frozen=True)
class QuickAudit:
    """An audit that may be answered here."""

    file: str
    filters: tuple[str, ...] = ()
    """Options with a value that it takes."""
    argument: str | None = None
    """Parameter of its function for the one argument that it needs."""


FILTERS = ("--op", "--gpu", "--dtype")
"""Options of an audit with the name of an operation, a processor or an element type."""
AUDITS: Mapping[str, QuickAudit] = {
    "leaderboard": QuickAudit("audit_speed", FILTERS),
    "regressions": QuickAudit("audit_speed"),
    "fast-p": QuickAudit("audit_speed", FILTERS),
    "rejections": QuickAudit("audit_authors", ("--op", "--gpu")),
    "claims": QuickAudit("audit_authors"),
    "experiments": QuickAudit("audit_authors", FILTERS),
    "effectiveness": QuickAudit("audit_authors", FILTERS),
    "views": QuickAudit("audit_sql"),
    "invalidated": QuickAudit("audit_stale"),
    "stale": QuickAudit("audit_stale"),
    "sql": QuickAudit("audit_sql", argument="query"),
    "doubts": QuickAudit("audit_kernels"),
    "why": QuickAudit("audit_kernels", argument="kernel_id"),
    "history": QuickAudit("audit_kernels", argument="kernel_id"),
    "replication": QuickAudit("audit_kernels"),
}
"""Audit -> how it may be answered here. All other parameters of its function have defaults."""


def quick_audit(arguments: Sequence[str]) -> bool:
    """Print the answer to the arguments of a plain audit; return False if the whole command must answer."""
    if not arguments or arguments[0] not in AUDITS:
        return False
    audit = AUDITS[arguments[0]]
    parsed = plain_options(arguments[1:], valued=(HOME, *audit.filters), has_argument=audit.argument is not None)
    if parsed is None:
        return False
    from forge.cli.audit_options import DrawnAuditOptions
    from forge.errors import ForgeError

    given, argument = parsed
    form = DrawnAuditOptions(home=Path(given[HOME]) if HOME in given else None, as_json=JSON in given)
    answer = getattr(import_module(f"forge.cli.{audit.file}"), arguments[0].replace("-", "_"))
    asked = {option.removeprefix("--"): given[option] for option in audit.filters if option in given}
    if audit.argument is not None and argument is not None:
        asked[audit.argument] = argument
    try:
        answer(form, **asked)
    except (ForgeError, OSError):  # before anything is printed
        return False
    return True
