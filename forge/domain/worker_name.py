"""Names the worker behind an environment. It imports nothing, so that an audit stays quick."""

NODE_DIGITS = 12
"""Number of characters of its name that an answer shows of a worker. They are 48 bits: a thousand workers have an
equal one with a chance of 2e-9."""


def worker_name(node: str | None, host_sha256: str) -> str:
    """Return the beginning of the name of the node that answered, or of the machine's digest if that is the head."""
    return (node or host_sha256)[:NODE_DIGITS]
