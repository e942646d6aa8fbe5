"""Turns documents into the rows of a page's tables."""

from collections.abc import Callable
from typing import Any
from urllib.parse import quote

from markupsafe import Markup

Document = dict[str, Any]  # Any: a JSON document
Row = tuple[object, ...]
NS_PER_US = 1000
"""Number of nanoseconds in a microsecond, the unit of every time that is shown."""


def interval(found: object) -> Markup | str:
    """Return a speedup with its interval: 1.762x (1.755 to 1.769)."""
    if not isinstance(found, dict) or found.get("ratio") is None:
        return ""
    return unbroken(f"{found['ratio']:.3f}x ({found['low']:.3f} to {found['high']:.3f})")


def unbroken(text: str) -> Markup:
    """Return a text that stays on one line."""
    return Markup('<span class="n">{}</span>').format(text)


def broken(name: object) -> Markup:
    """Return a name that may be broken after each underscore, where a reader expects it."""
    return Markup("_<wbr>").join(str(name).split("_"))


def when(moment: str) -> Markup:
    """Return a moment in UTC to the second."""
    return Markup('<time datetime="{}">{}</time>').format(moment, moment[:19].replace("T", " "))


def kernel_interval(one: Document) -> Markup | str:
    """Return the speedup of a kernel or an experiment in a list."""
    return interval({"ratio": one.get("speedup"), "low": one.get("low"), "high": one.get("high")})


def link(base: str, name: object) -> Markup:
    """Return a link to a page by its name, which may be any text."""
    return Markup('<a href="{}/{}">{}</a>').format(base, quote(str(name), safe=""), broken(name))


def work_row(one: Document) -> Row:
    """Return a request for work."""
    return link("/runs", one["run_id"]), one["state"], one["until"], one["requested_by"], when(one["requested_at"])


def plan_row(one: Document) -> Row:
    """Return a deployment of a model."""
    told = [f"{one[name]['value']:,.3g}" for name in ("ttft_ms", "tpot_ms")]
    figures = (f"{told[0]} ms", f"{told[1]} ms", f"{one['throughput_tok_s']['value']:,.0f}")
    on = unbroken(f"{one['gpus']} x {one['gpu_name']}")
    memory = f"{one['memory_gb']['value']:.3g} of {one['memory_available_gb']:g} GB"
    return one["rank"], on, one["backend"], one["quantization"], *figures, memory, one["meets_constraints"]


def speedup_row(one: Document) -> Row:
    """Return a comparison with a baseline."""
    return one["baseline"], f"{one['baseline_median_ns'] / NS_PER_US:.2f} us", interval(one["interval"])


def answered_row(named: tuple[str, Document]) -> Row:
    """Return a comparison with a baseline, as the answer of a benchmark has it by the baseline's name."""
    name, one = named
    low, high = one["ci95"]
    speedup = interval({"ratio": one["speedup"], "low": low, "high": high})
    return name, f"{one['median_ns'] / NS_PER_US:.2f} us", speedup


def measured_row(one: Document) -> Row:
    """Return a measurement of a kernel's history."""
    verdict = one["verdict"] if one["invalidated_seq"] is None else f"withdrawn by event {one['invalidated_seq']}"
    what = (when(one["recorded_at"]), one["shape"], one["baseline"])
    shown = (*what, one["candidate_median_ns"], kernel_interval(one))
    return (link("/ledger", one["seq"]), *shown, verdict)


def samples_row(one: Document) -> Row:
    """Return the samples of one side in one process pair."""
    times = (f"{one[name]:.2f}" for name in ("low_us", "median_us", "high_us"))
    return one["side"], one["pair"], one["n"], *times


def roofline_row(one: Document) -> Row:
    """Return a candidate under a roofline."""
    rates = (f"{one[name]:,.4g}" for name in ("flop_per_byte", "gflop_per_s", "gb_per_s"))
    return one["op"], one["dtype"], one["shape"], *rates, one["floor_fraction"], one["verdict"]


def experiment_row(one: Document) -> Row:
    """Return an experiment without its run."""
    return one["closed_seq"], one["ended"], kernel_interval(one), one["hypothesis"]


def experiment_row_of_run(one: Document) -> Row:
    """Return an experiment with its run."""
    return (*experiment_row(one), link("/runs", one["run_id"]))


def gate_sides(one: Document) -> Row:
    """Return a gate whose answers differ between two runs."""
    sides = ("" if one[side] is None else f"{one[side]['verdict']}: {one[side]['observed']}" for side in ("a", "b"))
    return (one["name"], *sides)


def problem_row(one: Document) -> Row:
    """Return the row of a problem that a check of the ledger found."""
    return one.get("seq"), one["what"], one["found"]


def _cells(*names: str) -> Callable[[Document], Row]:
    """Return the function that returns the fields of these names as a row."""
    return lambda one: tuple(one[name] for name in names)


def alone(one: object) -> Row:
    """Return a row of one cell."""
    return (one,)


FILTERS: dict[str, Callable[..., object]] = {
    one.__name__: one
    for one in (
        interval, kernel_interval, work_row, speedup_row, answered_row, measured_row, experiment_row,
        experiment_row_of_run, plan_row, when, gate_sides,
        problem_row, alone, broken, samples_row, roofline_row,
    )
} | {
    "requirement_row": _cells("name", "observed", "threshold"),
    "board_row": _cells("op", "gpu", "dtype", "shape", "baseline", "n", "worst", "typical", "best"),
    "lesson_row": _cells("lesson_id", "state", "op", "text", "proposed_by"),
    "session_row": _cells("session_id", "author", "state", "rounds", "kernels", "used", "left"),
    "skill_row": _cells("id", "why"),
}  # fmt: skip
"""Name in the templates -> function."""
