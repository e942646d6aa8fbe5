-- The tables of history.db: what audits read, and what the folds remember. A row never leaves this package.
-- A changed table needs a new SCHEMA_VERSION in forge/projections/history_version.py. A table WITHOUT ROWID has the same
-- content in whatever order it was written.

-- One workload against one baseline; a benchmark that measured nothing has one row without figures.
CREATE TABLE benchmarks (
    seq INTEGER NOT NULL,
    -- Number within the event, from 1.
    line INTEGER NOT NULL,
    run_id VARCHAR NOT NULL,
    candidate VARCHAR NOT NULL,
    task_id VARCHAR NOT NULL,
    op VARCHAR,
    gpu VARCHAR,
    dtype VARCHAR,
    -- Canonical JSON.
    shape VARCHAR,
    env_sha256 VARCHAR NOT NULL,
    perf_key VARCHAR,
    driver VARCHAR,
    torch VARCHAR,
    triton VARCHAR,
    -- `confirmation` if the winner was measured again, otherwise `first measurement`; for all figures in the row.
    source VARCHAR,
    candidate_median_ns FLOAT,
    baseline VARCHAR,
    -- True if this is the baseline that had to be beaten.
    baseline_used BOOLEAN,
    baseline_median_ns FLOAT,
    speedup FLOAT,
    low FLOAT,
    high FLOAT,
    floor_fraction FLOAT,
    samples_sha256 VARCHAR,
    -- accepted, rejected or inconclusive.
    verdict VARCHAR NOT NULL,
    reason_code VARCHAR,
    -- Event that withdrew the benchmark.
    invalidated_seq INTEGER,
    recorded_at VARCHAR NOT NULL,
    PRIMARY KEY (seq, line)
)
WITHOUT ROWID;
CREATE INDEX benchmarks_by_candidate ON benchmarks (candidate, seq, line, candidate_median_ns, speedup, low, high, recorded_at);

-- One submission; the same candidate may be submitted in several runs.
CREATE TABLE candidates (
    seq INTEGER NOT NULL,
    candidate VARCHAR NOT NULL,
    run_id VARCHAR NOT NULL,
    task_id VARCHAR NOT NULL,
    op VARCHAR,
    gpu VARCHAR,
    dtype VARCHAR,
    language VARCHAR NOT NULL,
    entry_point VARCHAR NOT NULL,
    author VARCHAR NOT NULL,
    actor VARCHAR NOT NULL,
    -- A JSON list of digests.
    parents VARCHAR NOT NULL,
    hypothesis TEXT,
    layer VARCHAR,
    axis VARCHAR,
    recorded_at VARCHAR NOT NULL,
    PRIMARY KEY (seq)
);
CREATE INDEX ix_candidates_candidate ON candidates (candidate);

-- One claim about a candidate, and what was measured.
CREATE TABLE claims (
    run_id VARCHAR NOT NULL,
    claim_id VARCHAR NOT NULL,
    seq INTEGER NOT NULL,
    candidate VARCHAR NOT NULL,
    claimant VARCHAR NOT NULL,
    metric VARCHAR NOT NULL,
    unit VARCHAR NOT NULL,
    workload VARCHAR NOT NULL,
    baseline VARCHAR NOT NULL,
    claimed FLOAT NOT NULL,
    measured FLOAT,
    -- Verdict on the claim. None until it is compared with a measurement.
    verdict VARCHAR,
    assessed_seq INTEGER,
    measured_by_seq INTEGER,
    recorded_at VARCHAR NOT NULL,
    PRIMARY KEY (run_id, claim_id)
)
WITHOUT ROWID;
CREATE INDEX ix_claims_claimant ON claims (claimant);

-- The one row that says from which events the file was derived, and by which version.
CREATE TABLE cursor (
    ledger_id VARCHAR NOT NULL,
    seq INTEGER NOT NULL,
    event_hash VARCHAR NOT NULL,
    schema_version INTEGER NOT NULL,
    projector_version INTEGER NOT NULL,
    -- Newest event that changed what the registry's documents show.
    registry_seq INTEGER NOT NULL,
    registry_hash VARCHAR NOT NULL,
    -- Place of the newest checkpoint.
    checkpoint_seq INTEGER,
    PRIMARY KEY (ledger_id)
);

