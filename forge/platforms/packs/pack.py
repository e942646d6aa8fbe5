"""The form of a platform pack, and pieces that its readers share. Exports are untrusted text."""

import csv
import io
import json
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from forge.domain.profile import Bottleneck


@dataclass(frozen=True)
class Meaning:
    """One counter of a platform's profilers."""

    id: str
    """Name under which a diagnosis cites it."""
    unit: str
    says: str
    """Meaning of the number, in half a sentence."""
    speaks_for: Bottleneck | None
    """Bottleneck for which a high value speaks. None: it is only needed beside others."""


@dataclass(frozen=True)
class CounterReading:
    """One number that was read from an export."""

    id: str
    value: float
    unit: str


@dataclass(frozen=True)
class Pack:
    """Facts, an example and counters of a platform, as a brief shows them to an author."""

    name: str
    title: str
    languages: tuple[str, ...]
    facts: tuple[str, ...]
    """Facts about the toolchain and the hardware, each a sentence."""
    example: str
    """Worked example: the source of a whole kernel for one operation."""
    example_of: str
    """Sentence that says what the example computes, and where it comes from."""
    metrics: tuple[Meaning, ...]
    readers: Mapping[str, Callable[[str], tuple[CounterReading, ...]]]
    """Profiler -> reader of its export."""

    def text(self) -> str:
        """Return the pack as a section of a brief."""
        rows = [f"| `{one.id}` | {one.unit} | {one.says} | {one.speaks_for or ''} |" for one in self.metrics]
        facts = [f"- {one}" for one in self.facts]
        table = ["| counter | unit | says | speaks for |", "|---|---|---|---|", *rows]
        example = [f"A worked example, {self.example_of}:", "", "```", self.example.strip(), "```"]
        return "\n".join([f"## Platform: {self.title}", "", *facts, "", *table, "", *example]) + "\n"


def of_rows(rows: Iterable[Mapping[str, str]], columns: Mapping[str, tuple[str, str]]) -> tuple[CounterReading, ...]:
    """Return the mean of each known column over rows of text; cells that hold no number are left out."""
    found: dict[str, list[float]] = {}
    for row in rows:
        for column, text in row.items():
            value = number(text)
            if column in columns and value is not None:
                found.setdefault(column, []).append(value)
    return tuple(
        CounterReading(columns[column][0], sum(values) / len(values), columns[column][1])
        for column, values in found.items()
    )


def csv_rows(text: str) -> list[dict[str, str]]:
    """Return the rows of a CSV file with a row of names first."""
    return [
        {str(name).strip(): str(cell).strip() for name, cell in row.items() if name is not None}
        for row in csv.DictReader(io.StringIO(text.lstrip("\ufeff")))
    ]


def trace_times(text: str) -> tuple[CounterReading, ...]:
    """Return the total times of a trace of torch.profiler (Chrome's trace format), in microseconds."""
    document: Any = json.loads(text)  # Any: a document of another program
    totals: dict[str, float] = {}
    for one in document["traceEvents"]:
        if isinstance(one, dict) and isinstance(one.get("dur"), int | float) and math.isfinite(one["dur"]):
            category = str(one.get("cat", ""))
            name = {"kernel": "torch.kernel_us", "cpu_op": "torch.operator_us", "cuda_runtime": "torch.runtime_us"}
            if category in name:
                totals[name[category]] = totals.get(name[category], 0.0) + float(one["dur"])
    return tuple(CounterReading(name, value, "us") for name, value in sorted(totals.items()))


def number(text: str | None) -> float | None:
    """Return a finite number from a cell such as `1,234.5`, `87 %` or `3.2 us`; None for anything else."""
    if text is None:
        return None
    try:
        found = float(text.strip().split(" ")[0].rstrip("%").replace(",", ""))
    except (ValueError, IndexError):
        return None
    return found if math.isfinite(found) else None


TORCH_METRICS = (
    Meaning("torch.kernel_us", "us", "time in kernels, all together", None),
    Meaning(
        "torch.operator_us", "us", "time in operators on the host; far above the kernels' it means waiting", "launch"
    ),
    Meaning("torch.runtime_us", "us", "time in calls of the driver's runtime", "launch"),
)
"""Counters that torch.profiler gives on every platform."""
