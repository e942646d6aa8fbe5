"""Names the files of a candidate. It loads no models."""

REQUIRED_FILES = ("kernel.py", "reference.py", "test_correctness.py", "bench.py", "metadata.json")
"""Names of the files of a candidate: exactly these, in the order in which its digest names them."""
