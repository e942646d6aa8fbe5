"""Defines the views of `history.db`. `forge.projections.sql_surface` lists those that free SQL may read."""

_STANDS = """
    NOT EXISTS (SELECT 1 FROM benchmarks WHERE benchmarks.seq = decided_seq AND invalidated_seq IS NOT NULL)
"""
"""Condition that no withdrawn benchmark decided a trial. Such a trial counts as open: nothing decides it any more."""
LEADERBOARD = """
    SELECT op, gpu, dtype, shape, kernel_id, status, language, low, speedup, high, candidate_median_ns, perf_key,
           row_number() OVER (
               PARTITION BY op, gpu, dtype, shape ORDER BY low DESC, candidate_median_ns, kernel_id
           ) AS rank
    FROM kernels WHERE status IN ('active', 'deprecated')
"""
CLAIMANTS = """
    SELECT claimant, metric, count(*) AS claims, sum(verdict = 'confirmed') AS confirmed,
           sum(verdict = 'understated') AS understated, sum(verdict = 'overstated') AS overstated,
           sum(verdict = 'refuted') AS refuted,
           sum(verdict IS NULL) AS open
    FROM claims GROUP BY claimant, metric
"""
REGRESSIONS = """
    SELECT kernel_id, shape, perf_key, newest_ns, earlier_ns, slower
    FROM recent_times WHERE earlier_ns IS NOT NULL
"""
EXPERIMENTS = f"""
    SELECT run_id, task_id, op, gpu, dtype, language, shape, candidate, author, hypothesis, layer, axis,
           ended, reason, against, parent, speedup, low, high, submitted_seq, decided_seq, closed_seq, recorded_at,
           (SELECT simulated FROM runs WHERE runs.run_id = trials.run_id) AS simulated
    FROM trials WHERE ended IS NOT NULL AND {_STANDS}
"""  # noqa: S608 (our own condition)
CHANGES = """
    SELECT later.candidate, later.op, later.dtype, later.shape, later.baseline,
           earlier.seq AS earlier_seq, later.seq AS later_seq,
           earlier.gpu AS earlier_gpu, later.gpu AS later_gpu,
           earlier.driver AS earlier_driver, later.driver AS later_driver,
           earlier.torch AS earlier_torch, later.torch AS later_torch,
           earlier.triton AS earlier_triton, later.triton AS later_triton,
           earlier.perf_key AS earlier_perf_key, later.perf_key AS later_perf_key,
           earlier.speedup AS earlier_speedup, earlier.low AS earlier_low, earlier.high AS earlier_high,
           later.speedup AS later_speedup, later.low AS later_low, later.high AS later_high,
           earlier.source AS earlier_source, later.source AS later_source,
           earlier.candidate_median_ns AS earlier_ns, later.candidate_median_ns AS later_ns,
           later.candidate_median_ns / earlier.candidate_median_ns AS slower,
           CASE WHEN later.high < earlier.low THEN 'lower' WHEN later.low > earlier.high THEN 'higher'
                ELSE 'not told apart' END AS change
    FROM latest_speedups AS earlier JOIN latest_speedups AS later
      ON later.candidate = earlier.candidate AND later.op = earlier.op AND later.dtype = earlier.dtype
     AND later.shape = earlier.shape AND later.baseline = earlier.baseline AND later.perf_key <> earlier.perf_key
     AND later.seq > earlier.seq
    WHERE NOT EXISTS (
        SELECT 1 FROM latest_speedups AS newer
        WHERE newer.candidate = later.candidate AND newer.op = later.op AND newer.gpu = later.gpu
          AND newer.dtype = later.dtype AND newer.shape = later.shape AND newer.baseline = later.baseline
          AND newer.seq > later.seq
    ) AND NOT EXISTS (
        SELECT 1 FROM latest_speedups AS newer
        WHERE newer.candidate = earlier.candidate AND newer.op = earlier.op AND newer.gpu = earlier.gpu
          AND newer.dtype = earlier.dtype AND newer.shape = earlier.shape AND newer.baseline = earlier.baseline
          AND newer.perf_key = earlier.perf_key AND newer.seq > earlier.seq
    )
"""
OUTCOMES = f"""
    SELECT run.run_id, run.task_id, run.op, run.gpu, run.dtype, run.language, trial.shape, trial.candidate,
           trial.author, run.template, run.template_version, run.template_sha256, run.skills,
           run.submit_attempts > 0 AS attempted, trial.candidate IS NOT NULL AS submitted,
           run.verified_seq IS NOT NULL AND NOT run.simulated AS verified,
           run.verified_seq IS NOT NULL AND coalesce(run.simulated, 0) AS simulated,
           trial.ended, trial.reason, trial.speedup IS NOT NULL AS measured, kernel.kernel_id,
           kernel.status AS kernel_status, run.gpu_s, run.started_seq, run.recorded_at
    FROM runs AS run LEFT JOIN (
        SELECT run_id, shape, candidate, author, iif({_STANDS}, ended, NULL) AS ended,
               iif({_STANDS}, reason, NULL) AS reason, iif({_STANDS}, speedup, NULL) AS speedup
        FROM trials
    ) AS trial USING (run_id) LEFT JOIN kernels AS kernel USING (run_id)
"""  # noqa: S608 (our own condition)
REFUSALS = """
    SELECT refused.seq, refused.recorded_at, refused.stage, refused.verdict, refused.reason_code, refused.gate,
           refused.message, refused.op, refused.gpu, refused.dtype, refused.task_id, refused.run_id,
           refused.candidate, trial.author,
           CASE WHEN refused.stage IN ('screen', 'build', 'verify')
                THEN (SELECT simulated FROM runs WHERE runs.run_id = refused.run_id) END AS simulated
    FROM rejections AS refused LEFT JOIN trials AS trial
      ON trial.run_id = refused.run_id AND trial.candidate = refused.candidate
"""
CLAIMED = """
    SELECT claim.seq, claim.recorded_at, claim.claimant, trial.author, claim.metric, claim.unit, claim.workload,
           claim.baseline, claim.claimed, claim.measured, claim.claimed / claim.measured AS claimed_to_measured,
           claim.verdict, claim.assessed_seq, claim.measured_by_seq, claim.run_id, claim.candidate
    FROM claims AS claim LEFT JOIN trials AS trial
      ON trial.run_id = claim.run_id AND trial.candidate = claim.candidate
"""
VIEWS = {
    "leaderboard": LEADERBOARD,
    "claimants": CLAIMANTS,
    "regressions": REGRESSIONS,
    "experiments": EXPERIMENTS,
    "changes": CHANGES,
    "outcomes": OUTCOMES,
    "refusals": REFUSALS,
    "claimed": CLAIMED,
}
"""View -> its query."""
