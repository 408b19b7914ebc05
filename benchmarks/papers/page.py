"""Write the parts of ``docs/evidence`` from the JSON files: claims, forest plots and tables."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

import benchmarks.papers

from . import (
    depth,
    figures,
    gra,
    guided_train,
    guides,
    labels,
    prio,
    prio_images,
    pruning,
    quotes,
    rmd,
    shift,
    short,
)
from .beside import beside
from .claims import (
    OWN,
    VERDICTS,
    comparable,
    hardest,
    judge,
    judged,
    sentence,
    stated,
    written,
)
from .forest import forest
from .results import described, load, settings_of
from .tables import POINTS, comparisons, csv_table

FOLDER = Path(__file__).parents[2] / "docs" / "evidence"
# The studies: one module each has the settings, the methods and the claims.
STUDIES = {
    "rmd": rmd.STUDY, "rmd_images": rmd.IMAGE_STUDY, "guides": guides.STUDY,
    "guided_train": guided_train.STUDY, "gra": gra.STUDY, "gra_images": gra.IMAGE_STUDY,
    "prio": prio.STUDY, "prio_images": prio_images.STUDY, "depth": depth.STUDY,
    "labels": labels.STUDY, "pruning": pruning.STUDY, "shift": shift.STUDY,
}  # fmt: skip


# The page of every study, and what its first screen shows: the start of each claim.
PAGES = {
    "rmd": "[RMD] Sample difficulty", "gra": "[GRA] Weighted gradients",
    "prio": "[PRIO] Prioritization", "depth": "[DEPTH] Example difficulty",
    "labels": "Wrong labels", "pruning": "Pruning", "shift": "Shift",
}  # fmt: skip
SCREENS = {
    "rmd": (
        ("rmd", "With weight decay in both, difficulty-aware regularization has"),
        ("rmd", "Without decay. Difficulty-aware regularization lowers"),
        ("rmd_images", "Without decay. Difficulty-aware regularization lowers"),
        ("rmd", "With weight decay in both, difficulty-aware regularization is more"),
        ("rmd_images", "Without decay. Difficulty-aware regularization raises"),
        ("rmd", "With weight decay in both, its confidence tells errors better"),
        ("rmd", "With weight decay in both, it detects"),
        ("rmd", "The hardest hundredth by RMD"),
        ("guides", "By a pre-trained guide, the hardest hundredth by RMD"),
    ),
    "gra": (
        ("gra", "BSCE-GRA is better calibrated than cross-entropy."),
        ("gra_images", "BSCE-GRA is better calibrated than cross-entropy."),
        ("gra_images", "After temperature scaling of both"),
        ("gra", "Weighting gradients beats weighting the loss: BSCE."),
        ("gra_images", "Weighting gradients beats weighting the loss: BSCE."),
        ("gra_images", "The Brier weight beats the focal one"),
        ("gra_images", "BSCE-GRA costs less than a point"),
        ("gra", "In the toy of Sec. 4.3, the Brier"),
    ),
    "prio": (
        ("prio", "Calibrating by label smoothing lowers"),
        ("prio", "Calibrating by mixup lowers"),
        ("prio", "Calibrating by focal lowers"),
        *(("prio_images", f"Calibrating by {loss} lowers")
          for loss in ("label smoothing", "mixup", "focal")),
        *(("prio", f"A target trained with mixup lowers the ECE of {loss},")
          for loss in ("label smoothing", "mixup", "focal")),
        ("prio", "Calibrating by label smoothing costs"),
        ("prio", "Calibrating by mixup costs"),
        ("prio", "Calibrating by focal costs"),
    ),
    "depth": (
        *(("depth", f"The 0-hinge loss by full-batch descent leaves a smaller output margin than "
           f"{other}") for other in depth.DESCENTS if other != depth.BOTH),
        ("depth", "It is less accurate than cross-entropy, SGD"),
        ("depth", "Its predictions are deeper than those of cross-entropy, SGD"),
        ("depth", "On samples that are ambiguous without"),
        ("depth", "Deeper predictions are less accurate"),
        ("depth", "Deeper predictions are learned later"),
    ),
}  # fmt: skip


def screen(page):
    """Return the claims of the first screen of a page, judged; they say whether of images."""
    found = []
    for study, start in SCREENS[page]:
        claim, judgement = short.row_of(STUDIES, study, start)
        if f"{page}_images" in STUDIES:
            claim = replace(
                claim, text=f"{STUDIES[study].name.split(', ')[1].title()}. {claim.text}"
            )
        found.append((claim, judgement))
    return found


def picture(page):
    """Draw the claims of the first screen whose changes are in the unit of the first."""
    rows, unit = [], screen(page)[0][0].paper.unit
    for claim, found in screen(page):
        if comparable(claim) and claim.paper.unit == unit and found.results:
            better = found.column.better
            changes = [(f.label, claim.paper.change(f)) for f in claim.paper.figures]
            ours = [
                (r.setting, better * r.mean, *sorted((better * r.low, better * r.high)))
                for r in hardest(found)
            ]
            rows.append((claim.text, changes, ours, found.verdict))
    return beside(rows, unit)


def line(claim, found):
    """Return a claim, the paper's figure, ours, and the verdict."""
    return claim.text, stated(claim, found), sentence(claim, found), found.verdict


