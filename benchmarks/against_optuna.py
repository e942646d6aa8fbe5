"""Compares Forge's search with Optuna's: against_optuna.py cpp_fused_add_rmsnorm batch=16,hidden_size=4096.

Both search the same template with the same number of trials, in batches of the same size, on the same clock: the
screening. Optuna's sampler is its default, the tree-structured Parzen estimator. A setting that breaks a constraint
is given back to it and doesn't count. The fastest setting of each, by its own trials, is then timed beside the
template's own setting and beside the other one's, in final screenings of fresh processes. It needs `pip install
optuna`, which Forge itself never uses.
"""

import argparse
import json
import sys
import time
from pathlib import Path

import optuna
from screening import Bench, failures, job_of, ratios_of, read

from forge.app.machine.chosen_executor import executor_here
from forge.authors.search.author import SearchAuthor, SearchOptions
from forge.domain.authoring import BudgetLeft, FailedTrial, LogEntry, Screen, Screened, Setting, TimedTrial
from forge.domain.policy import Policy


def by_forge(bench: Bench, seed: int) -> tuple[Setting, int]:
    """Return the fastest setting of Forge's search, and the number of its trials."""
    asked, log = bench.asked, list[LogEntry]()
    author = SearchAuthor(bench.template, SearchOptions(batch=asked.batch, most_trials=asked.trials))
    while isinstance(step := author.propose(seed, log, BudgetLeft()), Screen) and not step.final:
        log.append(bench.screen(*step.drafts, reference=step.reference)[0])
    ranked = ratios_of(log, final=False)
    trials = [one for entry in log if isinstance(entry, Screened) for one in entry.trials]
    settings = {str(one.setting): one.setting for one in trials if one.setting is not None}
    return settings[max(ranked, key=lambda name: ranked[name])], len(ranked) + len(failures(log))


def by_optuna(bench: Bench, seed: int) -> tuple[Setting, int]:
    """Return the fastest setting of Optuna's search, and the number of its trials."""
    space, asked = bench.template.space, bench.asked
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=seed))
    done = 0
    while done < asked.trials:
        waiting: list[tuple[optuna.trial.Trial, Setting]] = []
        while len(waiting) < min(asked.batch, asked.trials - done):
            trial = study.ask()
            values = {name: trial.suggest_categorical(name, list(values)) for name, values in space.values.items()}
            if space.allows(Setting(values=values)):
                waiting.append((trial, Setting(values=values)))
            else:
                study.tell(trial, state=optuna.trial.TrialState.FAIL)
        drafts = [bench.template.draft(setting) for _, setting in waiting]
        screened, _ = bench.screen(*drafts, reference=bench.template.own)
        for (trial, _), found in zip(waiting, screened.trials, strict=True):
            if isinstance(found.result, FailedTrial):
                study.tell(trial, state=optuna.trial.TrialState.FAIL)
            else:
                study.tell(trial, found.result.speedup.ratio)
        done += len(waiting)
    return Setting(values=study.best_trial.params), done


def compared(bench: Bench, seed: int) -> dict[str, object]:
    """Search by both with one seed, and time both results beside the template's own setting and each other."""
    answer: dict[str, object] = {"seed": seed}
    found = {}
    for name, search in (("forge", by_forge), ("optuna", by_optuna)):
        began = time.monotonic()
        found[name], trials = search(bench, seed)
        answer[name] = {"setting": str(found[name]), "trials": trials, "took_s": time.monotonic() - began}
    own, forge, other = bench.template.own, *(bench.template.draft(found[name]) for name in ("forge", "optuna"))
    for name, drafts, reference in (("over_own", (forge, other), own), ("forge_over_optuna", (forge,), other)):
        screened, _ = bench.screen(*drafts, reference=reference, final=True)
        answer[name] = [
            one.result.speedup.model_dump(mode="json") if isinstance(one.result, TimedTrial) else str(one.result)
            for one in screened.trials
        ]
    return answer


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("template", help="folder under examples/templates")
    options.add_argument("shape", help="axes of the operation, such as batch=16,hidden_size=4096")
    options.add_argument("--dtype", default="fp32")
    options.add_argument("--gpu", action="store_true", help="search on this machine's GPU instead of its processor")
    options.add_argument("--trials", type=int, default=40)
    options.add_argument("--batch", type=int, default=8)
    options.add_argument("--seeds", default="1,2,3")
    options.add_argument("--out", type=Path, help="file for the document, besides the output")
    asked = options.parse_args()
    template, executor = read(asked.template), executor_here()
    job = job_of(template, asked.shape, asked.dtype, executor, on_gpu=asked.gpu)
    site = executor.site(Policy()).environment
    answer: dict[str, object] = {"template": asked.template, "shape": asked.shape, "dtype": asked.dtype}
    answer |= {"machine": site.gpu.name if site.gpu and asked.gpu else site.cpu_model, "optuna": optuna.__version__}
    answer |= {"trials": asked.trials, "batch": asked.batch, "settings": template.space.points}
    searches: list[dict[str, object]] = []
    for seed in map(int, asked.seeds.split(",")):
        asked.seed = seed
        searches.append(compared(Bench(template, executor, job, asked), seed))
        print(json.dumps(searches[-1]), file=sys.stderr)
        answer["searches"] = searches
        if asked.out:
            asked.out.write_text(json.dumps(answer))
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
