"""Prints the report of `forge ledger verify`: the ledger, its keys, the trusted key, and every problem."""

from typing import Any

from forge.cli.output import emit_table, say
from forge.cli.signed import say_unvouched

Data = dict[str, Any]  # Any: a JSON document


def show_report(report: Data) -> None:
    """Print the report as tables."""
    state = "ok" if report["ok"] else "BROKEN"
    rows = [(state, report["events"], report["signed"], report["root"], report["head"])]
    emit_table("Ledger", ("verdict", "events", "signed up to event", "root", "head"), rows)
    if report["keys"]:
        named = [(one["seq"], one["key"], _by(one), _signed(one)) for one in report["keys"]]
        emit_table("Keys", ("named at event", "key", "named by", "first to sign events"), named)
    given = report["checkpoint"]
    if given:
        columns = ("against", "size", "root", "verdict")
        emit_table("Checkpoint", columns, [(given["origin"], given["size"], given["root"], given["verdict"])])
    if report["verdict"]:
        vouched = (report["verdict"], report["vouched_for"], report["unvouched"])
        emit_table("The key that is trusted", ("verdict", "vouches for events", "events beyond"), [vouched])
    if report["problems"]:
        problems = [(p["seq"], p["what"], p["expected"], p["found"]) for p in report["problems"]]
        emit_table("", ("seq", "what", "expected", "found"), problems)
    if not report["keys"] and report["events"]:
        say("note: no key signs this ledger: its owner can rewrite all of it")
    say_unvouched([one["seq"] for one in report["keys"] if not one["vouched"]])


def _by(key: Data) -> str:
    if key["how"] == "rotated":
        return "the key before it"
    return "the ledger's owner, as its first key" if key["vouched"] else "a person; the key before it didn't sign"


def _signed(key: Data) -> str:
    return "none" if key["first"] is None else f"{key['first']} to {key['last']}"