def claims_table(claims):
    """Return the table of claims, one line each."""
    rows = [line(claim, judged(claim)) for claim in claims]
    header = ["claim", "the paper", "found: gain [95 % interval]", "verdict"]
    return csv_table("", header, rows, widths="32 16 40 12")


def plot(lines):
    """Return the forest plot of (text, judgement)."""
    return forest([
        (text, [(r.setting, *(v / found.effect for v in r[2:5])) for r in hardest(found)],
         found.verdict)
        for text, found in lines
    ])  # fmt: skip


def headlines():
    """Return (study, claim, judgement) of the main claims, in all settings of their pages."""
    return [
        (study.name, claim, judged(claim))
        for study in STUDIES.values()
        for claim in study.claims
        if claim.headline
    ]


def repeated():
    """Return (study, claim, judgement) of the main claims in the setting of the fresh seeds."""
    once = [(study, replace(claim, settings=(claim.headline,))) for study, claim, _ in headlines()]
    return [(study, claim, judged(claim)) for study, claim in once]


def pooled(claim):
    """Return the judgement by the seeds of the pages and the fresh ones together."""
    names, metrics = {claim.method, *claim.rivals}, {claim.metric, claim.rival_metric} - {""}
    parts = [settings_of(part)[claim.headline] for part in (claim.part, f"fresh_{claim.part}")]
    lists = lambda part, name, metric: part[name][claim.point][metric]
    # Pairs of seeds: on the page, a method may have more seeds than its rival.
    n_seeds = [min(len(lists(part, name, claim.metric)) for name in names) for part in parts]
    methods = {
        name: {
            claim.point: {
                metric: np.concatenate(
                    [lists(part, name, metric)[:n] for part, n in zip(parts, n_seeds)]
                )
                for metric in metrics
            }
        }
        for name in names
    }
    return judge(claim, {claim.headline: methods})


def replication():
    """Return how many verdicts of the overview are the same on fresh seeds, and each on both."""
    rows, same = [], 0
    for _, claim, before in repeated():
        again = judge(claim, settings_of(f"fresh_{claim.part}"))
        if again.results:
            same += before.verdict == again.verdict
            cells = [
                f"{written(f.results[0], f)}: {f.verdict} ({f.results[0].n_seeds} seeds)"
                for f in (before, again, pooled(claim))
            ]
            rows.append([claim.text, f"{before.column.header}, {claim.headline}", *cells])
    header = ["claim", "of", "seeds of the pages", "fresh seeds", "all seeds"]
    table = csv_table("", header, rows, widths="28 12 20 20 20")
    return f"{same} of {len(rows)} verdicts are the same on the fresh seeds.\n\n{table}"


def overview():
    """Return the lines of the forest plot in words, with their settings."""
    rows = [(name, *line(*found)) for name, *found in headlines()]
    header = ["of", "claim", "the paper", "ours [95 % interval]", "verdict"]
    return csv_table("", header, rows, widths="10 36 16 26 12")


