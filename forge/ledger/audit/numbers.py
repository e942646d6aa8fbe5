"""Computes every number that events state again, from the raw samples that they name.

An event whose samples are missing or damaged is skipped here: `evidence` reports the blob. A floor is taken as
recorded, because no sample gives it.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator
from pathlib import Path

from forge.errors import UsageError
from forge.ledger.audit.differences import Difference, differences
from forge.ledger.audit.each_ledger import Row
from forge.ledger.audit.early_stop import stop_differences
from forge.ledger.audit.further_shapes import proven_shapes, shape_differences, unnamed_evidence
from forge.ledger.audit.measured_sides import side_differences
from forge.ledger.audit.replicated import replication_differences
from forge.ledger.audit.report import MALFORMED_ERRORS, AuditProblem
from forge.ledger.audit.rule import (
    baseline_used,
    claim_verdicts,
    counted_measurement,
    gate_differences,
    gate_texts,
    reason_differences,
    speedup_over,
    unmet_rules,
)
from forge.ledger.audit.samples import Document, contenders_of, first_and_confirmation, summary, workload
from forge.ledger.audit.stored import stored_document
from forge.ledger.audit.verifications import GateLists, plan_differences
from forge.ledger.audit.whole_measurements import part_differences, repeated_pairs
from forge.proof.files import read

_BENCHMARKS = ("BenchmarkRecorded", "BenchmarkFailed")
_REFERENCED_TYPES = (*_BENCHMARKS, "CandidateVerified", "ShapeTimed")
"""Types of events that later events name by their place."""
TYPES = (
    *("TaskCreated", "EnvironmentCaptured", "BaselineRecorded", "ShapeTimed", *_BENCHMARKS),
    *("CandidateVerified", "KernelPromoted", "KernelDeprecated", "KernelRevoked", "ClaimRecorded", "ClaimAssessed"),
    *("ExperimentClosed", "RunSealed", "ReplicationRecorded", "BenchmarkInvalidated"),
)
"""Types of events that state a number, or that are needed to check one."""


class Numbers:
    """The check of all numbers of one ledger, in one pass over its events in order."""

    def __init__(self, runs: Path, *, run_folders: bool = True) -> None:
        self._runs = runs
        self._run_folders = run_folders
        self._events: dict[int, tuple[str, Document]] = {}
        self._tasks: dict[str, Document] = {}
        self._machines: dict[str, str] = {}
        """Environment -> its `perf_key`: times are comparable only under the same one."""
        self._claims: dict[str, Document] = {}
        self._baselines: dict[str, list[tuple[int, Document]]] = {}
        """Run -> the baselines recorded since its last benchmark."""
        self._failed: dict[str, tuple[Document, Document]] = {}
        """Run -> its last benchmark without a verdict, and the samples so far."""
        self._samples: dict[str, str] = {}
        """Run -> the digest of its newest samples."""
        self._moved: set[str] = set()
        """Runs in whose family a kernel was promoted or withdrawn since their last benchmark."""
        self._invalid: set[int] = set()
        self._gates = GateLists()

    def problems(self, rows: Iterable[Row]) -> Iterator[AuditProblem]:
        """Yield a problem for each field that differs from what its samples give."""
        for seq, kind, payload in rows:
            try:
                document = json.loads(payload)
                found = list(self._of_event(seq, kind.decode(), document))
            except (*MALFORMED_ERRORS, AssertionError) as error:
                yield AuditProblem(seq, "numbers", "a payload and samples of a known form", repr(error)[:200])
                continue
            if kind.decode() in _REFERENCED_TYPES:
                self._events[seq] = kind.decode(), document
            yield from (AuditProblem(at, *difference) for at, difference in found)

    def _of_event(self, seq: int, kind: str, event: Document) -> Iterator[tuple[int, Difference]]:
        if kind in _BENCHMARKS:
            yield from self._of_benchmark(seq, event)
            return
        if kind == "CandidateVerified":
            judged = self._gates.differences(seq, event, self._tasks[event["task_id"]])
            yield from ((seq, one) for one in judged)
        yield from ((seq, one) for one in self._of_statement(kind, event))
        self._remember(seq, kind, event)

    def _remember(self, seq: int, kind: str, event: Document) -> None:
        """Remember what the check of later events needs."""
        match kind:
            case "TaskCreated":
                self._tasks[event["task_id"]] = event["task"]
            case "EnvironmentCaptured":
                self._machines[event["env_sha256"]] = event["perf_key"]
            case "BaselineRecorded":
                self._baselines.setdefault(event["run_id"], []).append((seq, event))
            case "BenchmarkInvalidated":
                self._invalid.add(event["benchmark_seq"])
            case "ClaimRecorded":
                self._claims[event["claim_id"]] = event
            case "KernelPromoted" | "KernelDeprecated" | "KernelRevoked":
                of_family = (run for run, (one, _) in self._failed.items() if one["task_id"][:-9] == event["family"])
                self._moved.update(of_family)

    def _of_statement(self, kind: str, event: Document) -> Iterator[Difference]:
        """Yield the differences between what an event repeats of a benchmark and that benchmark."""
        match kind:
            case "KernelPromoted":
                yield from self._of_promotion(event)
            case "ShapeTimed":
                task, policy = self._tasks[event["task_id"]], self._stored(event["policy_sha256"])
                samples = self._stored(event["samples_sha256"]) if event["samples_sha256"] else None
                yield from shape_differences(event, task, policy, samples)
            case "ClaimAssessed" if event["measured_value"] is not None:
                yield from self._of_claim(event)
            case "ExperimentClosed" if event["conclusion"].get("speedup") is not None:
                yield from self._of_conclusion(event)
            case "ReplicationRecorded":
                yield from self._of_replication(event)
            case "RunSealed" if self._run_folders and event["run_id"] in self._samples:
                yield from self._of_run(event["run_id"])

    def _of_benchmark(self, seq: int, event: Document) -> Iterator[tuple[int, Difference]]:
        run_id, measured = event["run_id"], event["workloads"]
        if not measured or event.get("stopped") is not None:
            yield from ((seq, one) for one in self._of_no_verdict(event))
            return
        (recorded,) = measured
        timed = self._baselines.pop(run_id, [])[-len(recorded["speedups"]) :]  # a crash may leave some before these
        samples = self._stored(recorded["samples_sha256"])
        if samples is None:
            return
        own = list(differences(workload(samples, recorded), recorded, "workloads[0]"))
        policy = self._stored(event["policy_sha256"])
        own += part_differences(samples, policy)
        task, anew = self._tasks[event["task_id"]], len(samples["attempts"]) == 1
        own += side_differences(event, task, recorded, policy, chosen_anew=anew)
        own += self._of_decision(event, recorded, task, policy)
        own += list(self._of_attempts(event, samples, recorded["samples_sha256"]))
        kinds = [baseline["kind"] for _, baseline in timed]
        own += list(differences([one["baseline"] for one in recorded["speedups"]], kinds, "baselines"))
        yield from self._of_baselines(event, samples, recorded, timed)
        if "baseline_seqs" in event:
            own += list(differences([place for place, _ in timed], event["baseline_seqs"], "baseline_seqs"))
        yield from ((seq, one) for one in own)

    def _of_no_verdict(self, event: Document) -> Iterator[Difference]:
        """Check a benchmark without an interval: it stopped early, or its samples, if any, give no figures."""
        if event.get("stopped") is not None:
            yield from self._of_stop(event)
            return
        if event["reason"]["code"] == "TOO_SLOW":
            yield "stopped", "the figures of the pair that decided it", "none"
        report = self._stored(event["report_sha256"]) if event.get("report_sha256") else None
        digest = report and report.get("samples_sha256")
        samples = self._stored(digest) if digest else None
        if samples is None or not digest:
            return
        first, again = first_and_confirmation(samples)
        usable = first.usable and (again is None or again.usable)
        if event["reason"]["code"] == "NOISE_TOO_HIGH" and usable:
            yield "workloads", "figures, for every time is above zero", "none"
        yield from self._of_attempts(event, samples, digest)

    def _of_stop(self, event: Document) -> Iterator[Difference]:
        digest = event["stopped"]["samples_sha256"]
        samples = self._stored(digest)
        if samples is not None:
            policy = self._stored(event["policy_sha256"])
            yield from stop_differences(event, self._tasks[event["task_id"]], policy, samples)
            yield from part_differences(samples, policy)
            yield from self._of_attempts(event, samples, digest)

    def _of_baselines(
        self, event: Document, samples: Document, recorded: Document, timed: list[tuple[int, Document]]
    ) -> Iterator[tuple[int, Difference]]:
        first, _ = first_and_confirmation(samples)
        for place, baseline in timed:
            expected = {name: event[name] for name in ("task_id", "env_sha256")} | {"shape": recorded["shape"]}
            if baseline["kind"] in first.sides:
                expected |= {"timing": summary(first, baseline["kind"])}
            yield from ((place, one) for one in differences(expected, baseline, ""))

    def _of_decision(
        self, event: Document, recorded: Document, task: Document, policy: Document | None
    ) -> Iterator[Difference]:
        used = baseline_used(task, recorded)
        yield from differences({"baseline_used": used}, event, "")
        yield from differences(task["shape"], recorded["shape"], "workloads[0].shape")
        if policy is not None:
            stated = event["reason"]["code"] if "reason" in event else None
            yield from reason_differences(task, policy, recorded, used, stated)

    def _of_attempts(self, event: Document, samples: Document, digest: str) -> Iterator[Difference]:
        """Check that the samples of earlier attempts were kept.

        Machine, protocol, incumbent and contenders must be the same for that.
        """
        run_id, attempts = event["run_id"], samples["attempts"]
        before = self._failed.pop(run_id, None)
        moved = run_id in self._moved
        self._moved.discard(run_id)
        self._samples[run_id] = digest
        if "reason" in event:
            self._failed[run_id] = event, samples
        if before is None:
            if len(attempts) != 1:
                yield "samples.attempts", "1, the run's first", str(len(attempts))
            return
        earlier, kept = before
        machines = {self._machines.get(one["env_sha256"], one["env_sha256"]) for one in (event, earlier)}
        alike = len(machines) == 1 and kept["protocol"] == samples["protocol"]
        alike = alike and contenders_of(kept) == contenders_of(samples)
        wanted = kept["attempts"] if alike else []
        if attempts[:-1] != wanted and not (moved and len(attempts) == 1):
            why = "those of the attempts before" if alike else "none of another machine, protocol or contender"
            yield "samples.attempts", f"{len(wanted)} earlier: {why}", f"{len(attempts) - 1} earlier"

    def _of_promotion(self, event: Document) -> Iterator[Difference]:
        kind, benchmark = self._events[event["benchmark_seq"]]
        _, verified = self._events[event["verified_seq"]]
        task, policy = self._tasks[event["task_id"]], self._stored(event["policy_sha256"])
        if kind != "BenchmarkRecorded" or event["benchmark_seq"] in self._invalid:
            yield "benchmark_seq", "a benchmark that met the rule and stands", f"{kind} {event['benchmark_seq']}"
            return
        (recorded,), used = benchmark["workloads"], benchmark["baseline_used"]
        further = [self._events[seq] for seq in benchmark.get("further_seqs", ())]
        final = speedup_over(counted_measurement(recorded), used)
        expected = {name: benchmark[name] for name in ("candidate", "task_id", "env_sha256", "verified_seq")}
        expected |= {
            "baseline": used,
            "speedup": final["interval"],
            "baseline_median_ns": final["baseline_median_ns"],
            "candidate_median_ns": counted_measurement(recorded)["candidate"]["median_ns"],
            "policy_sha256": task["policy_sha256"],
            "coverage": {
                "measured": [recorded["shape"], *proven_shapes(task, benchmark, further, policy, verified)],
                "verified": verified["shapes_verified"],
            },
            "task": task,
        }
        yield from differences(expected, event, "")
        yield from unnamed_evidence(task, further, verified)
        listing = self._stored(verified["artifact_sha256"]) if verified.get("artifact_sha256") else None
        yield from plan_differences(recorded, listing)
        yield from gate_differences(event, verified)
        if policy is not None:
            yield from unmet_rules(task, policy, benchmark, verified)
            said = {gate["name"]: gate["observed"] for gate in event["gates"]}
            yield from differences(gate_texts(policy, benchmark), said, "gates.observed")

    def _of_replication(self, event: Document) -> Iterator[Difference]:
        _, first = self._events[event["benchmark_seq"]]
        digests = [one["samples_sha256"] for one in event["workloads"]]
        samples = self._stored(digests[0]) if digests else None
        task, policy = self._tasks[first["task_id"]], self._stored(event["policy_sha256"])
        yield from replication_differences(event, first, task, policy, samples)
        if samples is not None:
            yield from part_differences(samples, policy)
            before = self._stored(first["workloads"][0]["samples_sha256"])
            measured = [one for each in (before, samples) if each for one in each["attempts"]]
            yield from repeated_pairs(measured, "samples of both measurements")

    def _of_claim(self, event: Document) -> Iterator[Difference]:
        """Compare a claim's assessment with the confirmation, or for the first events with the first measurement."""
        claim = self._claims[event["claim_id"]]
        _, benchmark = self._events[event["measured_by_seq"]]
        if benchmark.get("stopped") is not None:
            yield from differences(benchmark["stopped"]["ratio"], event["measured_value"], "measured_value")
            return
        (first,) = benchmark["workloads"]
        intervals = [speedup_over(one, claim["baseline"])["interval"] for one in (counted_measurement(first), first)]
        meant = next((one for one in intervals if one["ratio"] == event["measured_value"]), intervals[0])
        yield from differences({"measured_value": meant["ratio"]}, event, "")
        verdicts = claim_verdicts(claim["value"], meant)
        if event["verdict"] not in verdicts:
            yield "verdict", " or ".join(verdicts), event["verdict"]

    def _of_conclusion(self, event: Document) -> Iterator[Difference]:
        conclusion = event["conclusion"]
        _, benchmark = self._events[event["decided_seq"]]
        found = speedup_over(counted_measurement(benchmark["workloads"][0]), conclusion["against"])
        yield from differences({"speedup": found["interval"]}, conclusion, "conclusion")

    def _of_run(self, run_id: str) -> Iterator[Difference]:
        """Check that the samples in a sealed run's folder are those that its last event with samples names."""
        try:
            content = read(self._runs / run_id / "benchmark_samples.json")
        except UsageError:
            return  # the check of the manifest reports a file that is missing, or is no file
        found = hashlib.sha256(content).hexdigest()
        yield from differences(self._samples[run_id], found, f"run {run_id}/benchmark_samples.json")

    def _stored(self, digest: str) -> Document | None:
        return stored_document(self._runs, digest)
