"""Says how much memory the guests of a reference file have, and how much of it the operands of one call may take."""

from forge.domain.policy import Policy

SETS_PER_GUEST = 8
"""Number of sets of operands that must fit into a guest's memory: the operands of a few calls, intermediate results,
and both in fp64."""


def most_set_bytes(policy: Policy) -> int:
    """Return how many bytes the operands, weights and results of one call may take in fp64."""
    return policy.memory_limit_bytes // SETS_PER_GUEST


def with_room(policy: Policy, bytes_of_a_guest: int) -> Policy:
    """Return the policy with at least this much memory for a guest, since the target's device may have more."""
    return policy.model_copy(update={"memory_limit_bytes": max(policy.memory_limit_bytes, bytes_of_a_guest)})


def expected_room(policy: Policy) -> str:
    """Return the end of a refusal: how much memory there is, and how to have more."""
    most = f"expected at most {most_set_bytes(policy)} bytes, an eighth of what a guest may have"
    return f"{most}; on a machine with more memory, raise memory_limit_bytes in policy.toml"
