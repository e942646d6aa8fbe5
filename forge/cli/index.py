"""The commands by name: the file in this folder that has each one, and its line in `forge --help`.

It imports nothing, so that help is quick.
"""

Lines = dict[str, tuple[str, str]]

COMMANDS: dict[str, Lines] = {
    "Begin": {
        "init": ("start", "Make a workspace with a new ledger."),
        "doctor": ("start", "Show what can be built, verified and timed here."),
        "demo": ("start", "Promote a shipped kernel, refuse a shipped cheat."),
        "explain": ("explain", "Explain an error code or a reason code."),
        "completion": ("completion", "Print a shell's completion, ids included."),
    },
    "Check a kernel; record nothing": {
        "check": ("check", "Ask all gates about one kernel."),
        "watch": ("watch", "Check a kernel again after each save."),
    },
    "One candidate, from task to promotion": {
        "new": ("new", "Write a candidate's five files, which pass."),
        "plan": ("phases", "Show the skills for a run, and why."),
        "prompt": ("phases", "Print the brief for a run."),
        "submit": ("phases", "Submit a candidate's five files."),
        "verify": ("phases", "Judge the submitted candidate."),
        "bench": ("phases", "Time the verified candidate."),
        "promote": ("phases", "Promote it, if the evidence allows that."),
        "pipeline": ("pipeline", "Submit, verify, bench and promote folders."),
        "profile": ("profile", "Show what limits a verified candidate."),
    },
    "Serve": {
        "serve": ("serve", "Serve web pages and the HTTP API."),
    },
    "Ask": {
        "lookup": ("lookup", "Ask the registry for a kernel."),
        "notes": ("notes", "Print what is known about an operation."),
        "recommend": ("recommend", "Rank deployments of a model."),
        "verify-proof": ("proof", "Check a promotion by its proof alone."),
    },
}
"""Heading in `forge --help` -> its commands."""
NOUNS: Lines = {
    "task": ("task", "Create, import and list tasks."),
    "run": ("run", "Open, show, compare and close runs."),
    "kernel": ("kernel", "Show, export and revoke kernels."),
    "adopt": ("adopt", "Show what adopted programs ran."),
    "model": ("model", "Measure adopted kernels in a model."),
    "benchmark": ("benchmark", "Withdraw a benchmark."),
    "claims": ("claims", "Check sentences about speed."),
    "ledger": ("ledger", "Verify, sign, copy and repair the ledger."),
    "op": ("operation", "List and show operations."),
    "skill": ("skill", "List, show and search skills."),
    "audit": ("audit", "Answer questions about the history."),
    "lesson": ("lesson", "Propose and accept lessons."),
    "work": ("work", "Serve requests for phases of runs."),
    "mcp": ("mcp", "Serve tools to a coding agent."),
    "token": ("token", "Let programs ask over HTTP or MCP."),
    "agent": ("agent", "Let a program write candidates, in a budget."),
}
"""Groups of commands: one file each, with an `app`."""
GROUPS = frozenset(NOUNS)
SUBGROUPS = frozenset({("ledger", "key")})
"""Groups of commands inside a group, by their words."""
TOP: Lines = {name: line for lines in COMMANDS.values() for name, line in lines.items()}
"""Commands without a noun. The function of each is called as the command, with `_` for `-`."""
FILES: dict[str, str] = {name: file for name, (file, _) in (*TOP.items(), *NOUNS.items())}
"""Command -> its file."""
RUN_COMMANDS = frozenset({"submit", "verify", "bench", "promote", "pipeline", "profile"})
"""Commands that work on a run. If one of them is interrupted, Forge says how to take the run up again."""
PURPOSE = "The trust layer for machine-written GPU kernels: verify, measure, promote."
VERSION = "Print the version and exit."


def help_text() -> str:
    """Return the help of `forge` itself, within 80 columns."""
    lines = ["Usage: forge [OPTIONS] COMMAND [ARGS]...", "", f"  {PURPOSE}"]
    for heading, commands in (*COMMANDS.items(), ("Commands of a noun: forge NOUN --help lists them", NOUNS)):
        lines += ["", f"{heading}:", *(f"  {name:<14}{said}" for name, (_, said) in commands.items())]
    lines += ["", "Options:", f"  --version     {VERSION}", "  -h, --help    Show this message and exit.", ""]
    lines += ["Exit status: 0 done or accepted, 1 refused, 2 bad input, 3 this machine can't.", ""]
    return "\n".join(lines)
