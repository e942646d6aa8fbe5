"""Shows what screening is worth on this GPU: benchmarks/screening.py triton_softmax batch=4096,hidden_size=4096.

Its parts are printed as one JSON document. `equals`: the template's own setting as each of 1 to 31 drafts beside
itself. Each ratio should be 1, so this says whether plans in one launcher keep out of each other's way. `search`: a
whole search of the template, with the time that it took. `alone`: some settings of the search, each timed again by a
launcher that holds only the reference besides, and the rank correlation of both. `shipped`: the fastest settings of
the search beside the shipped kernel of the operation, in a final screening; a ratio above 1 is faster than shipped.
`without_effect`: a search over 300 settings that change nothing; `improved` should be 0. It takes longest.
A part that fails says why under `failed`, and the others go on; --out writes the document anew after each part.
With --cpu the same is done on the processor.
"""

import argparse
import dataclasses
import json
import random
import statistics
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path

from forge.app.machine.chosen_executor import executor_here
from forge.authors.search.author import SearchAuthor, SearchOptions
from forge.authors.search.space import SPACE_FILE
from forge.authors.search.template import Template, parse_template
from forge.domain.authoring import (
    BudgetLeft,
    Draft,
    FailedTrial,
    LogEntry,
    Screen,
    Screened,
    Setting,
    Step,
    Submit,
    TimedTrial,
)
from forge.domain.candidate import Metadata
from forge.domain.candidate_files import REQUIRED_FILES
from forge.domain.policy import Policy
from forge.domain.tensors import parse_dtype, parse_shape
from forge.executor import Executor
from forge.lab.job import Job
from forge.languages import find_language
from forge.operations import find_operation
from forge.platforms import PROCESSORS

TEMPLATES = Path(__file__).resolve().parents[1] / "examples" / "templates"
SHIPPED = TEMPLATES.parent / "h200"
BEST = 3
"""Number of settings of a search that are timed beside the shipped kernel."""
APART = 0.03
"""Relative difference of times from which on two drafts count in the rank correlation."""


def read(name: str) -> Template:
    folder = TEMPLATES / name
    return parse_template(
        {file: (folder / file).read_bytes() for file in REQUIRED_FILES}, (folder / SPACE_FILE).read_bytes()
    )


def without_effect(template: Template) -> Template:
    """Return the template with two constants that nothing reads in place of its parameters: 400 equal settings."""
    unused = ("WITHOUT_EFFECT_A", "WITHOUT_EFFECT_B")
    kernel = template.files["kernel.py"] + "".join(f"\n{name} = 0" for name in unused) + "\n"
    files = {name: text.encode() for name, text in {**template.files, "kernel.py": kernel}.items()}
    space = {"parameters": [{"name": name, "values": list(range(20))} for name in unused]}
    return parse_template(files, json.dumps(space).encode())


def job_of(template: Template, shape: str, dtype: str, executor: Executor, *, on_gpu: bool) -> Job:
    site = executor.site(Policy())
    gpu = site.environment.gpu
    operation = find_operation(template.metadata.op)
    if on_gpu and (gpu is None or gpu.slug not in PROCESSORS):
        print("this machine has no GPU that Forge knows", file=sys.stderr)
        sys.exit(3)
    return Job(
        operation=operation,
        language=find_language(template.metadata.language),
        shape=parse_shape(shape, operation.axes),
        held_out=(),
        dtype=parse_dtype(dtype),
        policy=Policy(),
        isolation=site.isolation,
        files={},
        metadata=Metadata(name="screening", op=operation.name, language=template.metadata.language),
        entry_point=operation.name,
        device="cuda" if on_gpu else "cpu",
        gpu=site.device if on_gpu else None,
        arch=PROCESSORS[gpu.slug].arch if on_gpu and gpu else "host",
    )


