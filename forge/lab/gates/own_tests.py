"""Runs the candidate's own test_correctness.py and bench.py in the sandbox; their results are only claims.

They can refuse the candidate, but never accept it.
"""

import json
import math
import os

from forge.domain.verdict import Reason
from forge.lab.calls.refusal import require_verdict
from forge.lab.finding import Failed, Finding, Passed
from forge.sandbox.launch import Exit
from forge.sandbox.limits import Limits
from forge.sandbox.reply import Refused
from forge.sandbox.session import exit_reason
from forge.sandbox.stage import OWN_BENCHMARK, OWN_TESTS, Stage

CLAIM_KEYS = ("speedup", "candidate_latency_us", "baseline_latency_us")
"""Keys that are read from the last JSON line of the candidate's bench.py."""


def examine_own_tests(stage: Stage, *, limits: Limits, threads: int) -> Finding:
    """Run the author's tests with pytest. A failure refuses the candidate; a pass proves nothing."""
    limits = stage.bounded(limits)
    ended, log = _run(stage, OWN_TESTS, limits, threads)
    threshold = "test_correctness.py passes"
    if ended.signal is not None or ended.timed_out or ended.flooded:
        reason = exit_reason(ended, limits)
        require_verdict(Refused(reason, log, from_load=ended.from_load))
        return Failed(reason=reason, observed=reason.message, threshold=threshold, log=log)
    if ended.returncode != 0:
        message = f"the candidate's own test_correctness.py failed (pytest's status {ended.returncode})"
        return Failed(
            reason=Reason(code="BAD_SUBMISSION", message=message),
            observed=message,
            threshold=threshold,
            log=log,
        )
    return Passed(observed="the candidate's own tests pass (a claim)", threshold=threshold)


def own_benchmark_claims(stage: Stage, *, limits: Limits, threads: int) -> dict[str, float]:
    """Run bench.py and return the claims in the last line of its output that is a JSON object."""
    _, untrusted_log = _run(stage, OWN_BENCHMARK, limits, threads)
    return parse_claims(untrusted_log)


def parse_claims(untrusted_log: str) -> dict[str, float]:
    """Return the claims in a benchmark's output: finite positive numbers under known keys, and nothing else."""
    for line in reversed(untrusted_log.splitlines()):
        if not (line.startswith("{") and line.endswith("}")):
            continue
        try:
            untrusted = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(untrusted, dict):
            return {key: float(untrusted[key]) for key in CLAIM_KEYS if _is_claim(untrusted.get(key))}
    return {}


def _is_claim(untrusted: object) -> bool:
    if isinstance(untrusted, bool) or not isinstance(untrusted, int | float):
        return False
    try:
        return math.isfinite(untrusted) and 0 < untrusted < 1e12
    except OverflowError:
        return False


def _run(stage: Stage, script: str, limits: Limits, threads: int) -> tuple[Exit, str]:
    nothing = os.open(os.devnull, os.O_RDWR)
    try:
        with stage.start(script, descriptors=(nothing,), limits=limits, threads=threads) as guest:
            ended = guest.wait(None)
            assert ended is not None, "a wait without an end returns when the guest has ended"
            return ended, guest.log()
    finally:
        os.close(nothing)
