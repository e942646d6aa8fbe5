"""Forge: the trust layer for machine-written GPU kernels.

An untrusted author submits a kernel; Forge decides, on evidence it gathered itself, whether the kernel is
correct and really faster. Only then may a registry offer it to an inference engine.

The map of the package, from the top down. A module imports only what stands below it:

- `cli`, `app`: the commands, and the one place that reads the environment and the clock
- `web`, `mcp`: pages and an HTTP API; tools for coding agents; both ask `app` alone
- `pipeline`: create, plan, prompt, submit, verify, benchmark, promote; recorded state in, events out
- `executor`: where lab jobs run
- `authors`: programs that write candidates
- `claims`: what may be said about speed, and pages checked against the evidence
- `recommend`, `pictures`: deployment plans from the published registry; drawings of recorded speed
- `projections`: folds of the ledger that can be rebuilt: registry, versions, lookup snapshot, history
- `lab`: judges and times candidates; can't write history
- `ledger`: the append-only store, run directories and content-addressed blobs
- `sandbox`: the host's side of the wall
- `events`: what can have happened, a closed union
- `operations`, `platforms`, `languages`, `contenders`: what can be asked for, one file or folder each
- `domain`: the frozen nouns
- `adopt`: promoted kernels in a running program; torch and cuda-bindings inside functions only
- `guest`: runs beside hostile code; it answers through `guest.wire` alone
- `lookup`: the read side for other programs, standard library only
- `proof`: what another program needs to check one promotion; standard library and `cryptography` only
- `errors`: every exception, with a code that docs/errors.md explains
- `prompts`, `skills`: text for authors, no code
"""

__version__ = "0.1.0"
