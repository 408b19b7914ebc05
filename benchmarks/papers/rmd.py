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
PARTS = ("rmd20", "sensitivity", "sources", "human", "validation", "rmd100")
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


# What the main claims are about: on all seeds, the others on six.
MAIN = (
    "cross-entropy", "cross-entropy, weight decay", "entropy regularization", "difficulty-aware",
    "difficulty-aware, no decay", "difficulty-aware, shuffled", "difficulty-aware, inverted",
    "label issues: soft",
)  # fmt: skip
NO_DECAY = Method("difficulty-aware, no decay", aware(), AWARE)


def with_chosen_decay(records, make, methods, settings, noise, seeds):
    """Compare cross-entropy with and without decay, and all else at the decay that it chose."""
    strongest = (
        (*DECAY.candidates, {"weight_decay": 1.0}) if noise != "clean" else DECAY.candidates
    )
    decay = replace(DECAY, candidates=strongest)
    compare(records, make, (CE, decay), settings, noise, seeds)
    weight_decay = chosen(records, DECAY.name, noise)["last"]["weight_decay"]
    others = [m for m in methods if m.name not in (CE.name, DECAY.name)]
    others = [with_decay(method, weight_decay) for method in others] + [NO_DECAY]
    main = tuple(method for method in others if method.name in MAIN)
    compare(records, make, main, settings, noise, seeds)
    rest = tuple(method for method in others if method.name not in MAIN)
    compare(records, make, rest, settings, noise, seeds[:6])


def study_rmd20(clinc, options):
    records = Records(options.out / "rmd20.jsonl")
    for noise in options.noise or NOISES:
        make = partial(text_task, clinc, 20, noise)
        with_chosen_decay(records, make, RMD, SETTINGS[20], noise, range(options.seeds))


def study_rmd100(clinc, options):
    records = Records(options.out / "rmd100.jsonl")
    methods = [m for m in RMD if m.name in (*MAIN, "drop the hardest", "true labels")]
    for noise in options.noise or ("clean", "U20"):
        make = partial(text_task, clinc, 100, noise)
        seeds = range(min(options.seeds, 6))
        with_chosen_decay(records, make, methods, SETTINGS[100], noise, seeds)


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
