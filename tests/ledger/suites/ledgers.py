"""Ledgers with a real clock and random ids, as many processes write them."""

import os
import time
from datetime import UTC, datetime
from pathlib import Path

from forge.ledger.ids import uuid7
from forge.ledger.store import Ledger
from tests.ledger.making import duplicated

__all__ = ["duplicated", "fill", "new_id", "now", "opened"]


def now() -> datetime:
    return datetime.now(UTC)


def new_id() -> str:
    return uuid7(time.time_ns() // 10**6, os.urandom(10))


def opened(path: Path, *, read_only: bool = False) -> Ledger:
    return Ledger.open(path, now=now, new_id=new_id, read_only=read_only)


def fill(ledger: Ledger, count: int) -> None:
    """Append small events over three streams, one by one."""
    for number in range(count):
        ledger.append([duplicated(number, candidate="abc"[number % 3])], actor="cli:ada", correlation_id="fill")
