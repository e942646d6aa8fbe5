"""Writes what measurement.py found into docs/measurement.md, with a plot: benchmarks/measurement_page.py FILES.

Several files are one measurement that was made in parts, on GPUs of one model: trials are put together, and of
everything else the last one counts. The first may be docs/measurement-gpu.json itself, to which the others are added.
"""

import json
import math
import statistics
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from page import number, table

DOCS = Path(__file__).resolve().parent.parent / "docs"
PAGE, PLOT, DATA = "measurement.md", "measurement-gpu.svg", "measurement-gpu.json"
BEGIN = "<!-- written by benchmarks/measurement_page.py -->"
MARK = f"<!-- measured: {DATA} -->"
END = "<!-- end of what is written -->"
# Any: a JSON document, written by measurement.py
Result = dict[str, Any]

METHODS = {
    "forge": "Forge's rule",
    "forge_resident": "Forge's rule, resident",
    "events": "events, L2 flushed",
    "do_bench": "do_bench",
}
THRESHOLDS = (1.10, 1.02)
WIDTH, LEFT, RIGHT, ROW, GAP, CURVES = 800, 220, 110, 14, 8, 160
INK, GRID = "#333333", "#d5dbe0"
COLOURS = {"forge": "#2f6f9f", "forge_resident": "#2f6f9f", "events": "#b5532a", "do_bench": "#8a7fae"}
LINES = ("#2f6f9f", "#b5532a", "#5b8c5a")
LEAST, MOST = 0.5, 2.0
"""Ratios beyond are drawn at the edge."""


def merged(results: list[Result]) -> Result:
    """One document: machine, and for each shape the trials of every method with what else was found there."""
    names = {result["machine"]["gpu"] for result in results}
    if len(names) != 1:
        sys.exit(f"measured on {', '.join(sorted(names))}: expected one model of GPU")
    answer: Result = {key: results[0][key] for key in ("machine", "pairs", "rounds", "pool")}
    answer["thresholds"] = THRESHOLDS
    begun = isinstance(results[0]["shapes"], dict)
    shapes: dict[str, Result] = results[0]["shapes"] if begun else {}
    if begun:
        answer.update({key: results[0][key] for key in ("cost", "copies") if key in results[0]})
    for result in results[begun:]:
        for one in result.get("field", []):
            methods = shapes.setdefault(one["shape"], {"methods": {}})["methods"]
            _put_together(methods, one["method"], [[ratio, ratio, ratio, 0] for ratio in one["ratios"]], one)
        for one in result.get("shapes", []):
            kept = shapes.setdefault(one["shape"], {"methods": {}})
            for name in ("forge", "forge_resident"):
                if name in one:
                    _put_together(kept["methods"], name, one[name]["trials"], one[name])
            kept.update({key: one[key] for key in ("widths", "launcher", "sets", "states") if key in one})
        answer.update({key: result[key] for key in ("cost", "copies") if key in result})
    answer["shapes"] = dict(sorted(shapes.items(), key=lambda item: int(item[0].split("x")[0])))
    return answer


def _put_together(methods: Result, name: str, trials: list[list[float]], found: Result) -> None:
    kept = methods.setdefault(name, {"trials": [], "median_us": found["median_us"], "gpu_s": 0.0, "wall_s": 0.0})
    kept["trials"] += trials
    for key in ("gpu_s", "wall_s"):
        kept[key] += found.get(key, 0.0)


def claims(trials: list[list[float]], threshold: float) -> int:
    """How many trials call the kernel so much faster than itself: by the interval's lower end, no pair lost."""
    return sum(low >= threshold and lost == 0 for _, low, _, lost in trials)


def spread(trials: list[list[float]]) -> tuple[float, float, float, float]:
    """The least ratio, the 5th and 95th percentile, and the largest."""
    ratios = sorted(one[0] for one in trials)
    if len(ratios) < 2:
        return ratios[0], ratios[0], ratios[0], ratios[0]
    cuts = statistics.quantiles(ratios, n=20, method="inclusive")
    return ratios[0], cuts[0], cuts[-1], ratios[-1]


def against_itself(result: Result) -> str:
    rows: list[tuple[str, ...]] = []
    for shape, one in result["shapes"].items():
        for method, title in METHODS.items():
            if method not in one["methods"]:
                continue
            found = one["methods"][method]
            trials = found["trials"]
            least, low, high, most = spread(trials)
            counted = tuple(f"{claims(trials, threshold)} of {len(trials)}" for threshold in THRESHOLDS)
            between = (f"{low:.3f} to {high:.3f}", f"{least:.3f} to {most:.3f}")
            rows.append((shape, title, f"{found['median_us']:.2f}", *between, *counted))
    header = ("shape", "method", "us a call", "5 to 95 % of ratios", "all ratios", ">= 1.10x", ">= 1.02x")
    return table(header, rows)


