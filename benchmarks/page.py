"""Writes docs/performance.md and its plot from measured figures: python benchmarks/page.py docs/performance.json.

The figures come from `python benchmarks/ledger.py --json`; `make performance` does both.
"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parent.parent / "docs"
PAGE, PLOT = "performance.md", "performance.svg"
# Any: a JSON document, written by ledger.py
Result = dict[str, Any]

WIDTH, LEFT, RIGHT, BAR, GAP = 800, 300, 130, 20, 8
INK, OURS, OTHERS, SPREAD = "#333333", "#2f6f9f", "#a9b8c4", "#1b1b1b"

REASONS = (
    (
        "append / ",
        "Appends beside others: where a wait for the disk costs milliseconds, both wait as long. Here an fdatasync "
        "is answered from a cache, so the ratio is that of the processor's work: validating, reading the event back "
        "and comparing it, two digests, and in SQLite a trigger with five checks and five indexes.",
    ),
    (
        "append_many",
        "`append_many`: about half of an event's time in it is SQLite's own (trigger, indexes, pages of the log). "
        "A third is validating, serialising and reading it back; the rest is its place in the chain. A batch saves "
        "what a transaction costs and no more, so the ratio rises with the wait for the disk: in a run of this "
        "benchmark at a load of 7, with other programs at the disk, it was 6.6 (quartiles 4.0 to 11).",
    ),
    (
        "verify",
        "Verifying: SQLite's check of pages and indexes costs as much as all digests; the rest is reading rows and "
        "comparing columns, one after the other, in Python.",
    ),
    (
        "rebuild",
        "Rebuilding holds every payload against its digest and writes whole rows, and indexes, into fifteen tables, "
        "where the bare cursor decodes and writes nothing; reading alone takes twice the bare cursor's time.",
    ),
    (
        "peak memory",
        "Peak memory: most of it is there after the imports (see `imports alone`).",
    ),
    (
        "import forge.lookup",
        "Importing `forge.lookup` reads six small files; where other work shares the processor's cores, that takes "
        "longer, as does the interpreter's own start.",
    ),
    (
        "exact",
        "An exact answer is a call with four named arguments, the making of a key, and one dictionary's answer. "
        "Where other work shares the processor's cores, all of it takes longer.",
    ),
    (
        "nearest, at",
        "A nearest answer at a new shape is Python's validating and comparing, and scales with the processor; where "
        "other work shares the cores, it takes longer.",
    ),
)
"""Part of a missed figure's name -> what stands in the way."""


def number(value: float) -> str:
    """Three digits that mean something, thousands apart."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def table(header: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [header, tuple("---" for _ in header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def figures(measured: list[dict[str, Any]]) -> str:
    rows = []
    for one in measured:
        said = "" if "goal" not in one else f"{one['goal']}: {'reached' if one['reached'] else '**missed**'}"
        between = f"{number(one['low'])} to {number(one['high'])}"
        rows.append((one["name"], f"{number(one['median'])} {one['unit']}", between, said))
    return table(("figure", "median", "quartiles", "goal"), rows)


def page(result: Result) -> str:
    """The page as it stands in the documentation."""
    machine = result["machine"]
    return f"""# Performance of the ledger

<!-- measured: performance.json -->

This page says how fast the ledger and the registry are. `make performance` writes it: don't edit it.

{machine["cpu"]}, Python {machine["python"]}, SQLite {machine["sqlite"]}; {result["rounds"]} rounds.
Other work ran on the same machine: its load was {machine["load"][0]} before and {machine["load"][1]} after appending.

All contenders are interleaved: each round runs a slice of every one of them in random order.
A ratio is taken within a round, and says how many times as fast the first is as the second.
On a machine that others use, believe ratios before rates, and `processor` ratios before others: those leave out the
wait for the disk.

## Recording events

Each contender makes the same facts durable, in a file of its own on the same disk, with `synchronous=FULL`.
`sqlite3 INSERT` and `SQLModel session` get finished values and a table without indexes.
Forge starts from plain data: it validates, serialises, chains, guards by triggers, keeps the tree, and fsyncs.
`SQLModel session, same rules` does the same as Forge, to the same tables, one object and session at a time.
`x100` is a hundred events in one transaction.

How near an append comes to a bare INSERT depends on the disk: both wait for one fdatasync, and Forge works longer
beside it. Where that wait is long, as on disks that don't answer from a cache, the ratio goes to 1; where it is
shorter than the work, as here, the ratio goes to that of the processor times below.

![Events a second, by contender]({PLOT})

{rates(result)}

## Figures

Verifying, reading, proving and reopening are measured on a ledger of {result["events"]:,} events.

{figures(result["figures"])}

`hashlib's own speed` is what can't be saved: the digests of each payload, each envelope and one tree node an event.
The audit also reads the rows, compares every column, and lets SQLite check pages and indexes. It holds every payload
against its canonical form with the standard library's JSON; where many differ in their values alone, that form is
worked out once.
{projections(result)}{reading(result)}
{missed(result)}
## Measure it yourself

