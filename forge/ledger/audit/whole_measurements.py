"""Compares what the parts of a measurement say of each other and of the policy: calls, rounds, blocks and regimes.

Figures follow from samples. Samples in which something was left out, or that were counted twice, give other figures:
their own parts contradict them.
"""

import json
from collections.abc import Iterator, Sequence

from forge.ledger.audit.differences import Difference, differences
from forge.ledger.audit.samples import REPLAYS, Document

_COUNTED = REPLAYS[1:]
"""Protocols whose sides make one call for each set of operands in a window."""
_ROUNDS_IN_A_BLOCK = 6
"""Number of rounds that are kept or left out together. A pair's last block may have fewer."""
_CACHE_SHARE = 0.5
"""Share of the last-level cache into which the operands of the resident regime must fit."""


def part_differences(samples: Document, policy: Document | None) -> Iterator[Difference]:
    """Yield where the parts of stored samples contradict each other, or the policy.

    Only the newest attempt was made under the event's policy: earlier ones are kept from the events before.
    """
    again = samples.get("confirmation") or []
    yield from repeated_pairs((*samples["attempts"], *again), "samples")
    for name, attempts in (("attempts", samples["attempts"]), ("confirmation", again)):
        for place, attempt in enumerate(attempts):
            newest = place == len(attempts) - 1
            path = f"samples.{name}[{place}]"
            yield from _of_attempt(attempt, samples["protocol"], policy if newest else None, path)


def repeated_pairs(attempts: Sequence[Document], path: str) -> Iterator[Difference]:
    """Yield a difference if two process pairs have the same times: no second measurement has them."""
    for regime, measured in (
        ("cold", attempts),
        ("resident", [one["resident"] for one in attempts if one.get("resident")]),
    ):
        pairs = [json.dumps(pair) for one in measured for pair in one["pairs"]]
        if len(set(pairs)) != len(pairs):
            yield f"{path}.pairs", f"{len(pairs)} {regime} pairs with times of their own", f"{len(set(pairs))}"


def _of_attempt(attempt: Document, protocol: str, policy: Document | None, path: str) -> Iterator[Difference]:
    if protocol in _COUNTED:
        yield from differences(dict.fromkeys(attempt["sides"], attempt["sets"]), attempt["calls"], f"{path}.calls")
        resident = attempt.get("resident")
        if resident:
            calls = dict.fromkeys(attempt["sides"], resident["calls"]["candidate"])
            yield from differences(calls, resident["calls"], f"{path}.resident.calls")
    if policy is not None and protocol in REPLAYS:
        yield from _blocks(attempt, policy, path)
    if policy is not None and "resident" in policy.get("regimes", ()) and not attempt.get("resident"):
        yield from _missing_regime(attempt.get("residence"), path)


def _blocks(attempt: Document, policy: Document, path: str) -> Iterator[Difference]:
    """Yield whether more was left out than the policy allows, or less is there than the blocks held."""
    pairs, blocks, dropped = attempt["pairs"], attempt["blocks"], attempt["dropped"]
    each = policy["replay_rounds"]
    yield from differences(len(pairs) * -(-each // _ROUNDS_IN_A_BLOCK), blocks, f"{path}.blocks")
    yield from differences(len(pairs), len(attempt["host_ratio"]), f"{path}.host_ratio")
    if not 0 <= dropped <= policy["most_dropped"] * blocks:
        yield f"{path}.dropped", f"at most {policy['most_dropped']} of {blocks} blocks", repr(dropped)
    rounds, least = sum(map(len, pairs)), len(pairs) * each - dropped * _ROUNDS_IN_A_BLOCK
    if not least <= rounds <= len(pairs) * each - dropped:
        yield f"{path}.pairs", f"at least {least} rounds, all of the blocks that are kept", f"{rounds} rounds"


def _missing_regime(residence: Document | None, path: str) -> Iterator[Difference]:
    """Yield a difference if operands fit into the cache, and no resident times are there."""
    if residence is None or residence["excluded"] is not None or residence["cache_bytes"] is None:
        return
    sets = int(_CACHE_SHARE * residence["cache_bytes"]) // max(1, residence["operand_bytes"])
    if sets >= residence["fewest_sets"]:
        yield f"{path}.resident", "times, for the operands fit into the cache", "None"
