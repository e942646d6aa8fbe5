"""The options of `forge agent`, one for each thing that an author is made from or may use."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from forge.authors import KIND_NAMES

if TYPE_CHECKING:
    from forge.app.sessions.choice import AuthorChoice
    from forge.app.sessions.opening import SessionRequest
    from forge.domain.budget import Amounts, Price
    from forge.pipeline.create import TaskRequest

TaskName = Annotated[str, typer.Argument(metavar="TASK", help="A task's id, a unique beginning of it, or `last`.")]
AuthorKind = Annotated[
    str, typer.Option("--author", help=f"Kind of author: {', '.join(KIND_NAMES[:-1])} or {KIND_NAMES[-1]}.")
]
Template = Annotated[
    Path | None,
    typer.Option("--template", metavar="FOLDER", help="Folder that a search or a list of folders is made from."),
]
ModelName = Annotated[
    str | None,
    typer.Option("--model", metavar="PROVIDER:MODEL", help="Language model, such as openai:NAME or anthropic:NAME."),
]
BaseUrl = Annotated[
    str | None, typer.Option("--base-url", help="Address of the model's server. Default: the provider's own.")
]
KeyFile = Annotated[
    Path | None,
    typer.Option(
        "--key-file",
        help="File that holds the model's API key. Default: the provider's variable, such as OPENAI_API_KEY.",
    ),
]
AgentCommand = Annotated[
    str | None, typer.Option("--agent-cmd", metavar="COMMAND", help="Command of a coding agent, in one text.")
]
Allow = Annotated[
    list[str] | None,
    typer.Option(
        "--allow",
        metavar="PATH[:rw]",
        help="Another path that the command may read, or with :rw also write; may be repeated.",
    ),
]
AllowEnv = Annotated[
    list[str] | None,
    typer.Option(
        "--allow-env", metavar="NAME", help="Variable that the command gets, such as its key; may be repeated."
    ),
]
Language = Annotated[str, typer.Option("--language", help="Language of the kernels, such as cpp or triton.")]
Gpu = Annotated[str, typer.Option("--gpu", help="The processor, such as cpu or h200.")]
Hypothesis = Annotated[
    str, typer.Option("--hypothesis", help="Why the candidate is right, or faster, and what changed in it.")
]
Profile = Annotated[
    str | None,
    typer.Option(
        "--profile",
        metavar="TOOL:FILE",
        help="Export of a profiler, such as perf:stat.txt; or image:FILE for a model that reads images.",
    ),
]
Seed = Annotated[
    int | None,
    typer.Option(
        "--seed", min=0, max=2**48 - 1, help="Seed of the author's random choices. Default: drawn at random."
    ),
]
Prices = Annotated[
    list[str] | None,
    typer.Option(
        "--price",
        metavar="MODEL=IN,OUT",
        help="Dollars for a million tokens, prompt and answer; repeat it for each model.",
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="Option of the author, such as finalists=2; may be repeated."),
]
RoundsWithoutGain = Annotated[
    int,
    typer.Option(
        "--rounds-without-gain", min=1, max=10**6, help="Rounds without a gain after which the session ends."
    ),
]
FloorShare = Annotated[
    float,
    typer.Option(
        "--floor-share",
        min=0.01,
        max=1,
        help="Share of the floor at which the session ends: shortest possible time over measured time.",
    ),
]
Workers = Annotated[
    int,
    typer.Option(
        "--workers", min=0, max=64, help="Candidates that `forge work` judges at once; 0: this process judges."
    ),
]
Candidates = Annotated[
    int, typer.Option("--candidates", min=0, max=10**6, help="Budget of candidates, refused ones too.")
]
Minutes = Annotated[
    float, typer.Option("--minutes", min=0, max=1e6, help="Budget of wall time in requests, in minutes.")
]
DeviceMinutes = Annotated[
    float, typer.Option("--device-minutes", min=0, max=1e6, help="Budget of time on the judging device, in minutes.")
]
Dollars = Annotated[
    float, typer.Option("--dollars", min=0, max=1e6, help="Budget for language models, in US dollars.")
]
Tokens = Annotated[
    int,
    typer.Option(
        "--tokens", min=0, max=10**12, help="Budget of language models' tokens, prompts and answers together."
    ),
]


@dataclass(frozen=True, kw_only=True)
class AuthorOptions:
    """The options that say which author works, and what it is made from."""

    author: AuthorKind
    model: ModelName = None
    base_url: BaseUrl = None
    key_file: KeyFile = None
    agent_cmd: AgentCommand = None
    allow: Allow = None
    allow_env: AllowEnv = None
    option: Settings = None

    def choice(self, *, template: Path | None = None, profile: str | None = None) -> "AuthorChoice":
        """Return the author that they choose; raise UsageError."""
        from forge.app.sessions.choice import AuthorChoice

        return AuthorChoice(
            kind=self.author,
            template=template,
            model=self.model,
            base_url=self.base_url,
            agent_cmd=self.agent_cmd,
            allow=tuple(self.allow or ()),
            allow_env=tuple(self.allow_env or ()),
            profile=profile,
            options=dict(named_value(one) for one in self.option or []),
        )


@dataclass(frozen=True, kw_only=True)
class BudgetOptions:
    """The options that say what a session may use; each command has its own defaults."""

    candidates: Candidates
    minutes: Minutes
    device_minutes: DeviceMinutes
    dollars: Dollars = 0
    tokens: Tokens = 0

    def amounts(self) -> "Amounts":
        """Return the budget that they give."""
        from forge.domain.budget import Amounts

        return Amounts(
            candidates=self.candidates,
            wall_ms=round(self.minutes * 60_000),
            device_ms=round(self.device_minutes * 60_000),
            micro_dollars=round(self.dollars * 1_000_000),
            tokens=self.tokens,
        )


@dataclass(frozen=True, kw_only=True)
class SessionBudget(BudgetOptions):
    """The budget of one session, in minutes: a search tries twenty candidates of an operation in less."""

    candidates: Candidates = 20
    minutes: Minutes = 120
    device_minutes: DeviceMinutes = 120


@dataclass(frozen=True, kw_only=True)
class GrantedBudget(BudgetOptions):
    """What a grant adds to a session's budget."""

    candidates: Candidates = 0
    minutes: Minutes = 0
    device_minutes: DeviceMinutes = 0