def widths(result: Result) -> str:
    rows: list[tuple[str, ...]] = [
        (shape, str(row["rounds"]), f"{row['half_width']:.2%}", f"{row['gpu_s'] * 1000:.1f}")
        for shape, one in result["shapes"].items()
        for row in one.get("widths", [])
    ]
    return table(("shape", "rounds", "half-width", "ms of the GPU"), rows)


def launchers(result: Result) -> str:
    rows: list[tuple[str, ...]] = []
    for shape, one in result["shapes"].items():
        if "launcher" in one:
            found = one["launcher"]
            times = (f"{found['launcher_us']:.3f}", f"{found['own_calls_us']:.3f}")
            rows.append((shape, *times, f"{found['ratio']:.4f}", f"{found['low']:.4f} to {found['high']:.4f}"))
    return table(("shape", "launcher us", "own calls us", "ratio", "95 % interval"), rows)


def cost(result: Result) -> str:
    found = result["cost"]
    rows: list[tuple[str, ...]] = []
    for name in ("cold", "warm"):
        one = found[name]
        phases = tuple(f"{one['seconds'].get(phase, 0.0):.1f}" for phase in ("verify", "bench", "promote"))
        rows.append((name, f"{one['total_s']:.1f}", *phases, f"{one['gpu_busy_s']:.1f}", one["decision"]))
    header = ("candidate", "seconds in all", "verify", "bench", "promote", "GPU busy, s", "decision")
    said = (
        f"`examples/h200/{found['example']}` in bf16 at {found['shape']}, first and second candidate of a process: "
        f"{number(found['candidates_per_gpu_hour'])} candidates per GPU-hour, one after the other."
    )
    return f"{said}\n\n{table(header, rows)}"


def copies(result: Result) -> str:
    rows: list[tuple[str, ...]] = [
        (f"{one['megabytes']:g}", f"{one['us']:.2f}", f"{one['floor_us']:.2f}", f"{one['of_floor']:.2f}")
        for one in result["copies"]
    ]
    return table(("MB read and written", "us", "floor, us", "floor over time"), rows)


def section(result: Result) -> str:
    """What stands between the markers."""
    machine = result["machine"]
    parts = [
        f"{machine['gpu']}, CUDA {machine['cuda']}, torch {machine['torch']}, triton {machine['triton']}; "
        f"{result['pairs']} pairs of {result['rounds']} rounds, from pools of {result['pool']} launchers a side.",
        f"### Faster than itself\n\n{MARK}\n![Ratios of a kernel to itself, by method]({PLOT})\n\n"
        f"{against_itself(result)}",
    ]
    if any("widths" in one for one in result["shapes"].values()):
        parts.append(f"### What an interval costs\n\n{widths(result)}")
    if any("launcher" in one for one in result["shapes"].values()):
        parts.append(f"### The launcher and the kernel's own calls\n\n{MARK}\n{launchers(result)}")
    if "copies" in result:
        parts.append(f"### What a copy reaches of the floor\n\n{MARK}\n{copies(result)}")
    if "cost" in result:
        parts.append(f"### What a candidate costs\n\n{cost(result)}")
    return "\n\n".join(parts)


def plot(result: Result) -> str:
    """For each shape and method the range of ratios, 5 to 95 % of them thick; below, width against GPU seconds."""
    parts: list[str] = []
    height = 38
    for shape, one in result["shapes"].items():
        parts.append(f'<text x="8" y="{height + ROW}" font-weight="bold">{shape}</text>')
        for method in (method for method in METHODS if method in one["methods"]):
            parts += bar(method, spread(one["methods"][method]["trials"]), height)
            height += ROW + GAP
        height += GAP
    scale = [(ratio, f"{ratio:.2f}x") for ratio in (0.5, 0.75, 1.0, 1.25, 1.5, 2.0)]
    for ratio, name in scale:
        parts.insert(0, f'<line x1="{at(ratio):.1f}" x2="{at(ratio):.1f}" y1="36" y2="{height}" stroke="{GRID}"/>')
        parts.append(f'<text x="{at(ratio):.1f}" y="{height + 14}" text-anchor="middle">{name}</text>')
    height += 30
    curves = {shape: one["widths"] for shape, one in result["shapes"].items() if one.get("widths")}
    if curves:
        parts += width_curves(curves, height + 10)
        height += CURVES + 60
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif"'
    title = (
        '<text x="8" y="12">a kernel against itself: time in one measurement over time in another;</text>'
        '<text x="8" y="28">line: all ratios, box: 5 to 95 % of them; narrower is better</text>'
    )
    return "\n".join([f'{head} font-size="12" fill="{INK}">', title, *parts, "</svg>", ""])


