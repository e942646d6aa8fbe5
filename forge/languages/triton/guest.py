"""Runs beside hostile code. Triton compiles when it is called; on a CPU its interpreter stands in.

The host sets `TRITON_INTERPRET` in the environment where there is no GPU; nothing else is needed.
"""


def prepare(body: dict[str, object]) -> None:
    """Nothing to prepare."""
