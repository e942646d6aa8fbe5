"""Reads the price of a model as a person writes it."""

import re
from decimal import Decimal

from forge.domain.budget import Price
from forge.errors import UsageError

MICRO = 1_000_000
"""Number of micro-dollars in a dollar."""
_AMOUNT = r"[0-9]{1,6}(?:\.[0-9]{1,6})?"
_PRICE = re.compile(rf"(?P<model>[^=\s]{{1,100}})=(?P<prompt>{_AMOUNT}),(?P<answer>{_AMOUNT})", re.ASCII)


def parse_price(untrusted_text: str) -> Price:
    """Return a model's price from `MODEL=IN,OUT`, in dollars for a million tokens; raise UsageError."""
    found = _PRICE.fullmatch(untrusted_text)
    if found is None:
        raise UsageError(
            f"bad price {untrusted_text!r:.200}: expected MODEL=IN,OUT in dollars for a million tokens, with at most "
            "six decimals, such as example-1=3,15"
        )
    return Price(
        model=found["model"],
        prompt_micro_dollars=int(Decimal(found["prompt"]) * MICRO),
        answer_micro_dollars=int(Decimal(found["answer"]) * MICRO),
    )
