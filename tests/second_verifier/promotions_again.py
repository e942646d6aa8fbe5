"""Whose bytes, run, task, machine and judgement each promotion names, as docs/reading-the-ledger.md says."""


def check(events, faults, digest):
    """Go through the events in order; `digest` is SHA-256 over the one text of a value. Gives how many decided."""
    state, count = State(), 0
    for seq, kind, event in events:
        if kind in DECISIONS:
            count += 1
            faults.extend(
                [seq, name, str(wanted), str(found)]
                for name, wanted, found in DECISIONS[kind](state, seq, event, digest)
            )
        state.take(seq, kind, event)
    return count


class State:
    """What the events so far say of runs, machines, kernels and families."""

    def __init__(self):
        self.events, self.machines, self.tasks, self.runs, self.kernels, self.families = {}, {}, {}, {}, {}, {}

    def take(self, seq, kind, event):
        self.events[seq] = kind, event
        run = self.runs.setdefault(event["run_id"], {"skills": []}) if "run_id" in event else {}
        if kind == "EnvironmentCaptured":
            self.machines.setdefault(event["env_sha256"], (seq, event))
        elif kind == "TaskCreated":
            self.tasks.setdefault(event["task_id"], event["task"])
        elif kind == "PlanAccepted":
            run["skills"] = [skill["id"] for skill in event["skills"]]
        elif kind == "CandidateSubmitted":
            run.update(author=event["author"], candidate=event["candidate"])
        elif kind in ("KernelPromoted", "PromotionDenied", "RunSealed"):
            run["ended"] = seq
        if kind == "KernelPromoted":
            self.families[event["family"]] = self.families.get(event["family"], 0) + 1
            self.kernels[event["kernel_id"]] = event

    def named(self, seq, before, kind):
        """The event of this type at a place before another; an empty one if there is none."""
        found = self.events.get(seq) if seq < before else None
        return found[1] if found is not None and found[0] == kind else None


def promoted(state, seq, event, digest):
    """What a promotion says, beside what the events before it give: name, expected, found."""
    judged = state.named(event["verified_seq"], seq, "CandidateVerified")
    timed = state.named(event["benchmark_seq"], seq, "BenchmarkRecorded")
    if judged is None or timed is None:
        yield "evidence", "a verification and a benchmark before it", [event["verified_seq"], event["benchmark_seq"]]
        return
    files = {"entry_point": event["entry_point"], "files": event["files"], "language": event["task"]["language"]}
    run = state.runs.get(event["run_id"], {})
    ordinal = state.families.get(event["family"], 0) + 1
    paths = [file["path"] for file in event["files"]]
    pairs = [
        ("candidate of its files", digest(files), event["candidate"]),
        ("candidate of its run", run.get("candidate"), event["candidate"]),
        ("author and skills", [run.get("author"), run.get("skills")], [event["author"], event["skills"]]),
        ("run decided once", None, run.get("ended")),
        ("kernel.py", True, "kernel.py" in paths),
        ("task", state.tasks.get(event["task_id"]), event["task"]),
        ("digest of the task", digest(event["task"])[:8], event["task_id"][-8:]),
        ("family", event["task_id"][:-9], event["family"]),
        ("version", [ordinal, f"{event['family']}_v{ordinal}"], [event["version"], event["kernel_id"]]),
        ("artifact", judged["artifact_sha256"], event["artifact_sha256"]),
        ("domain", judged.get("domain"), event.get("domain")),
        ("verification of the benchmark", timed["verified_seq"], event["verified_seq"]),
        ("machine", timed["env_sha256"], event["env_sha256"]),
    ]
    names = ("candidate", "run_id", "task_id", "policy_sha256")
    pairs += [(f"{name} of the evidence", [judged[name], timed[name]], [event[name]] * 2) for name in names]
    _, machine = state.machines.get(timed["env_sha256"], (0, {}))
    pairs += [(name, machine.get(name), event[name]) for name in ("perf_key", "abi_key")]
    target = event["task"]["target"]["gpu"]
    for one in (judged, timed) if target != "cpu" else ():
        _, captured = state.machines.get(one["env_sha256"], (0, {}))
        pairs.append(("GPU of the task", target, ((captured.get("environment") or {}).get("gpu") or {}).get("slug")))
    pairs += [
        ("judged on a machine", True, state.machines.get(judged["env_sha256"], (seq,))[0] < event["verified_seq"])
    ]
    yield from (pair for pair in pairs if pair[1] != pair[2])
    yield from judgement(state, event, judged)
    yield from covered(state, event, judged, timed)


