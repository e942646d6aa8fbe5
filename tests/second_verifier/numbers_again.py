"""Every benchmark and promotion again from raw samples, as docs/reading-the-ledger.md says."""

import json
import math
import statistics
from functools import cache

UNDECIDED = "an interval that is too wide to tell"
ROUNDING, TABLE = 1e-9, 2e-4
BY_RELEASE = ("host_slope.v3", "host_slope.v4")
BASELINES = ("eager", "compile", "vendor", "promoted")


def check(home, events, faults):
    by_seq = {seq: (kind, event) for seq, kind, event in events}
    tasks = {event["task_id"]: event["task"] for _, kind, event in events if kind == "TaskCreated"}
    waiting, kinds = {}, [kind for _, kind, _ in events]
    for seq, kind, event in events:
        try:
            if kind == "KernelPromoted":
                promotion(seq, event, by_seq, faults)
            else:
                timed(home, seq, kind, event, tasks, waiting, faults)
        except (KeyError, FileNotFoundError) as missing:  # a side, a task, baselines, or stored bytes
            faults.append([seq, "missing", str(missing), ""])
    benchmarks = kinds.count("BenchmarkRecorded") + kinds.count("BenchmarkFailed")
    return benchmarks, kinds.count("KernelPromoted")


def timed(home, seq, kind, event, tasks, waiting, faults):
    """Compare one event's figures with its samples; baselines wait for the benchmark that they belong to."""
    if kind == "BaselineRecorded":
        waiting.setdefault(event["run_id"], []).append((seq, event))
    elif kind == "ShapeTimed":
        if event["timing"]:
            shape(home, seq, event, tasks[event["task_id"]], faults)
    elif kind in ("BenchmarkRecorded", "BenchmarkFailed"):
        if event["workloads"]:
            benchmark(home, seq, event, tasks[event["task_id"]], waiting.pop(event["run_id"]), faults)
        elif event.get("stopped"):
            stop(home, seq, event, tasks[event["task_id"]], faults)


def stored(home, digest):
    return json.loads((home / "forge_runs" / "cas" / digest[:2] / digest).read_bytes())


def benchmark(home, seq, event, task, baselines, faults):
    (workload,) = event["workloads"]
    samples = stored(home, workload["samples_sha256"])
    compare = Comparison(seq, faults)
    first = measurement(samples, "attempts", workload, compare, "")
    rounds = min(map(len, first["candidate"]))
    compare.number("rounds", rounds, workload["rounds"])
    fraction = workload["floor_ns"] / workload["candidate"]["median_ns"]
    compare.number("floor_fraction", fraction, workload["floor_fraction"])
    again = workload.get("confirmation")
    if again is not None:
        measurement(samples, "confirmation", again, compare, "confirmation ")
    compare.same("confirmation", "confirmation" in samples, again is not None)
    resident(samples, workload, compare)
    for place, recorded in baselines:
        told = Comparison(place, faults)
        told.timing("timing", first[recorded["kind"]], recorded["timing"])
    used = task["baseline"]
    if used == "best":
        used = min((one["baseline_median_ns"], one["baseline"]) for one in workload["speedups"])[1]
    compare.same("baseline_used", used, event["baseline_used"])
    policy = stored(home, event["policy_sha256"])
    same_reason(compare, reason(policy, task, workload, used), event.get("reason", {}).get("code"))


def resident(samples, workload, compare):
    """Compare the figures of the regime whose operands lie in the cache; it is there if every attempt measured it."""
    timed = all(one.get("resident") for one in samples["attempts"])
    told = (workload.get("residency") or {}).get("timing")
    compare.same("resident", timed, told is not None)
    for part, recorded in (("attempts", told), ("confirmation", told and told["confirmation"])):
        if recorded is not None:
            taken = {"protocol": samples["protocol"], part: [one["resident"] for one in samples[part]]}
            measurement(taken, part, recorded, compare, f"resident {part} ")


def stop(home, seq, event, task, faults):
    told, compare = event["stopped"], Comparison(seq, faults)
    samples = stored(home, told["samples_sha256"])
    (one,) = samples["attempts"]
    per_call = by_replay if samples["protocol"].startswith("graph_replay.") else by_release
    sides = {side: pair for side in one.get("sides", one["pairs"][0][0]) for (pair,) in [per_call(one, side)]}
    used = task["baseline"]
    if used == "best":
        rivals = [name for name in sides if name in BASELINES or name.startswith("contender:")]
        used = min((statistics.median(sides[name]), name) for name in rivals)[1]
    compare.same("baseline_used", [used, used], [event["baseline_used"], told["baseline"]])
    logs = [math.log(b / c) for b, c in zip(sides[used], sides["candidate"], strict=True)]
    own = [math.log(e / c) for e, c in zip(sides["eager"], sides["control"], strict=True)]
    error, own_error = (math.sqrt(math.pi / 2 / len(one)) * statistics.stdev(one) for one in (logs, own))
    most = math.exp(statistics.median(logs) + 4 * (error + own_error) + abs(statistics.median(own)))
    for name, value in (
        *(("error", error), ("control_error", own_error), ("rounds", len(logs))),
        *(("most_favourable", most), ("limit", 0.7), ("control", math.exp(statistics.median(own)))),
        ("ratio", math.exp(statistics.median(logs))),
        ("candidate_median_ns", statistics.median(sides["candidate"])),
        ("baseline_median_ns", statistics.median(sides[used])),
    ):
        compare.number(f"stopped {name}", value, told[name])
    no_chance = most < 0.7 and "confirmation" not in samples
    compare.same("reason", "TOO_SLOW" if no_chance else "more pairs", event["reason"]["code"])