@dataclasses.dataclass
class Bench:
    template: Template
    executor: Executor
    job: Job
    asked: argparse.Namespace
    log: list[LogEntry] = dataclasses.field(default_factory=list)
    """Entries of the search, once it was made."""

    def screen(self, *drafts: Draft, reference: Draft, final: bool = False) -> tuple[Screened, float]:
        began = time.monotonic()
        found = self.executor.screen_drafts(
            self.job,
            Screen(drafts=drafts, reference=reference, final=final),
            rng=random.Random(self.asked.seed),
            progress=lambda said: print(f"{time.monotonic() - began:6.1f} s  {said}", file=sys.stderr),
        )
        if found.screened.reference_failed is not None:
            raise RuntimeError(f"the reference failed: {found.screened.reference_failed}")
        for said in sorted({str(one) for one in failures([found.screened])}):
            print(f"          failed: {said[:400]}", file=sys.stderr)
        return found.screened, time.monotonic() - began

    def equals(self) -> list[dict[str, object]]:
        """Screen a draft against itself."""
        answer: list[dict[str, object]] = []
        asked = [
            (count, final)
            for final in (False, True)
            for count in numbers(self.asked.finals if final else self.asked.equals)
        ]
        for count, final in asked:
            screened, took_s = self.screen(*[self.template.own] * count, reference=self.template.own, final=final)
            timed = [one.result for one in screened.trials if isinstance(one.result, TimedTrial)]
            ratios = [one.speedup.ratio for one in timed]
            answer.append(
                {
                    "drafts": count,
                    "final": final,
                    "timed": len(timed),
                    "median": statistics.median(ratios) if ratios else None,
                    "ratios": sorted(ratios),
                    "intervals_without_1": sum(not one.speedup.low <= 1 <= one.speedup.high for one in timed),
                    "windows": sorted(one.windows for one in timed),
                    "median_ns": [one.median_ns for one in timed],
                    "took_s": took_s,
                }
            )
            print(f"          equals: {answer[-1]}", file=sys.stderr)
        return answer

    def carried_out(self, author: SearchAuthor) -> tuple[list[LogEntry], float, Step]:
        """Carry out an author's screenings; return the log, the time, and the step after them."""
        log: list[LogEntry] = []
        took_s = 0.0
        while isinstance(step := author.propose(self.asked.seed, log, BudgetLeft()), Screen):
            screened, spent_s = self.screen(*step.drafts, reference=step.reference, final=step.final)
            log.append(screened)
            took_s += spent_s
        print(step.kind, getattr(step, "detail", ""), file=sys.stderr)
        return log, took_s, step

    def search(self) -> dict[str, object]:
        author = SearchAuthor(self.template, SearchOptions(batch=self.asked.batch, most_trials=self.asked.trials))
        self.log, took_s, _ = self.carried_out(author)
        ranked, failed = ratios_of(self.log, final=False), failures(self.log)
        trials = len(ranked) + len(failed)
        return {
            "took_s": took_s,
            "trials": trials,
            "trials_per_hour": 3600 * trials / took_s,
            "failed": [str(one) for one in failed],
            "ranked": ranked,
            "final": ratios_of(self.log, final=True),
        }

    def alone(self) -> dict[str, object]:
        """Time some settings of the search again, each beside the reference alone."""
        ranked = ratios_of(self.log, final=False)
        order = sorted(ranked, key=lambda name: ranked[name])
        count = min(self.asked.alone, len(order))
        chosen = {order[round(place * (len(order) - 1) / max(1, count - 1))] for place in range(count)}
        again = {}
        for name in sorted(chosen):
            draft = self.template.draft(self.settings[name])
            screened, _ = self.screen(draft, reference=self.template.own)
            result = screened.trials[0].result
            if isinstance(result, TimedTrial):
                again[name] = result.speedup.ratio
        return {"ratios": again, "ranked": {name: ranked[name] for name in again}} | rank_correlation(ranked, again)

    def shipped(self) -> dict[str, object]:
        """Time the search's fastest settings beside the shipped kernel, in fresh launchers."""
        folder = SHIPPED / self.template.metadata.op
        files = {name: (folder / name).read_text() for name in REQUIRED_FILES}
        ranked = ratios_of(self.log, final=False) | ratios_of(self.log, final=True)
        best = sorted(ranked, key=lambda name: -ranked[name])[:BEST]
        drafts = [self.template.draft(self.settings[name]) for name in best]
        reference = Draft(files=files, hypothesis="The shipped kernel.")
        screened, took_s = self.screen(self.template.own, *drafts, reference=reference, final=True)
        timed = {
            name: one.result.speedup.model_dump(mode="json")
            for name, one in zip(["own", *best], screened.trials, strict=True)
            if isinstance(one.result, TimedTrial)
        }
        return {"took_s": took_s, "over_shipped": timed}

    def without_effect(self) -> dict[str, object]:
        options = SearchOptions(batch=self.asked.batch, most_trials=300)
        author = SearchAuthor(without_effect(self.template), options)
        log, took_s, step = self.carried_out(author)
        return {
            "took_s": took_s,
            "trials": sum(len(one.trials) for one in log if isinstance(one, Screened)),
            "screened_most": max(ratios_of(log, final=False).values()),
            "final": sorted(ratios_of(log, final=True).values()),
            "improved": sum(one != author.template.own for one in step.drafts) if isinstance(step, Submit) else 0,
        }

    @property
    def settings(self) -> dict[str, Setting]:
        """Each setting of the search by its text."""
        trials = [one for entry in self.log if isinstance(entry, Screened) for one in entry.trials]
        return {str(one.setting): one.setting for one in trials if one.setting is not None}


