"""Answers plain audits without the parser, which takes a third of such a command's time.

The answer is the audit's own; only its options are read here. Every mistake is left to the whole command, which says
what is wrong.
"""

from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path

from forge.cli.plain_options import HOME, JSON, plain_options

FILTERS = ("--op", "--gpu", "--dtype")
"""Options of an audit with the name of an operation, a processor or an element type."""
AUDITS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "leaderboard": ("audit_speed", FILTERS),
    "regressions": ("audit_speed", ()),
    "fast-p": ("audit_speed", FILTERS),
    "rejections": ("audit_authors", ("--op", "--gpu")),
    "claims": ("audit_authors", ()),
    "experiments": ("audit_authors", FILTERS),
    "effectiveness": ("audit_authors", FILTERS),
    "views": ("audit_sql", ()),
    "invalidated": ("audit_stale", ()),
    "stale": ("audit_stale", ()),
}
"""Audit -> its file and the filters that it takes. All other parameters of its function have defaults."""


def quick_audit(arguments: Sequence[str]) -> bool:
    """Print the answer to the arguments of a plain audit; return False if the whole command must answer."""
    if not arguments or arguments[0] not in AUDITS:
        return False
    file, filters = AUDITS[arguments[0]]
    parsed = plain_options(arguments[1:], valued=(HOME, *filters))
    if parsed is None:
        return False
    from forge.cli.audit_options import DrawnAuditOptions
    from forge.errors import ForgeError

    given, _ = parsed
    form = DrawnAuditOptions(home=Path(given[HOME]) if HOME in given else None, as_json=JSON in given)
    answer = getattr(import_module(f"forge.cli.{file}"), arguments[0].replace("-", "_"))
    try:
        answer(form, **{option.removeprefix("--"): given[option] for option in filters if option in given})
    except (ForgeError, OSError):  # before anything is printed
        return False
    return True