-- One machine, as it was first described.
CREATE TABLE environments (
    env_sha256 VARCHAR NOT NULL,
    perf_key VARCHAR NOT NULL,
    abi_key VARCHAR NOT NULL,
    -- Slug of its GPU; None without a GPU.
    gpu VARCHAR,
    gpu_arch VARCHAR,
    driver VARCHAR,
    torch VARCHAR,
    triton VARCHAR,
    seq INTEGER NOT NULL,
    PRIMARY KEY (env_sha256)
)
WITHOUT ROWID;

-- Number of versions of a family; no number is used twice.
CREATE TABLE families (
    family VARCHAR NOT NULL,
    versions INTEGER NOT NULL,
    PRIMARY KEY (family)
)
WITHOUT ROWID;

-- One benchmark that no longer counts, and the first event that withdrew it.
CREATE TABLE invalidations (
    benchmark_seq INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    why TEXT NOT NULL,
    PRIMARY KEY (benchmark_seq)
);

-- What the published documents show of one kernel, as canonical JSON.
CREATE TABLE kernel_documents (
    kernel_id VARCHAR NOT NULL,
    -- Its entry in `verified_kernels.json`.
    entry TEXT NOT NULL,
    -- Its line in the lookup snapshot.
    lookup TEXT NOT NULL,
    -- Its line in `leaderboard.json`, without its rank.
    rank TEXT NOT NULL,
    PRIMARY KEY (kernel_id)
)
WITHOUT ROWID;

-- One promoted kernel version as it stands now.
CREATE TABLE kernels (
    kernel_id VARCHAR NOT NULL,
    family VARCHAR NOT NULL,
    version INTEGER NOT NULL,
    status VARCHAR NOT NULL,
    status_reason VARCHAR,
    status_seq INTEGER NOT NULL,
    superseded_by VARCHAR,
    -- Event of the latest deprecation.
    deprecated_seq INTEGER,
    -- Event of the first withdrawal of the benchmark that it was promoted on.
    invalidated_seq INTEGER,
    -- Event of the first revocation, which is final.
    revoked_seq INTEGER,
    -- `provisional`, or `replicated` once a second measurement held.
    evidence VARCHAR NOT NULL,
    -- Event of the first replication that held.
    held_seq INTEGER,
    -- Event of the first replication that contradicts the measurement; it is final.
    contradicted_seq INTEGER,
    op VARCHAR NOT NULL,
    language VARCHAR NOT NULL,
    gpu VARCHAR NOT NULL,
    dtype VARCHAR NOT NULL,
    shape VARCHAR NOT NULL,
    candidate VARCHAR NOT NULL,
    task_id VARCHAR NOT NULL,
    run_id VARCHAR NOT NULL,
    author VARCHAR NOT NULL,
    entry_point VARCHAR NOT NULL,
    artifact_sha256 VARCHAR,
    baseline VARCHAR NOT NULL,
    candidate_median_ns FLOAT NOT NULL,
    baseline_median_ns FLOAT NOT NULL,
    speedup FLOAT NOT NULL,
    low FLOAT NOT NULL,
    high FLOAT NOT NULL,
    policy_sha256 VARCHAR NOT NULL,
    env_sha256 VARCHAR NOT NULL,
    perf_key VARCHAR NOT NULL,
    abi_key VARCHAR NOT NULL,
    environment_seq INTEGER,
    verified_seq INTEGER NOT NULL,
    benchmark_seq INTEGER NOT NULL,
    promoted_seq INTEGER NOT NULL,
    recorded_at VARCHAR NOT NULL,
    PRIMARY KEY (kernel_id)
)
WITHOUT ROWID;
CREATE INDEX ix_kernels_candidate ON kernels (candidate);
CREATE INDEX ix_kernels_promoted_seq ON kernels (promoted_seq);
CREATE INDEX kernels_by_benchmark ON kernels (benchmark_seq);
CREATE INDEX kernels_by_run ON kernels (run_id);
CREATE INDEX kernels_by_slot ON kernels (op, gpu, dtype, low);
CREATE INDEX kernels_by_task ON kernels (task_id, status);