def numbers(text: str) -> list[int]:
    return [int(one) for one in text.split(",") if one]


def failures(log: Sequence[LogEntry]) -> list[FailedTrial]:
    trials = [one for entry in log if isinstance(entry, Screened) for one in entry.trials]
    return [one.result for one in trials if isinstance(one.result, FailedTrial)]


def ratios_of(log: list[LogEntry], *, final: bool) -> dict[str, float]:
    """Return the ratio of each timed setting, by its text."""
    trials = [one for entry in log if isinstance(entry, Screened) and entry.final == final for one in entry.trials]
    return {str(one.setting): one.result.speedup.ratio for one in trials if isinstance(one.result, TimedTrial)}


def rank_correlation(one: dict[str, float], other: dict[str, float]) -> dict[str, object]:
    """Kendall's tau-a over the pairs whose times differ by more than 3 % in the second ranking."""
    names = sorted(set(one) & set(other))
    pairs = [(a, b) for place, a in enumerate(names) for b in names[:place] if abs(other[a] / other[b] - 1) > APART]
    alike = sum(1 if (one[a] - one[b]) * (other[a] - other[b]) > 0 else -1 for a, b in pairs)
    return {"pairs": len(pairs), "rank_correlation": alike / len(pairs) if pairs else None}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("template", help="folder under examples/templates")
    options.add_argument("shape", help="axes of the operation, such as batch=4096,hidden_size=4096")
    options.add_argument("--dtype", default="bf16")
    options.add_argument("--cpu", action="store_true")
    options.add_argument("--parts", default="equals,search,alone")
    options.add_argument("--equals", default="1,7,15,31", help="numbers of equal drafts beside the reference")
    options.add_argument("--finals", default="6", help="numbers of equal drafts in a final screening")
    options.add_argument("--trials", type=int, default=96)
    options.add_argument("--batch", type=int, default=31)
    options.add_argument("--alone", type=int, default=12, help="settings that are timed again, each alone")
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--out", type=Path, help="file for the document, besides the output")
    asked = options.parse_args()
    template, executor = read(asked.template), executor_here()
    job = job_of(template, asked.shape, asked.dtype, executor, on_gpu=not asked.cpu)
    bench = Bench(template, executor, job, asked)
    site = executor.site(Policy()).environment
    answer: dict[str, object] = {"template": asked.template, "shape": asked.shape, "dtype": asked.dtype}
    answer["machine"] = site.gpu.name if site.gpu and not asked.cpu else "the processor"
    parts: dict[str, Callable[[], object]] = {
        "equals": bench.equals,
        "search": bench.search,
        "alone": bench.alone,
        "shipped": bench.shipped,
        "without_effect": bench.without_effect,
    }
    for part in asked.parts.split(","):
        try:
            answer[part] = parts[part]()
        except Exception as error:  # noqa: BLE001  # the other parts are still worth their time
            traceback.print_exc()
            answer.setdefault("failed", {})[part] = f"{type(error).__name__}: {error}"  # type: ignore[index]
        if asked.out:
            asked.out.write_text(json.dumps(answer))
    print(json.dumps(answer))
    sys.exit("failed" in answer)


if __name__ == "__main__":
    main()
