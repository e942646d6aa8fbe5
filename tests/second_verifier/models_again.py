"""Every measurement of a model again from its stored times, as docs/reading-the-ledger.md says."""

import statistics

from numbers_again import Comparison, flat, ratios, stored


def check(home, events, faults):
    """Go through the events in order; gives how many measurements there are."""
    kernels, processors, count = {}, {}, 0
    for seq, kind, event in events:
        if kind == "EnvironmentCaptured":
            gpu = event["environment"]["gpu"]
            processors[event["env_sha256"]] = gpu["slug"] if gpu else "cpu"
        elif kind == "KernelPromoted":
            (source,) = (file["sha256"] for file in event["files"] if file["path"] == "kernel.py")
            kernels[event["kernel_id"]] = [event["task"]["op"], source]
        elif kind == "ModelMeasured":
            count += 1
            compare = Comparison(seq, faults)
            compare.same("gpu", processors.get(event["env_sha256"]), event["gpu"])
            measured(home, event, compare)
            for use in event["uses"]:
                if use["kernel_id"] is not None:
                    compare.same("kernel used", kernels.get(use["kernel_id"]), [use["op"], use["sha256"]])
    return count


def measured(home, event, compare):
    document = stored(home, event["samples_sha256"])
    times, facts, told = document["times_ns"], document["facts"], event["comparison"]
    own, adopted, control = (times[side] for side in ("own", "adopted", "control"))
    compare.interval("speedup", ratios(own, adopted), told["speedup"])
    compare.interval("control", ratios(own, control), told["control"])
    compare.number("own_median_ns", statistics.median(flat(own)), told["own_median_ns"])
    compare.number("adopted_median_ns", statistics.median(flat(adopted)), told["adopted_median_ns"])
    forms = {(len(own), len(one)) for side in (own, adopted, control) for one in side}
    compare.same("process_pairs and rounds", {(event["process_pairs"], event["rounds"])}, forms)
    for name in ("own_error", "adopted_error", "equal_tokens"):
        compare.same(name, facts[name], told[name])
    compare.same("generation", facts["generation"], event["generation"])
    band = stored(home, event["policy_sha256"])["control_half_width"]
    inside = 1 - band <= told["control"]["low"] <= told["control"]["high"] <= 1 + band
    compare.same("conclusive", inside, event["conclusive"])
    shares = {(one["op"], one["kernel_id"]): one["share"] for one in facts["shares"]}
    names = ("op", "backend", "kernel_id", "sha256", "reason", "hits")
    used = [[line[name] for name in names] for line in facts["lines"]]
    compare.same("uses", used, [[use[name] for name in names] for use in event["uses"]])
    for use in event["uses"]:
        compare.number("share", shares.get((use["op"], use["kernel_id"]), 0.0), use["share"])
    replaced = {use["kernel_id"]: use["share"] for use in event["uses"] if use["backend"] != "fallback"}
    compare.number("replaced_share", min(1, sum(replaced.values())), told["replaced_share"])
