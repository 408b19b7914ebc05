"""Write the parts of ``docs/evidence`` from the JSON files: claims, forest plots and tables."""

from __future__ import annotations

import inspect
from pathlib import Path

import benchmarks.papers

from . import depth, prio, pruning, shift, statements, toy
from .claims import VERDICTS, Judgement, judge, kind, sentence, stated, written
from .forest import forest
from .summary import SUMMARIES, available, load, settings_of
from .tables import (
    CALIBRATION,
    COLUMNS,
    NONE,
    POINTS,
    Column,
    cell,
    comparison,
    csv_table,
)

FOLDER = Path(__file__).parents[2] / "docs" / "evidence"
NOISES = {
    "clean": "clean labels",
    "U20": "20 % of the labels flipped uniformly",
    "U40": "40 % of the labels flipped uniformly",
    "I20": "20 % of the labels flipped to the nearest wrong class",
}
NOTHING = "These runs were not made.\n"
# A page, the name of its part in the overview, and its claims.
PARTS = {
    "rmd": ("[RMD], texts", statements.RMD),
    "rmd_images": ("[RMD], images", statements.RMD_IMAGES),
    "gra": ("[GRA], texts", statements.GRA),
    "gra_images": ("[GRA], images", statements.GRA_IMAGES),
    "prio": ("[PRIO]", statements.PRIO),
    "depth": ("[DEPTH]", statements.DEPTH),
    "labels": ("wrong labels", (*statements.LABELS, *statements.VALIDATION)),
    "pruning": ("pruning", statements.PRUNING),
    "shift": ("shift", statements.SHIFT),
}


def judged(claims):
    """Return (claim, judgement) of every claim."""
    return [(claim, judge(claim, settings_of(getattr(claim, "study", "")))) for claim in claims]


def claims_table(claims):
    """Return the table of claims, one line each: the paper's figure, ours, the verdict."""
    rows = [
        (claim.text, stated(claim, found), sentence(claim, found), found.verdict)
        for claim, found in judged(claims)
    ]
    header = ["claim", "the paper", "found: gain [95 % interval]", "verdict"]
    return csv_table("", header, rows, widths="32 16 40 12")


def plot(claims):
    """Return the forest plot of claims: of several rivals the one that is hardest to beat."""
    rows = []
    for claim, found in judged(claims):
        results = []
        for setting in dict.fromkeys(r.setting for r in found.results):
            least = min((r for r in found.results if r.setting == setting), key=lambda r: r.low)
            results.append((setting, *(v / found.effect for v in least[2:5])))
        rows.append((claim.text, results, found.verdict))
    return forest(rows)


def headlines():
    """Return (part, claim, judgement) of the lines of the overview, in one setting each."""
    found = []
    for name, claims in PARTS.values():
        for claim, whole in judged(claims):
            here = [r for r in whole.results if r.setting == claim.headline]
            if here:
                least = min(here, key=lambda r: r.low)
                verdict = kind(least, whole.effect, no_loss=claim.no_loss)
                found.append((name, claim, Judgement(verdict, [least], *whole[2:])))
    return found


def overview_plot():
    return forest([
        (
            f"{name}: {claim.text}",
            [(r.setting, *(v / found.effect for v in r[2:5])) for r in found.results],
            found.verdict,
        )
        for name, claim, found in headlines()
    ])  # fmt: skip


def overview():
    """Return the lines of the forest plot in words, with their settings."""
    rows = [
        (
            name, claim.text, stated(claim, found),
            f"{found.column.header}: {written(found.results[0], found.column)} "
            f"({found.results[0].setting})",
            found.verdict,
        )
        for name, claim, found in headlines()
    ]  # fmt: skip
    header = ["of", "claim", "the paper", "ours [95 % interval]", "verdict"]
    return csv_table("", header, rows, widths="10 36 16 26 12")


def counts():
    """Return {part: {verdict: number}}."""
    return {
        name: {v: [found.verdict for _, found in judged(claims)].count(v) for v in VERDICTS}
        for name, claims in PARTS.values()
    }


def counts_table():
    rows = [[name, *of_part.values()] for name, of_part in counts().items()]
    total = [sum(row[i] for row in rows) for i in range(1, len(VERDICTS) + 1)]
    return csv_table("", ["claims of", *VERDICTS], [*rows, ["all", *total]])


def in_numbers():
    """Return the sentence that the landing page quotes."""
    total = {v: sum(part[v] for part in counts().values()) for v in VERDICTS}
    return (
        f"{total['holds']} of {sum(total.values())} claims hold, {total['holds in part']} in "
        f"part; {total['does not hold here']} do not hold here, {total['undecided']} are "
        f"undecided, and {total['not testable here']} cannot be tested on two cores.\n"
    )


def comparisons(study, columns=COLUMNS):
    """Return the tables of all settings of a study of methods."""
    tables = [
        comparison(f"{_title(setting)}, {POINTS[point]}", methods, point, columns)
        for setting, methods in settings_of(study).items()
        for point in POINTS
        if "accuracy" in next(iter(methods.values())).get(point, ())
    ]
    return "\n".join([*tables, *_flips(study)]) or NOTHING


def _title(setting):
    text = NOISES.get(setting, setting)
    return text[0].upper() + text[1:]


def _flips(study):
    found = {s: m for s, m in settings_of(study).items() if s.startswith("flips")}
    column = Column("", "", 100, 2)
    if found:
        yield values_table("AUROC of flipped labels, %", found, "AUROC of flips", column)