@dataclass(frozen=True, kw_only=True)
class SharedBudget(BudgetOptions):
    """The budget that the sessions of several tasks share, in minutes: twice that of one session."""

    candidates: Candidates = 40
    minutes: Minutes = 240
    device_minutes: DeviceMinutes = 240


@dataclass(frozen=True, kw_only=True)
class SharedWorkOptions(SharedBudget, AuthorOptions):
    """The options of an author that works on several tasks in one budget."""

    language: Language = "cpp"
    gpu: Gpu = "cpu"
    seed: Seed = None
    price: Prices = None

    def terms(self) -> "TaskRequest":
        """Return what the tasks have in common; each has its own operation and shape."""
        from forge.pipeline.create import TaskRequest

        return TaskRequest(op="", language=self.language, gpu=self.gpu, dtype="fp32", shape="")

    def request(self) -> "SessionRequest":
        """Return what the sessions have in common; raise UsageError."""
        from forge.app.sessions.opening import SessionRequest

        prices, seed = prices_of(self.price), seed_or_drawn(self.seed)
        return SessionRequest(task="", seed=seed, budget=self.amounts(), prices=prices)


def seed_or_drawn(seed: int | None) -> int:
    """Return the given seed, or a new one."""
    if seed is not None:
        return seed
    from forge.lab.inputs.seeded import new_seed

    return new_seed()


def named_value(text: str) -> tuple[str, str]:
    """Return the name and the value of `--set NAME=VALUE`; raise UsageError."""
    from forge.errors import UsageError

    name, equals, value = text.partition("=")
    if not (name and equals and value):
        raise UsageError(f"bad option {text!r:.100}: expected NAME=VALUE, such as finalists=2")
    return name, value


def prices_of(texts: list[str] | None) -> tuple["Price", ...]:
    """Return the price of each `--price MODEL=IN,OUT`; raise UsageError."""
    from forge.app.sessions.choice import parse_price

    return tuple(parse_price(one) for one in texts or [])
