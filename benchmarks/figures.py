"""A measured figure: its median with quartiles, its unit, and the goal it is held against. No imports of Forge."""

import statistics
from typing import Any

# Any: a JSON document
Figure = dict[str, Any]


def spread(values: list[float]) -> dict[str, float]:
    low, middle, high = statistics.quantiles(values, n=4)
    return {"low": low, "median": middle, "high": high}


def goal(name: str, measured: dict[str, float], at_least: float) -> Figure:
    return {
        "name": name,
        **measured,
        "unit": "x",
        "goal": f">= {at_least}",
        "reached": measured["median"] >= at_least,
    }


def limit(name: str, measured: dict[str, float], at_most_ms: float) -> Figure:
    reached = measured["median"] <= at_most_ms
    return {"name": name, **measured, "unit": "ms", "goal": f"<= {at_most_ms:g} ms", "reached": reached}


def shown(figure: Figure) -> str:
    digits = 0 if figure["median"] >= 100 else 2
    low, middle, high = (f"{figure[name]:,.{digits}f}" for name in ("low", "median", "high"))
    said = "" if "goal" not in figure else f"  {figure['goal']}: {'reached' if figure['reached'] else 'missed'}"
    return f"  {figure['name']:44}{middle:>10} {figure['unit']:9}({low} to {high}){said}"
