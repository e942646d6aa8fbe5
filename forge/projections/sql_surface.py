"""Lists the tables and views of `history.db` that free SQL may read.

Their names and columns are stable. If one is removed or changes its meaning, the changelog says so. Everything else
in the file is internal and may change with any version.
"""

SURFACE = {
    "tasks": "What was asked for; one row a task.",
    "runs": "How far each run came, what its author was given, and what timing it took.",
    "candidates": "What was submitted; one row a submission.",
    "environments": "The machines, as they were first described.",
    "benchmarks": "Every measurement, as confirmed where it was (`source`): one row for each workload and baseline.",
    "latest_speedups": "The newest measurement that counts, for each candidate, task, baseline and kind of machine.",
    "speedups": "The geometric mean of a slot's accepted measurements that count.",
    "rejections": "Every refusal, with the gate that failed first.",
    "refusals": "The same with the author, for candidates that were accepted for judging.",
    "claims": "What was said about candidates, and what was measured.",
    "claimed": "The same with the author, and the claim over the measurement.",
    "claimants": "How often what each claimant said was confirmed, understated, overstated or refuted.",
    "experiments": "What each candidate showed, failures among them.",
    "outcomes": "How each run ended: attempted, submitted, verified, measured, promoted.",
    "kernels": "Every promoted version, and what became of it.",
    "leaderboard": "The kernels of a slot in the order of the lower end of their speedups.",
    "regressions": "Kernels timed more than ten times: the mean of the newest ten over that of those before.",
    "changes": "The same candidate on two kinds of machine, and whether the speedups can be told apart.",
    "invalidations": "Benchmarks that were withdrawn, and by which event.",
}
"""Name -> what it answers. Free SQL may read only these tables and views."""
