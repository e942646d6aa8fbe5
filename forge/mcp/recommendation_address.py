"""Writes and reads the address of a recommendation, which says all that was asked."""

from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

from forge.errors import UsageError

if TYPE_CHECKING:
    from forge.app.desk.view import View

BEGINNING = "forge://recommendation/"
MOST_DIGITS = 4
"""Largest number of digits of a number of GPUs. The tool takes at most 1,024 of them."""


def recommendation_address(model: str, *, workload: str, priority: str, max_gpus: int, gpu: str | None) -> str:
    """Return the address at which the whole answer stands."""
    parts = (workload, priority, str(max_gpus), *(() if gpu is None else (gpu,)))
    return f"{BEGINNING}{quote(model, safe='')}/{','.join(quote(one, safe='') for one in parts)}"


def recommended(view: "View", untrusted_model: str, untrusted_aims: str) -> dict[str, object]:
    """Return the recommendation for a model and aims as an address has them; raise UsageError."""
    from forge.app.desk.answers import recommendation

    parts = [unquote(one) for one in untrusted_aims.split(",")]
    if len(parts) not in (3, 4) or not (parts[2].isascii() and parts[2].isdecimal() and len(parts[2]) <= MOST_DIGITS):
        raise UsageError(
            f"bad aims {untrusted_aims[:100]!r}: expected a workload, a priority, a number of GPUs and perhaps a GPU"
        )
    constraints: dict[str, object] = {"max_gpus": int(parts[2])} | ({"gpus": [parts[3]]} if len(parts) == 4 else {})
    asked = {"workload": parts[0], "priority": parts[1], "constraints": constraints}
    return recommendation(view, models=[unquote(untrusted_model)], asked=asked, prices=[])