-- A candidate's newest measurement that counts, for each task, baseline and kind of machine it was timed on.
CREATE TABLE latest_speedups (
    candidate VARCHAR NOT NULL,
    task_id VARCHAR NOT NULL,
    op VARCHAR NOT NULL,
    gpu VARCHAR NOT NULL,
    dtype VARCHAR NOT NULL,
    -- Canonical JSON.
    shape VARCHAR NOT NULL,
    baseline VARCHAR NOT NULL,
    -- Key under which timings may be compared.
    perf_key VARCHAR NOT NULL,
    driver VARCHAR,
    torch VARCHAR,
    triton VARCHAR,
    -- True if this is the baseline that had to be beaten.
    baseline_used BOOLEAN NOT NULL,
    -- accepted, or rejected as too slow; candidates refused for other reasons have no measured speed.
    verdict VARCHAR NOT NULL,
    -- Number of measurements that count; this row is the newest.
    measurements INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    line INTEGER NOT NULL,
    -- `confirmation` if the winner was measured again, otherwise `first measurement`.
    source VARCHAR NOT NULL,
    candidate_median_ns FLOAT NOT NULL,
    baseline_median_ns FLOAT NOT NULL,
    speedup FLOAT NOT NULL,
    low FLOAT NOT NULL,
    high FLOAT NOT NULL,
    floor_fraction FLOAT NOT NULL,
    recorded_at VARCHAR NOT NULL,
    PRIMARY KEY (candidate, task_id, op, gpu, dtype, shape, baseline, perf_key)
)
WITHOUT ROWID;
CREATE INDEX latest_speedups_by_slot ON latest_speedups (op, gpu, dtype, shape, baseline);

-- One measurement of a whole model, with and without adopted kernels.
CREATE TABLE model_measurements (
    seq INTEGER NOT NULL,
    model VARCHAR NOT NULL,
    model_sha256 VARCHAR NOT NULL,
    gpu VARCHAR NOT NULL,
    mode VARCHAR NOT NULL,
    conclusive BOOLEAN NOT NULL,
    -- Canonical JSON: the event with its number and time.
    document TEXT NOT NULL,
    PRIMARY KEY (seq)
);

-- One operation's newest description, so that programs can call its kernels in place of their own.
CREATE TABLE operations (
    op VARCHAR NOT NULL,
    description_sha256 VARCHAR NOT NULL,
    reference_sha256 VARCHAR NOT NULL,
    seq INTEGER NOT NULL,
    PRIMARY KEY (op)
)
WITHOUT ROWID;

-- How long a kernel took, on its machine and at its shape: its newest ten times, and the ten before.
CREATE TABLE recent_times (
    kernel_id VARCHAR NOT NULL,
    shape VARCHAR NOT NULL,
    perf_key VARCHAR NOT NULL,
    -- Mean of the newest ten times in nanoseconds.
    newest_ns FLOAT,
    -- Mean of the ten times before; None if there are no more than ten.
    earlier_ns FLOAT,
    -- `newest_ns / earlier_ns`.
    slower FLOAT,
    PRIMARY KEY (kernel_id)
)
WITHOUT ROWID;

-- One refusal, at any phase. The machine's own faults aren't refusals.
CREATE TABLE rejections (
    seq INTEGER NOT NULL,
    run_id VARCHAR NOT NULL,
    candidate VARCHAR NOT NULL,
    task_id VARCHAR NOT NULL,
    op VARCHAR,
    gpu VARCHAR,
    dtype VARCHAR,
    -- First gate that failed, if one did.
    gate VARCHAR,
    -- submit, screen, build, verify, benchmark or promote.
    stage VARCHAR NOT NULL,
    -- rejected or inconclusive.
    verdict VARCHAR NOT NULL,
    reason_code VARCHAR NOT NULL,
    message TEXT NOT NULL,
    recorded_at VARCHAR NOT NULL,
    PRIMARY KEY (seq)
);
CREATE INDEX rejections_by_reason ON rejections (reason_code, gate, task_id);
CREATE INDEX rejections_by_task ON rejections (task_id, reason_code, gate);

