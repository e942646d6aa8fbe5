"""Runs beside hostile code. PyTorch candidates need no preparation and no build."""


def prepare(body: dict[str, object]) -> None:
    """Do nothing: there is nothing to prepare."""