def judgement(state, event, judged):
    """Every gate that was asked passed, on the target itself; a reused judgement is the earlier one."""
    verdicts = [gate["verdict"] for gate in judged["gates"]]
    if "passed" not in verdicts or "failed" in [*verdicts, *(gate["verdict"] for gate in event["gates"])]:
        yield "gates", "passed, or not asked", verdicts
    if judged["simulated"]:
        yield "simulated", False, True
    again = judged.get("reused_seq")
    if again is not None:
        own = ("run_id", "attempt", "reused_seq")
        earlier = state.named(again, event["verified_seq"], "CandidateVerified") or {}
        first, second = (
            {name: one[name] for name in one if name not in own and one[name] is not None}
            for one in (earlier, judged)
        )
        if first != second or earlier.get("reused_seq") is not None:
            yield "reused judgement", first, second


def covered(state, event, judged, timed):
    """It offers no shape that wasn't verified or measured, and its further shapes are of the same evidence."""
    measured = [workload["shape"] for workload in timed["workloads"]]
    for seq in timed.get("further_seqs", ()):
        one = state.named(seq, event["benchmark_seq"], "ShapeTimed")
        names = ("candidate", "run_id", "task_id", "verified_seq", "env_sha256", "policy_sha256")
        if one is None or any(one[name] != timed[name] for name in names):
            yield "further shape", "one of the same evidence", seq
        elif one["timing"] and one["reason"] is None:
            measured.append(one["shape"])
    for name, allowed in (("verified", judged["shapes_verified"]), ("measured", measured)):
        beyond = [shape for shape in event["coverage"][name] if shape not in allowed]
        if beyond:
            yield f"coverage.{name}", allowed, beyond


def withdrawn(state, seq, event, _):
    """The kernel was promoted; so was its successor, for the same slot."""
    own, successor = state.kernels.get(event["kernel_id"]), event.get("superseded_by")
    if own is None or own["family"] != event["family"]:
        yield "kernel", "one that was promoted", event["kernel_id"]
        return
    if event.get("benchmark_seq", own["benchmark_seq"]) != own["benchmark_seq"]:
        yield "benchmark_seq", own["benchmark_seq"], event["benchmark_seq"]
    if event.get("candidate", own["candidate"]) != own["candidate"]:
        yield "candidate", own["candidate"], event["candidate"]
    if successor is not None:
        later = state.kernels.get(successor)
        if successor == event["kernel_id"] or later is None or slot(later["task"]) != slot(own["task"]):
            yield "superseded_by", f"another kernel for {slot(own['task'])}", successor


def slot(task):
    return task["op"], task["target"]["gpu"], task["dtype"]


def invalidated(state, seq, event, _):
    """A benchmark that is withdrawn is one of the named candidate."""
    found = state.named(event["benchmark_seq"], seq, "BenchmarkRecorded")
    if found is None or found["candidate"] != event["candidate"]:
        yield "benchmark_seq", f"a benchmark of {event['candidate']}", event["benchmark_seq"]


DECISIONS = {
    "KernelPromoted": promoted,
    "KernelDeprecated": withdrawn,
    "KernelRevoked": withdrawn,
    "ReplicationRecorded": withdrawn,
    "BenchmarkInvalidated": invalidated,
}