def shape(home, seq, event, task, faults):
    workload, compare = event["timing"], Comparison(seq, faults)
    samples = stored(home, event["samples_sha256"])
    measurement(samples, "attempts", workload, compare, "")
    if workload["confirmation"] is not None:
        measurement(samples, "confirmation", workload["confirmation"], compare, "confirmation ")
    used = task["baseline"]
    if used == "best":
        used = min((one["baseline_median_ns"], one["baseline"]) for one in workload["speedups"])[1]
    compare.same("baseline_used", used, event["baseline_used"])
    found = reason(stored(home, event["policy_sha256"]), task, workload, used)
    same_reason(compare, found, event["reason"] and event["reason"]["code"])


def measurement(samples, part, recorded, compare, path):
    """Compare all that follows from one measurement; side -> times per call."""
    attempts = samples[part]
    replay = samples["protocol"].startswith("graph_replay.")
    per_call = by_replay if replay else by_release if samples["protocol"] in BY_RELEASE else by_slope
    names = set.intersection(*(set(one["sides"] if "sides" in one else one["pairs"][0][0]) for one in attempts))
    sides = {side: [pair for one in attempts for pair in per_call(one, side)] for side in names}
    compare.timing(path + "candidate", sides["candidate"], recorded["candidate"])
    compare.number(path + "process_pairs", len(sides["candidate"]), recorded["process_pairs"])
    compare.interval(path + "control", ratios(sides["eager"], sides["control"]), recorded["control"])
    told = [one["baseline"] for one in recorded["speedups"]]
    contenders = sorted(name for name in names if name.startswith("contender:"))
    compare.same(path + "baselines", [name for name in (*BASELINES, *contenders) if name in names], told)
    for one in recorded["speedups"]:
        name = f"{path}speedup over {one['baseline']}"
        logs = ratios(sides[one["baseline"]], sides["candidate"])
        compare.interval(name, logs, one["interval"])
        compare.number(f"{name} pairs_lost", sum(log <= 0 for log in logs), one["pairs_lost"])
        compare.number(f"{name} median", statistics.median(flat(sides[one["baseline"]])), one["baseline_median_ns"])
    return sides


def by_replay(attempt, side):
    place = attempt["sides"].index(side)
    return [[times[place] / attempt["calls"][side] for times in pair] for pair in attempt["pairs"]]


def by_slope(attempt, side):
    calls = attempt["many_calls"] - attempt["few_calls"]
    pairs = [[one[side] for one in pair] for pair in attempt["pairs"]]
    return [[(many - statistics.median(few for few, _ in pair)) / calls for _, many in pair] for pair in pairs]


def by_release(attempt, side):
    calls, found = attempt["calls"], []
    for pair in attempt["pairs"]:
        empty = [one["harness"] for one in pair if "harness" in one and side != "harness"]
        path = statistics.median(empty or [0])
        found.append([(one[side] - path) / calls for one in pair])
    return found


def ratios(baseline, other):
    pairs = zip(baseline, other, strict=True)
    return [statistics.median(math.log(b / o) for b, o in zip(*pair, strict=True)) for pair in pairs]


def flat(pairs):
    return [time for pair in pairs for time in pair]


class Comparison:
    """What one event says against what is derived."""

    def __init__(self, seq, faults):
        self.seq, self.faults = seq, faults

    def same(self, name, expected, found):
        if expected != found:
            self.faults.append([self.seq, name, str(expected), str(found)])

    def number(self, name, expected, found, allowed=ROUNDING):
        if not abs(expected - found) <= allowed * max(1, abs(expected)):
            self.faults.append([self.seq, name, repr(expected), repr(found)])

    def timing(self, name, pairs, found):
        times = flat(pairs)
        median = statistics.median(times)
        tenths = statistics.quantiles(times, n=10, method="inclusive")
        spread = statistics.median(abs(time - median) for time in times)
        for field, value in (
            *(("n", len(times)), ("median_ns", median), ("mad_ns", spread)),
            *(("p10_ns", tenths[0]), ("p90_ns", tenths[8])),
        ):
            self.number(f"{name} {field}", value, found[field])

    def interval(self, name, logs, found):
        mean, degrees = statistics.fmean(logs), len(logs) - 1
        half = student(degrees) * statistics.stdev(logs) / math.sqrt(len(logs))
        for field, log, allowed in (("ratio", mean, 0), ("low", mean - half, half), ("high", mean + half, half)):
            self.number(f"{name} {field}", log, math.log(found[field]), ROUNDING + TABLE * allowed)