-- One run and how far it came.
CREATE TABLE runs (
    run_id VARCHAR NOT NULL,
    task_id VARCHAR NOT NULL,
    op VARCHAR,
    gpu VARCHAR,
    dtype VARCHAR,
    language VARCHAR,
    command VARCHAR NOT NULL,
    actor VARCHAR NOT NULL,
    state VARCHAR NOT NULL,
    sealed BOOLEAN NOT NULL,
    -- Outcome in the seal, or the reason why it was aborted.
    outcome VARCHAR,
    submit_attempts INTEGER NOT NULL,
    verify_attempts INTEGER NOT NULL,
    benchmark_attempts INTEGER NOT NULL,
    promote_attempts INTEGER NOT NULL,
    -- Skills that its plan chose: a JSON list of `{"id", "sha256"}`.
    skills VARCHAR NOT NULL,
    -- Template of its prompt, by name; version and digest follow.
    template VARCHAR,
    template_version INTEGER,
    template_sha256 VARCHAR,
    -- Event in which every gate passed, for the newest candidate.
    verified_seq INTEGER,
    -- True if that verification, or the refusal of its candidate, ran on a simulated target.
    simulated BOOLEAN,
    -- Seconds of GPU time to time its candidates; None if none were recorded.
    gpu_s FLOAT,
    started_seq INTEGER NOT NULL,
    plan_seq INTEGER,
    prompt_seq INTEGER,
    -- Event that sealed or aborted it.
    ended_seq INTEGER,
    last_seq INTEGER NOT NULL,
    recorded_at VARCHAR NOT NULL,
    PRIMARY KEY (run_id)
)
WITHOUT ROWID;
CREATE INDEX runs_by_start ON runs (started_seq);
CREATE INDEX runs_by_state ON runs (state, started_seq);
CREATE INDEX runs_by_task ON runs (task_id, started_seq);

-- The sum behind a slot's geometric mean, over accepted measurements that still count.
CREATE TABLE speedups (
    op VARCHAR NOT NULL,
    gpu VARCHAR NOT NULL,
    dtype VARCHAR NOT NULL,
    measurements INTEGER NOT NULL,
    -- Sum of the natural logarithms of the speedups.
    log_sum FLOAT NOT NULL,
    geomean FLOAT,
    PRIMARY KEY (op, gpu, dtype)
)
WITHOUT ROWID;

-- One task, as it was first recorded.
CREATE TABLE tasks (
    task_id VARCHAR NOT NULL,
    op VARCHAR NOT NULL,
    gpu VARCHAR NOT NULL,
    dtype VARCHAR NOT NULL,
    language VARCHAR NOT NULL,
    -- Canonical JSON.
    shape VARCHAR NOT NULL,
    seq INTEGER NOT NULL,
    recorded_at VARCHAR NOT NULL,
    PRIMARY KEY (task_id)
)
WITHOUT ROWID;

-- One event about a candidate, or about the kernel it became.
CREATE TABLE trail (
    candidate VARCHAR NOT NULL,
    seq INTEGER NOT NULL,
    PRIMARY KEY (candidate, seq)
)
WITHOUT ROWID;

-- The candidate of one run as an experiment; open until the candidate is refused or timed.
CREATE TABLE trials (
    run_id VARCHAR NOT NULL,
    task_id VARCHAR NOT NULL,
    op VARCHAR,
    gpu VARCHAR,
    dtype VARCHAR,
    language VARCHAR,
    -- Canonical JSON.
    shape VARCHAR,
    candidate VARCHAR NOT NULL,
    author VARCHAR NOT NULL,
    hypothesis TEXT,
    layer VARCHAR,
    axis VARCHAR,
    -- The candidate it was compared with, if `against` is parent.
    parent VARCHAR,
    -- parent, promoted, or a baseline; None where nothing was timed.
    against VARCHAR,
    -- improved, no_change, regressed, incorrect, build_failed; None while it is open.
    ended VARCHAR,
    reason VARCHAR,
    speedup FLOAT,
    low FLOAT,
    high FLOAT,
    submitted_seq INTEGER NOT NULL,
    -- The refusal or the benchmark that decided.
    decided_seq INTEGER,
    -- The event that closed the experiment: ExperimentClosed, or for older runs the decision.
    closed_seq INTEGER,
    recorded_at VARCHAR NOT NULL,
    PRIMARY KEY (run_id)
)
WITHOUT ROWID;
CREATE INDEX trials_by_close ON trials (closed_seq, ended);
CREATE INDEX trials_by_slot ON trials (op, gpu, dtype, closed_seq);
