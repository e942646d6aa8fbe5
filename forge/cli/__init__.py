"""The command line: one file per noun. stdout is data, stderr is talk.

Nothing heavier than Typer is imported before a command runs, so that `forge --help` answers at once.
"""

import typer

from forge.cli import kernel, ledger, lookup, operation, phases, run, start, task

app = typer.Typer(
    name="forge",
    help="The trust layer for machine-written GPU kernels: verify, measure, promote on recorded evidence.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
start.register(app)
phases.register(app)
lookup.register(app)
app.add_typer(task.app, name="task")
app.add_typer(run.app, name="run")
app.add_typer(kernel.app, name="kernel")
app.add_typer(ledger.app, name="ledger")
app.add_typer(operation.app, name="op")
app.add_typer(operation.skills, name="skill")