@cache
def student(degrees):
    """The 97.5 % quantile: Simpson's rule over the density, after x = sqrt(k) tan(a), and bisection."""
    scale = math.exp(math.lgamma((degrees + 1) / 2) - math.lgamma(degrees / 2)) / math.sqrt(math.pi)

    def below(angle, steps=2000):
        width = angle / steps
        weights = ((4 if step % 2 else 2) * math.cos(step * width) ** (degrees - 1) for step in range(1, steps))
        return scale * width / 3 * (1 + sum(weights) + math.cos(angle) ** (degrees - 1))

    low, high = 0.0, math.pi / 2
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if below(middle) < 0.475 else (low, middle)
    return math.sqrt(degrees) * math.tan(low)


def reason(policy, task, workload, used):
    """The code of the first part of the rule that fails; None if none does."""
    for measured in filter(None, (workload, workload.get("confirmation"))):
        if measured["candidate"]["method"] != workload["candidate"]["method"]:
            return "CLOCK_DISAGREES"
        if measured["process_pairs"] < policy["process_pairs"]:
            return "NOISE_TOO_HIGH"
        slope = measured["candidate"]["method"] == "host_slope"
        band = policy["control_half_width" if slope else "replay_control_half_width"]
        if not 1 - band <= measured["control"]["low"] <= measured["control"]["high"] <= 1 + band:
            return "NOISE_TOO_HIGH"
        if measured["candidate"]["p90_ns"] < policy["floor_slack"] * workload["floor_ns"]:
            return "BELOW_FLOOR"
        found = next(one for one in measured["speedups"] if one["baseline"] == used)
        if found["interval"]["low"] < least(task, policy) or found["pairs_lost"]:
            return too_slow(found["interval"], least(task, policy), band)
    return reason_against_resident(policy, task, workload)


def reason_against_resident(policy, task, workload):
    """The same for the resident regime, with its own fastest baseline, if the policy asks for it and it applies."""
    if "resident" not in policy.get("regimes", ["cold"]):
        return None
    first = workload["residency"]["timing"]
    if first is None:
        return None if workload["residency"]["why_not"] else "INFRASTRUCTURE"
    used = task["baseline"]
    if used == "best":
        used = min((one["baseline_median_ns"], one["baseline"]) for one in first["speedups"])[1]
    for measured in filter(None, (first, first["confirmation"])):
        if measured["process_pairs"] < policy["process_pairs"]:
            return "NOISE_TOO_HIGH"
        slope = measured["candidate"]["method"] == "host_slope"
        band = policy["control_half_width" if slope else "replay_control_half_width"]
        if not 1 - band <= measured["control"]["low"] <= measured["control"]["high"] <= 1 + band:
            return "NOISE_TOO_HIGH"
        if measured["candidate"]["p90_ns"] < policy["floor_slack"] * first["floor_ns"]:
            return "BELOW_FLOOR"
        found = next(one for one in measured["speedups"] if one["baseline"] == used)
        if found["interval"]["low"] < least(task, policy) or found["pairs_lost"]:
            return too_slow(found["interval"], least(task, policy), band)
    return None


def same_reason(compare, found, told):
    """Events older than the distinction say TOO_SLOW where the interval can't tell."""
    if found == UNDECIDED:
        found = told if told == "TOO_SLOW" else "NOISE_TOO_HIGH"
    compare.same("reason", found, told)


def least(task, policy):
    return max(task["minimum_speedup"], policy["minimum_speedup"])


def too_slow(interval, least, band):
    """Whether the interval can tell: it lies on one side of the threshold, or is as narrow as the control's band."""
    low, high = interval["low"], interval["high"]
    return UNDECIDED if low < least <= high and math.log(high / low) / 2 > band else "TOO_SLOW"


def promotion(seq, event, by_seq, faults):
    kind, told = by_seq.get(event["benchmark_seq"], (None, None))
    if kind != "BenchmarkRecorded":
        return  # `promotions_again` tells it
    compare = Comparison(seq, faults)
    compare.same("baseline", told["baseline_used"], event["baseline"])
    (workload,) = told["workloads"]
    final = workload.get("confirmation") or workload
    over = next(one for one in final["speedups"] if one["baseline"] == event["baseline"])
    compare.same("speedup", over["interval"], event["speedup"])
    compare.same("baseline_median_ns", over["baseline_median_ns"], event["baseline_median_ns"])
    compare.same("candidate_median_ns", final["candidate"]["median_ns"], event["candidate_median_ns"])
