"""[RMD]: losses, uses of difficulty and its sources on CLINC150; human entropy on CIFAR-10."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from sklearn.metrics import roc_auc_score

from skcalib.losses import entropy_regularized_loss

from .compare import chosen, compare
from .human import human_agreement
from .methods import (
    AWARE,
    AWARE_FROM_SMALL,
    CE,
    DECAY,
    RMD,
    Method,
    aware,
    by_loss,
    grid,
    sources_of_weights,
    with_decay,
)
from .records import Records
from .sources import DIFFICULTIES
from .students import Settings
from .texts import Clinc, text_task

NOISES = ("clean", "U20", "I20", "U40")
SETTINGS = {20: Settings(n_epochs=20), 100: Settings(n_epochs=12)}
PARTS = (
    "decay20", "decay100", "rmd20", "sensitivity", "sources", "human", "validation", "rmd100",
)  # fmt: skip
SOME = ("entropy regularization", "difficulty-aware", "difficulty-aware, shuffled",
        "label issues: soft")  # fmt: skip
# Methods and seeds of the study with weight decay.
DECAYED = {
    "clean": ((*SOME, "difficulty-aware, inverted"), 12),
    "U20": (SOME, 10),
    "I20": ((SOME[1], SOME[3]), 8),
}
# Sources whose weights train students; all of them are asked to find the flips.
TRAINED = (
    "RMD", "Mahalanobis", "k-means", "loss, out-of-fold", "own loss, in-sample",
    "own loss, out-of-fold", "oracle",
)  # fmt: skip
VALIDATED = ("cross-entropy", "drop the hardest", "label issues: soft")


def run(options):
    clinc = Clinc(options.data, options.out)
    for part in PARTS:
        if options.only in ("", part):
            globals()[f"study_{part}"](clinc, options)


def with_chosen_decay(records, make, names, settings, noise, seeds):
    """Compare cross-entropy with and without decay, and methods at the decay that it chose."""
    more = () if noise == "clean" else grid(weight_decay=(1.0,))
    decay = replace(DECAY, candidates=(*DECAY.candidates, *more))
    compare(records, make, (CE, decay), settings, noise, seeds)
    weight_decay = chosen(records, DECAY.name, noise)["last"]["weight_decay"]
    methods = [
        replace(m, candidates=AWARE_FROM_SMALL) if m.candidates == AWARE else m
        for m in RMD
        if m.name in names
    ]
    without = Method("difficulty-aware, no decay", aware(), AWARE_FROM_SMALL)
    methods = (*(with_decay(method, weight_decay) for method in methods), without)
    compare(records, make, methods, settings, noise, seeds)


def study_decay20(clinc, options):
    """The paper trains everything with weight decay."""
    records = Records(options.out / "decay20.jsonl")
    for noise in options.noise or DECAYED:
        names, n_seeds = DECAYED[noise]
        make = partial(text_task, clinc, 20, noise)
        with_chosen_decay(records, make, names, SETTINGS[20], noise, range(n_seeds))


def study_decay100(clinc, options):
    records = Records(options.out / "decay100.jsonl")
    for noise in options.noise or ("clean", "U20"):
        make = partial(text_task, clinc, 100, noise)
        names = ("difficulty-aware", "difficulty-aware, shuffled")[: 1 + (noise == "U20")]
        with_chosen_decay(records, make, names, SETTINGS[100], noise, range(6))


def study_rmd20(clinc, options):
    _without_decay(clinc, options, 20, options.seeds)


def study_rmd100(clinc, options):
    _without_decay(clinc, options, 100, min(options.seeds, 5))


def _without_decay(clinc, options, n_each, seeds):
    records = Records(options.out / f"rmd{n_each}.jsonl")
    for noise in options.noise or NOISES:
        make = partial(text_task, clinc, n_each, noise)
        compare(records, make, RMD, SETTINGS[n_each], noise, range(seeds))


def study_sensitivity(clinc, options):
    """Table 5: over alpha with T = .3, and over T with alpha = .4."""
    alphas, temperatures = (0.1, 0.2, 0.4, 0.8), (0.05, 0.1, 1.0)
    by_alpha = grid(temperature=(0.3,), alpha=alphas)
    methods = (
        Method("entropy regularization", by_loss(entropy_regularized_loss), grid(alpha=alphas)),
        Method("difficulty-aware, shuffled", aware(control="shuffled"), by_alpha),
        Method(
            "difficulty-aware",
            aware(),
            (*by_alpha, *grid(temperature=temperatures, alpha=(0.4,))),
        ),
    )
    records = Records(options.out / "sensitivity.jsonl")
    for noise in options.noise or ("U20",):
        make = partial(text_task, clinc, 20, noise)
        seeds = range(options.seeds)
        compare(records, make, methods, SETTINGS[20], noise, seeds, every=True, stops=False)


def study_sources(clinc, options):
    """Table 8: which difficulty, in the loss and for dropping, and how well it finds flips."""
    records = Records(options.out / "sources.jsonl")
    for noise in options.noise or ("U20", "I20"):
        make = partial(text_task, clinc, 20, noise)
        if noise == "U20":  # of the other noise, only how well the scores find it
            methods = tuple(sources_of_weights(TRAINED, 0.2))
            compare(records, make, methods, SETTINGS[20], noise, range(options.seeds), stops=False)
        for seed in range(options.seeds):
            key = {"setting": noise, "method": "AUROC of flips", "seed": seed}
            records.get(key, partial(_auroc_of_flips, make, seed))


def _auroc_of_flips(make, seed):
    task = make(seed)
    wrong = task.given != task.true
    return {"auroc": {n: roc_auc_score(wrong, task.difficulty(n)) for n in DIFFICULTIES}}


def study_human(clinc, options):
    """Rank correlation of difficulty and the entropy of human labels; no training."""
    records = Records(options.out / "human.jsonl")
    records.get({"setting": "CIFAR-10H"}, partial(human_agreement, options.data))


def study_validation(clinc, options):
    """Choice, stopping and temperature by noisy, by repaired and by clean validation labels."""
    records = Records(options.out / "validation.jsonl")
    methods = [m for m in RMD if m.name in VALIDATED]
    for noise in options.noise or ("U20",):
        make = partial(text_task, clinc, 20, noise, noisy_validation=True)
        compare(records, make, methods, SETTINGS[20], noise, range(options.seeds), every=True)