def values_table(title, settings, metric, column):
    """Return one row a method and one column a setting."""
    names = list(dict.fromkeys(name for methods in settings.values() for name in methods))
    rows = []
    for name in names:
        values = [m.get(name, {}).get("last", {}).get(metric) for m in settings.values()]
        if any(values):
            rows.append([name, *(cell(v, column) if v else NONE for v in values)])
    return csv_table(title, ["", *settings], rows) if rows else NOTHING


def values(study, title, metric, column):
    return lambda: values_table(title, settings_of(study), metric, column)


def human():
    """Spearman's correlation with human entropy, with standard errors by bootstrap."""
    rows = [
        [name, "{:.3f} ± {:.3f}".format(*points["last"]["Spearman"])]
        for name, points in settings_of("human").get("CIFAR-10H", {}).items()
    ]
    return csv_table("CIFAR-10H, ten thousand images", ["difficulty", "Spearman"], rows)


VALIDATION = (
    Column("temperature", "temperature", 1, 2),
    Column("epoch", "epoch", 1, 1),
    Column("accuracy", "accuracy, %", 100, 1),
    Column("nll_scaled", "log-loss scaled", 1, 3),
)


def validation():
    """Test accuracy and scaled log-loss where each kind of validation label stops and scales."""
    rows = [
        [name, *(cell(points["last"][c.metric], c) if c.metric in points["last"] else NONE
                 for c in VALIDATION)]
        for methods in settings_of("validation").values()
        for name, points in methods.items()
    ]  # fmt: skip
    header = ["method, validation labels", *(c.header for c in VALIDATION)]
    return csv_table("Stopped and scaled by validation labels of three kinds", header, rows)


PRIORITIZED = (
    Column("accuracy", "accuracy, %", 100, 1, 1),
    Column("nll", "log-loss", 1, 3, -1),
    Column("nll_scaled", "log-loss scaled", 1, 3, -1),
    Column("ece", "ECE, %", 100, 1, -1),
    Column("temperature", "temperature", 1, 2),
    Column("seconds", "CPU s", 1, 2),
)


def prioritization():
    tables = [
        comparison(f"{_title(setting)}, after {n} steps", methods, n, PRIORITIZED, "random")
        for setting, methods in settings_of("prio").items()
        for n in ("225", "450")
    ]
    return "\n".join(tables) or NOTHING


def shifted():
    settings = settings_of("shift")
    tables = [
        values_table(title, settings, metric, Column(metric, "", factor, digits))
        for title, metric, factor, digits in (
            ("Accuracy, %", "accuracy", 100, 1),
            ("ECE as trained and with a temperature from clean images or the same shift, %",
             "ECE", 100, 1),
            ("Divergence from human labels, CIFAR-10H", "human_kl", 1, 3),
        )
    ]  # fmt: skip
    return "\n".join(tables)


def stated_settings():
    """Return the settings: what the docstring of this package says of them."""
    text = inspect.getdoc(benchmarks.papers)
    return text.partition("-\n")[2].partition("\n\nComputing time")[0] + "\n"


def stated_by(module):
    """Return what the docstring of a study says of its settings."""
    return lambda: inspect.getdoc(module).partition("\n\n")[2] + "\n"


def runs():
    """Return the run times and versions, a line a study."""
    rows, machine = [], {}
    for name in SUMMARIES:
        if name in available():
            content = load(name)
            machine = content["machine"]
            rows.append([name, content["runs"], f"{content['cpu_seconds'] / 60:.1f}"])
    versions = ", ".join(f"{name} {value}" for name, value in machine.items())
    table = csv_table("", ["study", "runs", "minutes of one core"], rows)
    return f"One thread, no accelerator: {versions}.\n\n{table}"


FILES = {
    "overview.inc": overview,
    "overview.svg": overview_plot,
    "counts.inc": counts_table,
    "in_numbers.inc": in_numbers,
    "settings.inc": stated_settings,
    "runs.inc": runs,
    **{f"{part}_claims.inc": lambda claims=claims: claims_table(claims)
       for part, (_, claims) in PARTS.items()},
    **{f"{part}.svg": lambda claims=claims: plot(claims)
       for part, (_, claims) in PARTS.items()},
    **{f"{study}.inc": lambda study=study: comparisons(study)
       for study in ("decay20", "decay100", "rmd20", "rmd100", "rmd_images", "sources",
                     "sensitivity", "gra_texts", "prio_losses", "pruning")},
    "gra_images.inc": lambda: comparisons("gra_images", (*COLUMNS, *CALIBRATION)),
    "human.inc": human,
    "validation.inc": validation,
    "prio.inc": prioritization,
    "gra_toy.inc": values(
        "gra_toy", "Correlation of the weights with the true error", "correlation",
        Column("", "", 1, 3),
    ),
    "depth.inc": values("depth", "Means over runs", "value", Column("", "", 1, 3)),
    "shift.inc": shifted,
    **{f"{name}_settings.inc": stated_by(module)
       for name, module in (("prio", prio), ("depth", depth), ("gra_toy", toy),
                            ("pruning", pruning), ("shift", shift))},
}  # fmt: skip


def render():
    """Return {name of the file: text} of everything that the pages include."""
    return {name: make() for name, make in FILES.items()}


def write():
    FOLDER.mkdir(exist_ok=True)
    files = render()
    for old in [*FOLDER.glob("*.inc"), *FOLDER.glob("*.svg")]:
        old.unlink()
    for name, text in files.items():
        (FOLDER / name).write_text(text)