def width_curves(curves: dict[str, list[Result]], top: int) -> list[str]:
    """The interval's half-width over milliseconds of the GPU, both on logarithmic scales."""
    points = [(row["gpu_s"] * 1000, row["half_width"]) for rows in curves.values() for row in rows]
    across = Scale(min(x for x, _ in points), max(x for x, _ in points), LEFT, WIDTH - RIGHT)
    down = Scale(max(y for _, y in points), min(y for _, y in points), top + 16, top + 16 + CURVES)
    parts = [
        f'<text x="8" y="{top + 6}">half the width of the interval, over the milliseconds of the GPU it took</text>'
    ]
    ends = [(down.at(rows[-1]["half_width"]), place) for place, rows in enumerate(curves.values())]
    labels = apart(ends)
    for place, (colour, (shape, rows)) in enumerate(zip(LINES, curves.items(), strict=False)):
        placed = [(across.at(row["gpu_s"] * 1000), down.at(row["half_width"])) for row in rows]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in placed)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts.append(f'<text x="{WIDTH - RIGHT + 8:.1f}" y="{labels[place] + 4:.1f}" fill="{colour}">{shape}</text>')
        for (x, y), row in zip(placed, rows, strict=True):
            said = f"{row['rounds']} rounds: {row['half_width']:.2%} in {row['gpu_s'] * 1000:.1f} ms"
            parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"><title>{said}</title></circle>')
    bottom = top + CURVES + 34
    sides = (down.first, down.last), (across.first, across.last)
    percent = [f'<text x="{LEFT - 12}" y="{down.at(y) + 4:.1f}" text-anchor="end">{y:.2%}</text>' for y in sides[0]]
    ms = [f'<text x="{across.at(x):.1f}" y="{bottom}" text-anchor="middle">{x:.1f} ms</text>' for x in sides[1]]
    return [*parts, *percent, *ms]


def apart(ends: list[tuple[float, int]]) -> dict[int, float]:
    """The height of each curve's label by the curve's number: its end, or lower where labels would overlap."""
    heights: dict[int, float] = {}
    for end, place in sorted(ends):
        heights[place] = max([end, *(height + ROW for height in heights.values())])
    return heights


@dataclass(frozen=True)
class Scale:
    """A logarithmic scale from one value to another, between two places."""

    first: float
    last: float
    begin: float
    end: float

    def at(self, value: float) -> float:
        """The place of a value."""
        whole = math.log(self.last / self.first) or 1.0
        return self.begin + (self.end - self.begin) * math.log(value / self.first) / whole


def at(ratio: float) -> float:
    """Where a ratio stands, on a logarithmic scale."""
    return Scale(LEAST, MOST, LEFT, WIDTH - RIGHT).at(min(MOST, max(LEAST, ratio)))


def bar(method: str, ends: tuple[float, float, float, float], top: int) -> list[str]:
    least, low, high, most = map(at, ends)
    middle, colour = top + ROW / 2, COLOURS[method]
    return [
        f'<text x="{LEFT - 8}" y="{middle + 4:.1f}" text-anchor="end">{METHODS[method]}</text>',
        f'<line x1="{least:.1f}" x2="{max(most, least + 1):.1f}" y1="{middle}" y2="{middle}" stroke="{colour}"/>',
        f'<rect x="{low:.1f}" y="{top}" width="{max(1.5, high - low):.1f}" height="{ROW}" fill="{colour}"/>',
        f'<text x="{most + 6:.1f}" y="{middle + 4:.1f}">{ends[0]:.2f} to {ends[3]:.2f}</text>',
    ]


def written(page: str, result: Result) -> str:
    """The page with the section between its markers replaced."""
    before, _, rest = page.partition(BEGIN)
    _, found, after = rest.partition(END)
    if not found:
        sys.exit(f"{PAGE} has no place for the figures: expected {BEGIN!r} and {END!r}")
    return f"{before}{BEGIN}\n\n{section(result)}\n\n{END}{after}"


def main() -> None:
    result = merged([json.loads(Path(name).read_text()) for name in sys.argv[1:]])
    (DOCS / DATA).write_text(json.dumps(result, separators=(",", ":")) + "\n")
    (DOCS / PLOT).write_text(plot(result))
    (DOCS / PAGE).write_text(written((DOCS / PAGE).read_text(), result))


if __name__ == "__main__":
    main()