```sh
make performance
```

The comparison with `eventsourcing` is made if the library is there: `pip install eventsourcing`.
"""


def projections(result: Result) -> str:
    """What benchmarks/projections.py kept, if it did."""
    found = result.get("projections")
    if not found:
        return ""
    return f"""
## Projections and audit queries

The load of the machine was up to {result["projections_load"]}. A rebuild is held against a bare cursor over the
same ledger that decodes each payload and keeps a dictionary; each runs in a process of its own, imports included.

{figures(found)}
"""


def reading(result: Result) -> str:
    """What benchmarks/read_side.py kept, if it did."""
    found = result.get("read_side")
    if not found:
        return ""
    under = found["under_swaps"]
    readers = {kind: under[kind] for kind in ("threads", "processes")}
    answers, torn, failed = (sum(seen[name] for seen in readers.values()) for name in ("answers", "torn", "failed"))
    return f"""
## Reading the registry

In processor time, {found["rounds"]} rounds; the load of the machine was {found["load"][0]:.1f} before and
{found["load"][1]:.1f} after. Each kernel was verified at 48 shapes and measured at one. Where there are 1,000, ten
share an operation, GPU and dtype. `a list per request` is one JSON file of the same kernels, with less about each,
that is parsed and walked through at each request. `exact` is an answer that was given before.

{figures(found["figures"])}

Under {under["swaps"]:,} publications one after the other, threads and processes asked and refreshed, half of them
opening the registry anew each time: {answers:,} answers, {failed} of them failed, {torn} torn.
"""


def missed(result: Result) -> str:
    """Which goals weren't reached in this run, and what stands in the way."""
    kept = [*result["figures"], *result.get("projections", []), *result.get("read_side", {}).get("figures", [])]
    found = {one["name"]: one for one in kept}
    names = [name for name, one in found.items() if not one.get("reached", True)]
    if not names:
        return ""
    single, hundred = (1e6 / rate(result, name) for name in ("forge", "forge x100"))
    worked = found["processor time of an append: forge"]["median"]
    waited = found["fdatasync of one page"]["median"]
    bare = found["processor time of an append: sqlite3 INSERT"]["median"]
    said = "\n".join(f"- {reason}" for about, reason in REASONS if any(about in name for name in names))
    return f"""
## Goals that aren't reached, and why

In this run an append takes {number(single)} us, of which the processor works {number(worked)} us
({worked / single:.0%}); one fdatasync by itself is {number(waited)} us ({waited / single:.0%}), and what is left is
waiting for the disk and for other programs. In a batch of a hundred an event takes {number(hundred)} us. A bare
INSERT costs the processor {number(bare)} us.

{said}
"""


def rate(result: Result, name: str) -> float:
    return next(float(one["median"]) for one in result["rates"] if one["name"] == name)


def rates(result: Result) -> str:
    rows = [
        (one["name"], number(one["median"]), f"{number(one['low'])} to {number(one['high'])}")
        for one in result["rates"]
    ]
    return table(("contender", "events/s", "quartiles"), rows)


def plot(result: Result) -> str:
    """Horizontal bars with their quartiles: single events above, hundreds below, each to its own scale."""
    batched = [one for one in result["rates"] if one["name"].endswith("x100")]
    single = [one for one in result["rates"] if one not in batched]
    parts: list[str] = []
    height = 10
    for title, group in (("one event a transaction, events/s", single), ("a hundred a transaction", batched)):
        height += 20
        parts.append(f'<text x="8" y="{height}" font-weight="bold">{title}</text>')
        height += 12
        longest = max(one["high"] for one in group)
        for one in group:
            parts += bar(one, height, (WIDTH - LEFT - RIGHT) / longest)
            height += BAR + GAP
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif"'
    return "\n".join([f'{head} font-size="13" fill="{INK}">', *parts, "</svg>", ""])


def bar(one: dict[str, Any], top: int, scale: float) -> list[str]:
    """One contender's name, bar, quartiles and number."""
    middle, colour = top + BAR / 2, OURS if one["name"].startswith("forge") else OTHERS
    low, median, high = (LEFT + one[name] * scale for name in ("low", "median", "high"))
    return [
        f'<text x="{LEFT - 8}" y="{middle + 5:.1f}" text-anchor="end">{one["name"]}</text>',
        f'<rect x="{LEFT}" y="{top}" width="{median - LEFT:.1f}" height="{BAR}" fill="{colour}"/>',
        f'<line x1="{low:.1f}" x2="{high:.1f}" y1="{middle}" y2="{middle}" stroke="{SPREAD}"/>',
        f'<text x="{high + 8:.1f}" y="{middle + 5:.1f}">{number(one["median"])}</text>',
    ]


def main() -> None:
    result = json.loads(Path(sys.argv[1]).read_text())
    (DOCS / PAGE).write_text(page(result))
    (DOCS / PLOT).write_text(plot(result))


if __name__ == "__main__":
    main()
