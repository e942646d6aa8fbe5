"""Memory that outputs of a chain have left is where the next chain's outputs are put, in the guest of every side."""

import subprocess
import sys

import pytest

from forge.guest import memory

CHAINS = '''
import resource

import torch

from forge.guest import memory

MALLOPT = memory._MALLOPT


def faults_of_a_chain():
    """Return the page faults of 24 calls whose outputs of 256 KiB are kept until all are made."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    kept = [torch.ones(2**16) for _ in range(24)]
    taken = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
    memory.keep_freed() if KEEPS else None
    kept.clear()
    return taken


if MALLOPT is not None:
    MALLOPT(memory._M_MMAP_THRESHOLD, 2**17)  # as a candidate could that is quick without this setting
    MALLOPT(memory._M_TRIM_THRESHOLD, 2**17)
memory.keep_freed() if KEEPS else None
print(*(faults_of_a_chain() for _ in range(12)))
'''


def faults(*, keeps: bool) -> list[int]:
    """The page faults of each of twelve chains, in a process of their own."""
    script = f"KEEPS = {keeps}\n{CHAINS}"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=120)
    return list(map(int, done.stdout.split()))


@pytest.mark.skipif(memory._MALLOPT is None, reason="this C library has no mallopt")
def test_a_chain_takes_no_page_faults_where_the_one_before_had_its_outputs() -> None:
    given_back, kept = (sum(faults(keeps=keeps)[4:]) for keeps in (False, True))
    assert kept * 8 < given_back
