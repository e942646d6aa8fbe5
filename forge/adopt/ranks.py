"""Several ranks of one program must decide by the same publication."""

from collections.abc import Sequence

from forge.errors import UsageError


def is_one_of_several() -> bool:
    """Return whether torch.distributed is in use, so that ranks must take up a publication together."""
    import torch

    return bool(torch.distributed.is_available() and torch.distributed.is_initialized())


def require_same_generation(generation: str) -> None:
    """Raise UsageError if ranks of torch.distributed have different generations; every rank must call it."""
    if not is_one_of_several():
        return
    import torch

    found: list[str] = [""] * torch.distributed.get_world_size()
    torch.distributed.all_gather_object(found, generation)
    require_equal(found)


def require_equal(generations: Sequence[str]) -> None:
    """Raise UsageError unless all ranks named the same generation."""
    if len(set(generations)) > 1:
        named = ", ".join(f"rank {rank} has {one[:12]}" for rank, one in enumerate(generations))
        raise UsageError(
            f"ranks would decide by different publications ({named}): refresh all of them, then try again"
        )
