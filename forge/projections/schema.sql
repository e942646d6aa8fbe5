-- Written from tables.py: python -m tests.projections.schema
CREATE TABLE benchmarks (
    seq INTEGER NOT NULL,
    line INTEGER NOT NULL,
    run_id VARCHAR NOT NULL,
    candidate VARCHAR NOT NULL,
    task_id VARCHAR NOT NULL,
    op VARCHAR,
    gpu VARCHAR,
    dtype VARCHAR,
    shape VARCHAR,
    env_sha256 VARCHAR NOT NULL,
    perf_key VARCHAR,
    driver VARCHAR,
    torch VARCHAR,
    triton VARCHAR,
    source VARCHAR,
    candidate_median_ns FLOAT,
    baseline VARCHAR,
    baseline_used BOOLEAN,
    baseline_median_ns FLOAT,
    speedup FLOAT,
    low FLOAT,
    high FLOAT,
    floor_fraction FLOAT,
    samples_sha256 VARCHAR,
    verdict VARCHAR NOT NULL,
    reason_code VARCHAR,
    invalidated_seq INTEGER,
    recorded_at VARCHAR NOT NULL,
    PRIMARY KEY (seq, line)
)
WITHOUT ROWID;
CREATE INDEX benchmarks_by_candidate ON benchmarks (candidate, seq, line, candidate_median_ns, speedup, low, high, recorded_at);
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
    parents VARCHAR NOT NULL,
    hypothesis TEXT,
    layer VARCHAR,
    axis VARCHAR,
    recorded_at VARCHAR NOT NULL,
    PRIMARY KEY (seq)
);
CREATE INDEX ix_candidates_candidate ON candidates (candidate);
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
    verdict VARCHAR,
    assessed_seq INTEGER,
    measured_by_seq INTEGER,
    recorded_at VARCHAR NOT NULL,
    PRIMARY KEY (run_id, claim_id)
)
WITHOUT ROWID;
CREATE INDEX ix_claims_claimant ON claims (claimant);
CREATE TABLE cursor (
    ledger_id VARCHAR NOT NULL,
    seq INTEGER NOT NULL,
    event_hash VARCHAR NOT NULL,
    schema_version INTEGER NOT NULL,
    projector_version INTEGER NOT NULL,
    registry_seq INTEGER NOT NULL,
    registry_hash VARCHAR NOT NULL,
    checkpoint_seq INTEGER,
    PRIMARY KEY (ledger_id)
);
CREATE TABLE environments (
    env_sha256 VARCHAR NOT NULL,
    perf_key VARCHAR NOT NULL,
    abi_key VARCHAR NOT NULL,
    gpu VARCHAR,
    gpu_arch VARCHAR,
    driver VARCHAR,
    torch VARCHAR,
    triton VARCHAR,
    seq INTEGER NOT NULL,
    PRIMARY KEY (env_sha256)
)
WITHOUT ROWID;
CREATE TABLE families (
    family VARCHAR NOT NULL,
    versions INTEGER NOT NULL,
    PRIMARY KEY (family)
)
WITHOUT ROWID;
CREATE TABLE invalidations (
    benchmark_seq INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    why TEXT NOT NULL,
    PRIMARY KEY (benchmark_seq)
);
CREATE TABLE kernel_documents (
    kernel_id VARCHAR NOT NULL,
    entry TEXT NOT NULL,
    lookup TEXT NOT NULL,
    rank TEXT NOT NULL,
    PRIMARY KEY (kernel_id)
)
WITHOUT ROWID;
CREATE TABLE kernels (
    kernel_id VARCHAR NOT NULL,
    family VARCHAR NOT NULL,
    version INTEGER NOT NULL,
    status VARCHAR NOT NULL,
    status_reason VARCHAR,
    status_seq INTEGER NOT NULL,
    superseded_by VARCHAR,
    deprecated_seq INTEGER,
    invalidated_seq INTEGER,
    revoked_seq INTEGER,
    evidence VARCHAR NOT NULL,
    held_seq INTEGER,
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
CREATE TABLE latest_speedups (
    candidate VARCHAR NOT NULL,
    task_id VARCHAR NOT NULL,
    op VARCHAR NOT NULL,
    gpu VARCHAR NOT NULL,
    dtype VARCHAR NOT NULL,
    shape VARCHAR NOT NULL,
    baseline VARCHAR NOT NULL,
    perf_key VARCHAR NOT NULL,
    driver VARCHAR,
    torch VARCHAR,
    triton VARCHAR,
    baseline_used BOOLEAN NOT NULL,
    verdict VARCHAR NOT NULL,
    measurements INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    line INTEGER NOT NULL,
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
CREATE TABLE model_measurements (
    seq INTEGER NOT NULL,
    model VARCHAR NOT NULL,
    model_sha256 VARCHAR NOT NULL,
    gpu VARCHAR NOT NULL,
    mode VARCHAR NOT NULL,
    conclusive BOOLEAN NOT NULL,
    document TEXT NOT NULL,
    PRIMARY KEY (seq)
);
CREATE TABLE operations (
    op VARCHAR NOT NULL,
    description_sha256 VARCHAR NOT NULL,
    reference_sha256 VARCHAR NOT NULL,
    seq INTEGER NOT NULL,
    PRIMARY KEY (op)
)
WITHOUT ROWID;
CREATE TABLE recent_times (
    kernel_id VARCHAR NOT NULL,
    shape VARCHAR NOT NULL,
    perf_key VARCHAR NOT NULL,
    newest_ns FLOAT,
    earlier_ns FLOAT,
    slower FLOAT,
    PRIMARY KEY (kernel_id)
)
WITHOUT ROWID;
CREATE TABLE rejections (
    seq INTEGER NOT NULL,
    run_id VARCHAR NOT NULL,
    candidate VARCHAR NOT NULL,
    task_id VARCHAR NOT NULL,
    op VARCHAR,
    gpu VARCHAR,
    dtype VARCHAR,
    gate VARCHAR,
    stage VARCHAR NOT NULL,
    verdict VARCHAR NOT NULL,
    reason_code VARCHAR NOT NULL,
    message TEXT NOT NULL,
    recorded_at VARCHAR NOT NULL,
    PRIMARY KEY (seq)
);
CREATE INDEX rejections_by_reason ON rejections (reason_code, gate, task_id);
CREATE INDEX rejections_by_task ON rejections (task_id, reason_code, gate);
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
    outcome VARCHAR,
    submit_attempts INTEGER NOT NULL,
    verify_attempts INTEGER NOT NULL,
    benchmark_attempts INTEGER NOT NULL,
    promote_attempts INTEGER NOT NULL,
    skills VARCHAR NOT NULL,
    template VARCHAR,
    template_version INTEGER,
    template_sha256 VARCHAR,
    verified_seq INTEGER,
    simulated BOOLEAN,
    gpu_s FLOAT,
    started_seq INTEGER NOT NULL,
    plan_seq INTEGER,
    prompt_seq INTEGER,
    ended_seq INTEGER,
    last_seq INTEGER NOT NULL,
    recorded_at VARCHAR NOT NULL,
    PRIMARY KEY (run_id)
)
WITHOUT ROWID;
CREATE INDEX runs_by_start ON runs (started_seq);
CREATE INDEX runs_by_state ON runs (state, started_seq);
CREATE INDEX runs_by_task ON runs (task_id, started_seq);
CREATE TABLE speedups (
    op VARCHAR NOT NULL,
    gpu VARCHAR NOT NULL,
    dtype VARCHAR NOT NULL,
    measurements INTEGER NOT NULL,
    log_sum FLOAT NOT NULL,
    geomean FLOAT,
    PRIMARY KEY (op, gpu, dtype)
)
WITHOUT ROWID;
CREATE TABLE tasks (
    task_id VARCHAR NOT NULL,
    op VARCHAR NOT NULL,
    gpu VARCHAR NOT NULL,
    dtype VARCHAR NOT NULL,
    language VARCHAR NOT NULL,
    shape VARCHAR NOT NULL,
    seq INTEGER NOT NULL,
    recorded_at VARCHAR NOT NULL,
    PRIMARY KEY (task_id)
)
WITHOUT ROWID;
CREATE TABLE trail (
    candidate VARCHAR NOT NULL,
    seq INTEGER NOT NULL,
    PRIMARY KEY (candidate, seq)
)
WITHOUT ROWID;
CREATE TABLE trials (
    run_id VARCHAR NOT NULL,
    task_id VARCHAR NOT NULL,
    op VARCHAR,
    gpu VARCHAR,
    dtype VARCHAR,
    language VARCHAR,
    shape VARCHAR,
    candidate VARCHAR NOT NULL,
    author VARCHAR NOT NULL,
    hypothesis TEXT,
    layer VARCHAR,
    axis VARCHAR,
    parent VARCHAR,
    against VARCHAR,
    ended VARCHAR,
    reason VARCHAR,
    speedup FLOAT,
    low FLOAT,
    high FLOAT,
    submitted_seq INTEGER NOT NULL,
    decided_seq INTEGER,
    closed_seq INTEGER,
    recorded_at VARCHAR NOT NULL,
    PRIMARY KEY (run_id)
)
WITHOUT ROWID;
CREATE INDEX trials_by_close ON trials (closed_seq, ended);
CREATE INDEX trials_by_slot ON trials (op, gpu, dtype, closed_seq);