def counts():
    """Return {study, or who claims it: {verdict: number}}."""
    claims = {study.name: study.claims for study in STUDIES.values()}
    every = sum(claims.values(), ())
    claims["the papers"] = [c for c in every if c.paper != OWN or c.reason]
    claims |= {"our own": [c for c in every if c not in claims["the papers"]], "all": every}
    verdicts = {name: [judged(claim).verdict for claim in of] for name, of in claims.items()}
    return {name: {v: found.count(v) for v in VERDICTS} for name, found in verdicts.items()}


def in_numbers():
    """Return the sentence that the landing page quotes: what does not hold, most first."""
    total = counts()["all"]
    others = {
        "do not hold here": total["does not hold here"],
        "are undecided": total["undecided"],
        "cannot be tested on two cores": total["not testable here"],
    }
    first, second, last = (
        f"{n} {what}" for what, n in sorted(others.items(), key=lambda item: -item[1])
    )
    return (
        f"{total['holds']} of {sum(total.values())} claims hold, {total['holds, smaller']} more "
        f"with a smaller effect, {total['holds in part']} in part; {first}, {second}, and "
        f"{last}.\n"
    )


def runs():
    """Return dates, run times and versions, a line a part."""
    rows, machine = [], {}
    names = [name for study in STUDIES.values() for name in study.parts]
    for name in (*names, *dict.fromkeys(f"fresh_{claim.part}" for _, claim, _ in repeated())):
        content = load(name)
        if "machine" in content:
            machine = content["machine"]
            minutes = f"{content['cpu_seconds'] / 60:.1f}"
            rows.append([name, content["date"], content["runs"], minutes])
    versions = ", ".join(f"{name} {value}" for name, value in machine.items())
    table = csv_table("", ["part", "date of the last runs", "runs", "minutes of one core"], rows)
    return f"One thread, no accelerator: {versions}.\n\n{table}"


def on_a_gpu():
    """Return the table of the run at a larger scale, and the machine of it."""
    content = load("full_gra")
    machine = ", ".join(f"{name} {value}" for name, value in content["machine"].items())
    table = comparisons(content["settings"], points={"last": POINTS["last"]})
    return f"{machine}.\n\n{table}"


def render():
    """Return {name of the file: text} of everything that the pages include."""
    settings = described(benchmarks.papers.__doc__).partition("-\n")[2]
    files = {
        "overview.inc": overview(),
        "overview.svg": plot(
            (f"{name}: {claim.text}", found) for name, claim, found in headlines()
        ),
        "replication.inc": replication(),
        "counts.inc": csv_table(
            "", ["claims of", *VERDICTS], [[name, *of.values()] for name, of in counts().items()]
        ),
        "in_numbers.inc": in_numbers(),
        "in_one_minute.inc": short.beliefs(PAGES),
        "settings.inc": settings,
        "runs.inc": runs(),
        "full_gra.inc": on_a_gpu(),
    }
    files |= figures.pictures()
    for paper, said in quotes.QUOTES.items():
        files[f"{paper}_said.inc"] = quotes.table(STUDIES, said)
    for page in PAGES:
        files[f"{page}_short.inc"] = short.written(page)
    for page in SCREENS:
        rows = [line(*found) for found in screen(page)]
        header = ["claim", "the paper", "here [95 % interval]", "verdict"]
        files[f"{page}_screen.inc"] = csv_table("", header, rows, widths="28 28 32 12")
        files[f"{page}_beside.svg"] = picture(page)
    for page, study in STUDIES.items():
        files[f"{page}_claims.inc"] = claims_table(study.claims)
        files[f"{page}.svg"] = plot((claim.text, judged(claim)) for claim in study.claims)
        files[f"{page}_settings.inc"] = study.settings
        for name, part in study.parts.items():
            files[f"{name}.inc"] = part.table(settings_of(name))
            files[f"{name}_settings.inc"] = part.settings or files.get(f"{name}_settings.inc")
    return {name: text for name, text in files.items() if text}


def write():
    files = render()
    for old in [*FOLDER.glob("*.inc"), *FOLDER.glob("*.svg")]:
        old.unlink()
    for name, text in files.items():
        (FOLDER / name).write_text(text)
