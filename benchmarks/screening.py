"""Shows what screening is worth on this GPU: benchmarks/screening.py triton_softmax batch=4096,hidden_size=4096.

Four parts, printed as one JSON document. `equals`: the template's own setting as each of 1 to 31 drafts beside
itself, ranked and then in a final screening. Each ratio should be 1, so this says whether plans in one launcher keep
out of each other's way. `search`: a whole search of the template, with the time that it took. `alone`: some settings
of the search, each timed again by launchers that hold only the reference besides, and the rank correlation of both.
`without_effect`: a search over 300 settings that change nothing; `improved` should be 0. It takes longest.
With --cpu the same is done on the processor.
"""

import argparse
import dataclasses
import json
import random
import statistics
import sys
import time
from pathlib import Path

from forge.app.site import executor_here
from forge.authors.search.author import SearchAuthor, SearchOptions
from forge.authors.search.space import SPACE_FILE
from forge.authors.search.template import Template, parse_template
from forge.domain.authoring import BudgetLeft, Draft, LogEntry, Screen, Screened, Step, Submit, TimedTrial
from forge.domain.candidate import REQUIRED_FILES, Metadata
from forge.domain.policy import Policy
from forge.domain.tensors import parse_dtype, parse_shape
from forge.executor import Executor
from forge.lab.job import Job
from forge.languages import find_language
from forge.operations import find_operation
from forge.platforms import PROCESSORS

TEMPLATES = Path(__file__).resolve().parents[1] / "examples" / "templates"
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
    executor: Executor
    job: Job
    seed: int

    def screen(self, *drafts: Draft, reference: Draft, final: bool = False) -> tuple[Screened, float]:
        began = time.monotonic()
        found = self.executor.screen_drafts(
            self.job,
            Screen(drafts=drafts, reference=reference, final=final),
            rng=random.Random(self.seed),
            progress=lambda said: print(said, file=sys.stderr),
        )
        if found.screened.reference_failed is not None:
            print(found.screened.reference_failed, file=sys.stderr)
            sys.exit(1)
        return found.screened, time.monotonic() - began

    def equals(self, own: Draft, counts: list[int]) -> list[dict[str, float]]:
        """Screen a draft against itself."""
        answer = []
        for count in counts:
            for final in (False, True):
                screened, took_s = self.screen(*[own] * count, reference=own, final=final)
                timed = [one.result for one in screened.trials if isinstance(one.result, TimedTrial)]
                ratios = sorted(one.speedup.ratio for one in timed)
                answer.append(
                    {
                        "drafts": count,
                        "final": final,
                        "timed": len(timed),
                        "least": ratios[0],
                        "median": statistics.median(ratios),
                        "most": ratios[-1],
                        "intervals_without_1": sum(not one.speedup.low <= 1 <= one.speedup.high for one in timed),
                        "took_s": took_s,
                    }
                )
        return answer

    def search(self, author: SearchAuthor) -> tuple[list[LogEntry], float, Step]:
        """Carry out an author's screenings; return the log, the time, and the step after them."""
        log: list[LogEntry] = []
        took_s = 0.0
        while isinstance(step := author.propose(self.seed, log, BudgetLeft()), Screen):
            screened, spent_s = self.screen(*step.drafts, reference=step.reference, final=step.final)
            log.append(screened)
            took_s += spent_s
        print(step.kind, getattr(step, "detail", ""), file=sys.stderr)
        return log, took_s, step


def ratios_of(log: list[LogEntry], *, final: bool) -> dict[str, float]:
    """Return the ratio of each timed setting, by its text."""
    trials = [one for entry in log if isinstance(entry, Screened) and entry.final == final for one in entry.trials]
    return {str(one.setting): one.result.speedup.ratio for one in trials if isinstance(one.result, TimedTrial)}


def rank_correlation(one: dict[str, float], other: dict[str, float]) -> float | None:
    """Kendall's tau-a over the pairs whose times differ by more than 3 % in the second ranking."""
    names = sorted(set(one) & set(other))
    pairs = [(a, b) for place, a in enumerate(names) for b in names[:place] if abs(other[a] / other[b] - 1) > APART]
    if not pairs:
        return None
    return sum(1 if (one[a] - one[b]) * (other[a] - other[b]) > 0 else -1 for a, b in pairs) / len(pairs)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("template", help="folder under examples/templates")
    options.add_argument("shape", help="axes of the operation, such as batch=4096,hidden_size=4096")
    options.add_argument("--dtype", default="bf16")
    options.add_argument("--cpu", action="store_true")
    options.add_argument("--parts", default="equals,search,alone")
    options.add_argument("--equals", default="1,7,15,31", help="numbers of equal drafts beside the reference")
    options.add_argument("--trials", type=int, default=96)
    options.add_argument("--batch", type=int, default=31)
    options.add_argument("--alone", type=int, default=12, help="settings that are timed again, each alone")
    options.add_argument("--seed", type=int, default=1)
    asked = options.parse_args()
    template, executor, parts = read(asked.template), executor_here(), asked.parts.split(",")
    job = job_of(template, asked.shape, asked.dtype, executor, on_gpu=not asked.cpu)
    bench = Bench(executor, job, asked.seed)
    answer: dict[str, object] = {"template": asked.template, "shape": asked.shape, "dtype": asked.dtype}
    if "equals" in parts:
        answer["equals"] = bench.equals(template.own, [int(one) for one in asked.equals.split(",")])
    if "without_effect" in parts:
        author = SearchAuthor(without_effect(template), SearchOptions(batch=asked.batch, most_trials=300))
        log, took_s, step = bench.search(author)
        answer["without_effect"] = {
            "took_s": took_s,
            "trials": sum(len(one.trials) for one in log if isinstance(one, Screened)),
            "screened_most": max(ratios_of(log, final=False).values()),
            "final": sorted(ratios_of(log, final=True).values()),
            "improved": len(step.drafts) if isinstance(step, Submit) else 0,
        }
    if "search" in parts or "alone" in parts:
        author = SearchAuthor(template, SearchOptions(batch=asked.batch, most_trials=asked.trials))
        log, took_s, _ = bench.search(author)
        ranked = ratios_of(log, final=False)
        failed = [
            str(one.result)
            for e in log
            if isinstance(e, Screened)
            for one in e.trials
            if one.result.outcome == "failed"
        ]
        answer["search"] = {"took_s": took_s, "trials": len(ranked) + len(failed), "failed": failed, "ranked": ranked}
        answer["search"] |= {"final": ratios_of(log, final=True)}  # type: ignore[operator]  # a dictionary
    if "alone" in parts:
        order = sorted(ranked, key=lambda name: ranked[name])
        chosen = {order[round(place * (len(order) - 1) / max(1, asked.alone - 1))] for place in range(asked.alone)}
        settings = {str(one.setting): one.setting for e in log if isinstance(e, Screened) for one in e.trials}
        again = {}
        for name in sorted(chosen):
            setting = settings[name]
            assert setting is not None
            screened, _ = bench.screen(template.draft(setting), reference=template.own, final=True)
            result = screened.trials[0].result
            if isinstance(result, TimedTrial):
                again[name] = result.speedup.ratio
        answer["alone"] = {"ratios": again, "rank_correlation": rank_correlation(ranked, again)}
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
