"""[RMD]: losses, uses of difficulty and its sources on CLINC150 and on CIFAR-10.

Students learn images of the test split: the network whose features score their difficulty has seen
none of them, and people have labeled all of them (CIFAR-10H).
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
from scipy.stats import rankdata, spearmanr
from sklearn.metrics import roc_auc_score

from skcalib.difficulty import KMeansPrototypeScorer
from skcalib.losses import functional
from skcalib.metrics import predictive_entropy

from . import figures, minilm
from .claims import DIRECTION, OWN, about, untested
from .images import IMAGES, Cifar, cifar_task, human_proba
from .measures import proba_of
from .methods import (
    CE,
    DECAY,
    ENTROPY,
    FOCAL,
    IMAGE_GRIDS,
    LS,
    Method,
    aware,
    by_loss,
    cleaned,
    dropping,
    grid,
    oracle,
    penalized_logits,
    ranked,
    with_candidates,
    with_decay,
)
from .needs import IMAGES as IMAGE_FILES
from .needs import RESNET20, STRONG, TEXTS
from .printed import Figure, Printed, cell, tables
from .printed import columns as printed
from .results import Part, Study, described
from .runner import chosen, compare, found
from .sources import DIFFICULTIES
from .students import Settings
from .tables import FLIPS, csv_table
from .tasks import Scored, noisy_labels
from .texts import Clinc, text_task

# --- settings ------------------------------------------------------------------------------------

NOISY = ("U20", "I20", "U40")
NOISES = ("clean", *NOISY)
IMAGE_NOISY = ("U20", "I20")
IMAGE_NOISES = ("clean", *IMAGE_NOISY)
SETTINGS = {20: Settings(n_epochs=20), 100: Settings(n_epochs=12)}
# Sources whose weights train students; all of them are asked to find the flips.
TRAINED = (
    "RMD", "Mahalanobis", "k-means", "loss, out-of-fold", "own loss, in-sample",
    "own loss, out-of-fold", "oracle",
)  # fmt: skip
N_BOOTSTRAPS = 200

# --- methods -------------------------------------------------------------------------------------


def pairs(*found):
    return tuple({"temperature": t, "alpha": a} for t, a in found)


CANDIDATES = pairs((0.1, 0.3), (0.1, 1.0), (0.3, 0.3), (0.3, 0.6))
# From the smallest alpha of the paper's Table 5 on. T = .3 and .1 are ours, for ranks.
FROM_SMALL = pairs((0.3, 0.05), (0.3, 0.15), (0.3, 0.4), (0.1, 1.0))
MINMAX = pairs((0.7, 0.15), (0.7, 0.3), (0.3, 0.3), (0.3, 1.0))
DROPPED = grid(fraction=(0.05, 0.1, 0.2, 0.4))
AWARE = Method("difficulty-aware", aware(), CANDIDATES)
SHUFFLED = Method("difficulty-aware, shuffled", aware(control="shuffled"), CANDIDATES)
INVERTED = Method("difficulty-aware, inverted", aware(control="inverted"), CANDIDATES)
SOFT = Method("label issues: soft", cleaned("soft"))
DROP = Method("drop the hardest", dropping(), DROPPED)
OTHER_LOSSES = (
    LS,
    FOCAL,
    Method("L1 of logits", penalized_logits, grid(alpha=(1e-4, 3e-4, 1e-3, 3e-3))),
    ENTROPY,
    Method("Poly-1", by_loss(functional.poly_loss), grid(epsilon=(-0.5, 1.0, 2.0, 4.0))),
    Method("correctness ranking", ranked, grid(weight=(0.3, 0.5, 1.0, 3.0))),
)
METHODS = (
    CE,
    DECAY,
    *OTHER_LOSSES,
    AWARE,
    Method("difficulty-aware, min-max", aware(scale="minmax"), MINMAX),
    SHUFFLED,
    INVERTED,
    DROP,
    Method("drop at random", dropping("random"), DROPPED),
    Method("label issues: drop", cleaned("drop")),
    Method("label issues: relabel", cleaned("relabel")),
    SOFT,
    Method("label issues: weight", cleaned("weight")),
    Method("true labels", oracle),
)
# Methods of the studies with weight decay, by samples a class and noise.
DECAYED = {
    20: {
        "clean": (ENTROPY, AWARE, SHUFFLED, SOFT, INVERTED),
        "U20": (ENTROPY, AWARE, SHUFFLED, SOFT),
        "I20": (AWARE, SOFT),
    },
    100: {"clean": (AWARE,), "U20": (AWARE, SHUFFLED)},
}

IMAGE_CANDIDATES = pairs((0.1, 1.0), (0.3, 0.6), (0.3, 1.2), (0.3, 2.4))
ROTATION = Method("difficulty-aware by rotation", aware("RMD by rotation"), IMAGE_CANDIDATES)
_AT = METHODS.index(AWARE) + 1
IMAGE_METHODS = with_candidates(
    [
        replace(m, candidates=IMAGE_CANDIDATES) if m.name.startswith("difficulty") else m
        for m in (*METHODS[:_AT], ROTATION, *METHODS[_AT:])
    ],
    IMAGE_GRIDS,
    (
        "difficulty-aware, min-max", "drop at random", "label issues: drop",
        "label issues: relabel", "label issues: weight",
    ),
)  # fmt: skip
ASKED = (
    "RMD", "RMD by rotation", "RMD without label", "Mahalanobis", "k-means", "loss, out-of-fold",
)  # fmt: skip

# --- runs ----------------------------------------------------------------------------------------


def on_texts(n_each, methods, noises, options, records):
    clinc = Clinc(options.data, options.out)
    for noise in options.noise or noises:
        make = partial(text_task, clinc, n_each, noise)
        compare(records, make, methods, SETTINGS[n_each], noise, options.seeds)


def with_chosen_decay(n_each, options, records):
    """Cross-entropy with and without decay, and methods at the decay that it chose."""
    clinc, settings = Clinc(options.data, options.out), SETTINGS[n_each]
    for noise in options.noise or DECAYED[n_each]:
        how = (settings, noise, options.seeds)
        make = partial(text_task, clinc, n_each, noise)
        more = () if noise == "clean" else grid(weight_decay=(1.0,))
        decay = replace(DECAY, candidates=(*DECAY.candidates, *more))
        compare(records, make, (CE, decay), *how)
        weight_decay = chosen(records, DECAY.name, noise)["last"]["weight_decay"]
        methods = [
            replace(m, candidates=FROM_SMALL) if m.candidates == CANDIDATES else m
            for m in DECAYED[n_each][noise]
        ]
        without = Method("difficulty-aware, no decay", aware(), FROM_SMALL)
        compare(records, make, [*(with_decay(m, weight_decay) for m in methods), without], *how)


def sensitivity(options, records):
    """Table 5: over alpha with T = .3, and over T with alpha = .4."""
    alphas = (0.1, 0.2, 0.4, 0.8)
    by_alpha = grid(temperature=(0.3,), alpha=alphas)
    by_temperature = grid(temperature=(0.05, 0.1, 1.0), alpha=(0.4,))
    methods = (
        replace(ENTROPY, candidates=grid(alpha=alphas)),
        replace(SHUFFLED, candidates=by_alpha),
        replace(AWARE, candidates=(*by_alpha, *by_temperature)),
    )
    make = partial(text_task, Clinc(options.data, options.out), 20, "U20")
    how = (SETTINGS[20], "U20", options.seeds)
    compare(records, make, methods, *how, every=True, stops=False)


def with_ranges(settings):
    """Besides, per seed the largest minus the smallest ECE over alpha, at T = .3."""
    ranges = {}
    for setting, methods in settings.items():
        groups = {}
        for name, points in methods.items():
            if points["last"]["options"].get("temperature", 0.3) == 0.3:
                groups.setdefault(name.split(" {")[0], []).append(points["last"]["ece"])
        ranges[f"ranges, {setting}"] = {
            method: {"last": {"options": {}, "range of ece": np.ptp(values, axis=0).tolist()}}
            for method, values in groups.items()
        }
    return settings | ranges


def sources(options, records):
    """Table 8: which difficulty, in the loss and for dropping, and how well it finds flips."""
    clinc = Clinc(options.data, options.out)
    trained = [
        method
        for name in TRAINED
        for method in (
            Method(f"difficulty-aware by {name}", aware(name), CANDIDATES[::2]),
            Method(f"drop by {name}", dropping(name), grid(fraction=(0.2,))),
        )
    ]
    for noise in options.noise or ("U20", "I20"):
        make = partial(text_task, clinc, 20, noise)
        if noise == "U20":  # of the other noise, only how well the scores find it
            compare(records, make, trained, SETTINGS[20], noise, options.seeds, stops=False)
        names = [name for name in DIFFICULTIES if " by " not in name]  # of images alone
        find_flips(records, make, noise, options.seeds, names)


def find_flips(records, make, noise, seeds, names):
    """Record how well difficulties find the flipped labels."""

    def compute(seed):
        task = make(seed)
        return flips_found(task, noise, {name: task.difficulty(name) for name in names})

    for seed in seeds:
        records.get({"setting": noise, "method": FLIPS, "seed": seed}, partial(compute, seed))


def flips_found(task, noise, scores):
    wrong = task.given != task.true
    auroc = {name: roc_auc_score(wrong, values) for name, values in scores.items()}
    return found(f"flips, {noise}", FLIPS, auroc)


def images(options, records):
    cifar = Cifar(options.data, options.out)
    for noise in options.noise or IMAGE_NOISES:
        methods = [m for m in IMAGE_METHODS if noise != "clean" or m.name != "true labels"]
        make = partial(cifar_task, cifar, noise)
        compare(records, make, methods, IMAGES, noise, options.seeds)
        if noise != "clean":
            find_flips(records, make, noise, options.seeds, ASKED)


def human(options, records):
    """Rank correlation of difficulty and the entropy of human labels; no training."""
    records.get({"setting": "CIFAR-10H"}, partial(human_agreement, options.data))


def human_agreement(folder):
    """Spearman's correlation of each difficulty with human entropy, and that of RMD minus it.

    With standard errors from the same bootstrap samples for all.
    """
    rows, resampled = agreements(_difficulties(folder), folder)
    gains = {
        name: [rows["RMD"][0] - rows[name][0], (resampled["RMD"] - other).std(ddof=1)]
        for name, other in resampled.items()
        if name != "RMD"
    }
    both = (found("CIFAR-10H", "Spearman", rows), found("RMD minus", "gain", gains))
    return {"found": both[0]["found"] | both[1]["found"]}


def agreements(difficulties, folder):
    """Return {name: (Spearman with human entropy, standard error)}, and bootstraps of each."""
    human = predictive_entropy(human_proba(folder))
    rng = np.random.default_rng(0)
    samples = [rng.integers(len(human), size=len(human)) for _ in range(N_BOOTSTRAPS)]
    rows, resampled = {}, {}
    for name, values in difficulties.items():
        # Ranks are taken once: re-ranking every bootstrap sample changes the third digit.
        a, b = rankdata(values), rankdata(human)
        resampled[name] = np.array([np.corrcoef(a[r], b[r])[0, 1] for r in samples])
        rows[name] = [spearmanr(values, human)[0], resampled[name].std(ddof=1)]
    return rows, resampled


def _difficulties(folder):
    with np.load(folder / "cifar10_resnet20_features.npz") as data:
        X, y = data["features"].astype(np.float64), data["y"].astype(int)
    with np.load(folder / "cifar10_resnet20_logits.npz") as data:
        proba = proba_of(data["logits"])
    with np.load(folder / "cifar10_test_pred_probs.npz") as data:
        strong = data["proba"].astype(np.float64)
    every, task = np.arange(len(y)), Scored(given=y, true=y, features=X, seed=0)
    values = {n: task.difficulty(n) for n in ("RMD", "RMD without label", "Mahalanobis")}
    for n in (10, 100):
        scorer = KMeansPrototypeScorer(n_clusters=n, n_init=1, random_state=0)
        values[f"k-means, {n} centroids"] = scorer.fit(X).difficulty(X)
    values["loss of the network"] = -np.log(np.maximum(proba[every, y], 1e-12))
    values["entropy of the network"] = predictive_entropy(proba)
    values["out-of-fold loss of a strong model"] = -np.log(np.maximum(strong[every, y], 1e-12))
    return values


def embedded(options, records):
    """Embeddings of MiniLM computed here, beside the stored ones; queries of the validation split.

    The stored numbers have half precision. Distances are in-sample, as in the paper, once with the
    true labels and once with 20 percent flipped uniformly, by the stored embeddings and by ours.
    """
    records.get({"setting": "queries"}, partial(embedded_again, options))


def embedded_again(options):
    clinc = Clinc(options.data, options.out)
    stored, y = clinc.features["val"], clinc.labels["val"]
    ours = minilm.embed(clinc.texts["val"])
    half = ours.astype(np.float16).astype(np.float32)
    values = {
        "largest difference of a number": np.abs(ours - stored).max(),
        "equal numbers in half precision, fraction": (half == stored).mean(),
    }
    scored = {
        name: [
            Scored(given=given, true=y, features=X.astype(np.float64), seed=0)
            for given in (y, noisy_labels(y, "U20", 0))
        ]
        for name, X in {"ours": ours, "stored": stored}.items()
    }
    values["Spearman of RMD, ours with stored"] = spearmanr(
        *(clean.difficulty("RMD") for clean, _ in scored.values())
    )[0]
    for name, (_, flipped) in scored.items():
        wrong = flipped.given != flipped.true
        auroc = roc_auc_score(wrong, flipped.difficulty("RMD"))
        values[f"AUROC of flipped labels, {name}"] = auroc
    return found("queries", "value", {name: float(v) for name, v in values.items()})


def embedded_table(settings):
    rows = [
        [name, f"{points['last']['value'][0]:.4g}"]
        for name, points in settings.get("queries", {}).items()
    ]
    return csv_table("Queries, embedded here and stored", ["", "found"], rows)


def human_table(settings):
    rows = [
        [name, "{:.3f} ± {:.3f}".format(*points["last"]["Spearman"])]
        for name, points in settings.get("CIFAR-10H", {}).items()
    ]
    return csv_table("CIFAR-10H, ten thousand images", ["difficulty", "Spearman"], rows)


# --- claims --------------------------------------------------------------------------------------

LOSSES = tuple(method.name for method in OTHER_LOSSES)
# Our losses by the names of the paper's columns.
COLUMNS = {
    LS.name: "LS", FOCAL.name: "FL", "L1 of logits": "L1 norm", ENTROPY.name: "ER",
    "Poly-1": "Poly",
}  # fmt: skip
TABLES = {
    "accuracy": ("Table 2", "accuracy"), "ece": ("Table 2", "ECE"),
    "errors_auroc": ("Table 3", "AUROC, MSP"), "ood_auroc": ("Table 4", "AUROC, entropy"),
    "ood_fpr": ("Table 4", "FPR95, entropy"),
}  # fmt: skip


def over(metric, *rivals):
    """Return what the paper prints of the method and these losses, cross-entropy by default."""
    if metric not in TABLES:
        return DIRECTION
    table, name = TABLES[metric]
    if rivals == ("correctness ranking",) and table == "Table 2":
        return printed("RMD", "Table 7", name, "proposed", "CRL")
    known = COLUMNS | {"correctness ranking": "CRL"}
    names = [known[rival] for rival in rivals] or ["CE"]
    there = [column for column in names if column in tables()["RMD"][table]["columns"]]
    return printed("RMD", table, name, "proposed", there)


def ranges():
    """Return how far the ECE of Table 5 varies over alpha, from .05 on."""
    of = {
        name: tables()["RMD"]["Table 5"]["rows"][f"{name}, ECE"][1:] for name in ("ER", "proposed")
    }
    widths = {name: round(max(values) - min(values), 3) for name, values in of.items()}
    return Printed("Table 5, range", (Figure("ImageNet", widths["ER"], widths["proposed"]),), "%")


def over_losses(metric, unit):
    """Return the best of three losses of Table 10 and the method with CLIP, of Table 6."""
    losses = tables()["RMD"]["Table 10"]["rows"][f"loss, {metric}"]
    best = max(losses) if metric == "accuracy" else min(losses)
    clip = cell("RMD", "Table 6", f"ImageNet, {metric}", "CLIP-ViT-B")
    return Printed("Table 6 against Table 10", (Figure("ImageNet", best, clip),), unit)


OVER_CROSS_ENTROPY = (
    ("Difficulty-aware regularization raises accuracy over cross-entropy.", "accuracy"),
    ("Difficulty-aware regularization lowers the calibration error.", "ece"),
    ("It lowers the log-loss.", "nll"),
    ("It ranks its errors better: selective risk.", "aurc"),
    ("Its confidence tells errors from correct predictions better.", "errors_auroc"),
    ("It detects out-of-distribution samples better.", "ood_auroc"),
    ("It takes fewer out-of-distribution samples for others.", "ood_fpr"),
)
# What the paper claims; of the log-loss it says nothing.
STATED = {metric: over(metric) for _, metric in OVER_CROSS_ENTROPY} | {"nll": OWN}
OVER_LOSSES = (
    ("It is more accurate than the six other regularizers.", "accuracy", LOSSES),
    ("It is better calibrated than the six other regularizers.", "ece", LOSSES),
    ("It has less selective risk than the six other regularizers.", "aurc", LOSSES),
    *((f"It is more accurate than {loss}.", "accuracy", (loss,)) for loss in LOSSES),
    *((f"It is better calibrated than {loss}.", "ece", (loss,)) for loss in LOSSES),
    *((f"Its confidence tells errors better than that of {loss}.", "errors_auroc", (loss,))
      for loss in LOSSES if loss != "Poly-1"),
)  # fmt: skip


# How much of it is left behind a temperature and early stopping.
AFTERWARDS = (
    ("After temperature scaling it is still better calibrated.", "ece_scaled", "last"),
    ("After temperature scaling its log-loss is still lower.", "nll_scaled", "last"),
    ("With early stopping it is still more accurate.", "accuracy", "stop"),
    ("With early stopping and temperature scaling its log-loss is still lower.", "nll_scaled",
     "stop"),
)  # fmt: skip
DISTANCES = ("Mahalanobis", "k-means")
OWN_LOSSES = ("own loss, in-sample", "own loss, out-of-fold")
FLIPPED = ("flips, U20", "flips, I20")

BY_SOURCE = (
    *(("difficulty-aware", "source of weights", others, rivals, name, metric, paper)
      for others, rivals, papers in (
          ("Mahalanobis and k-means", DISTANCES,
           [printed("RMD", "Table 8", name, "RMD", ("MD", "k-means"))
            for name in ("accuracy", "ECE")]),
          ("losses", ("loss, out-of-fold", *OWN_LOSSES),
           [over_losses("accuracy", "points"), over_losses("ECE", "%")]),
      )
      for name, metric, paper in zip(("accuracy", "ECE"), ("accuracy", "ece"), papers)),
    *(("drop", "guide to dropping", others, rivals, "accuracy", "accuracy", OWN)
      for others, rivals in (("Mahalanobis and k-means", DISTANCES),
                             ("losses", ("loss, out-of-fold", *OWN_LOSSES)))),
)  # fmt: skip

_decayed = about("decay20", AWARE.name, rivals=DECAY.name, settings=IMAGE_NOISES)
_decayed_all = about("decay100", AWARE.name, rivals=DECAY.name, settings=("clean", "U20"))
few = about("rmd20", AWARE.name, rivals=CE.name, settings=NOISES)
many = about("rmd100", AWARE.name, rivals=CE.name, settings=NOISES)
_sensitive = about("sensitivity", AWARE.name, "range of ece", settings="ranges, U20")
_source = about("sources", metric="accuracy", settings="U20")
_finds = about("sources", "RMD", FLIPS, settings=FLIPPED)
_human = about("human", metric="gain", settings="RMD minus")
CLAIMS = (
    # As the paper trains: weight decay for every method, the one that cross-entropy chose.
    _decayed("With weight decay in both, difficulty-aware regularization is more accurate than "
             "cross-entropy.", "accuracy", paper=STATED["accuracy"], headline="clean"),
    _decayed("With weight decay in both, difficulty-aware regularization has the lower "
             "calibration error.", "ece", paper=STATED["ece"], headline="clean"),
    _decayed("With weight decay in both, its log-loss is lower.", "nll"),
    _decayed("It is lower after temperature scaling, too.", "nll_scaled"),
    _decayed("With weight decay in both, it ranks its errors better: selective risk.", "aurc",
             paper=DIRECTION),
    _decayed("With weight decay in both, its confidence tells errors better.", "errors_auroc",
             paper=STATED["errors_auroc"]),
    _decayed("With weight decay in both, it detects out-of-distribution samples better.",
             "ood_auroc", paper=STATED["ood_auroc"]),
    _decayed("With weight decay in both, it takes fewer out-of-distribution samples for others.",
             "ood_fpr", paper=STATED["ood_fpr"]),
    _decayed("With weight decay in both and early stopping, it is more accurate.", "accuracy",
             point="stop"),
    _decayed("With weight decay, the difficulty matters: shuffled, the log-loss is higher.", "nll",
             SHUFFLED.name, ("clean", "U20")),
    _decayed("With weight decay, it is better calibrated than uniform entropy regularization.",
             "ece", ENTROPY.name, ("clean", "U20"), paper=over("ece", ENTROPY.name)),
    _decayed("With weight decay, it is more accurate than uniform entropy regularization.",
             "accuracy", ENTROPY.name, ("clean", "U20"), paper=over("accuracy", ENTROPY.name)),
    _decayed("Weight decay adds to it: more accurate with both than without decay.", "accuracy",
             "difficulty-aware, no decay"),
    _decayed_all("With all samples and weight decay in both, it is more accurate.", "accuracy",
                 paper=STATED["accuracy"]),
    _decayed_all("With all samples and weight decay in both, it is better calibrated.", "ece",
                 paper=STATED["ece"]),
    _decayed_all("With all samples and weight decay in both, its log-loss is lower.", "nll"),
    *(few(f"Without decay. {text}", metric, paper=STATED[metric])
      for text, metric in OVER_CROSS_ENTROPY),
    *(few(text, metric, losses, paper=over(metric, *losses))
      for text, metric, losses in OVER_LOSSES),
    few("The difficulty matters: shuffled among samples, the weights give less accuracy.",
        "accuracy", SHUFFLED.name),
    few("The difficulty matters for selective risk.", "aurc", SHUFFLED.name),
    few("The sign matters: regularizing the easy samples gives less accuracy.", "accuracy",
        INVERTED.name),
    few("Weights from ranks serve better than min-max weights: log-loss.", "nll",
        "difficulty-aware, min-max"),
    *(few(text, metric, point=point) for text, metric, point in AFTERWARDS),
    many("With all samples, it is still more accurate than cross-entropy.",
         "accuracy", paper=STATED["accuracy"]),
    many("With all samples, its calibration error is still lower.", "ece", paper=STATED["ece"]),
    many("With all samples and early stopping, it is more accurate.", "accuracy", point="stop"),
    many("With all samples, early stopping and temperature scaling its log-loss is lower.",
         "nll_scaled", point="stop"),
    many("With all samples, the difficulty matters: shuffled, it gives less accuracy.",
         "accuracy", SHUFFLED.name),
    many("With all samples, the sign matters: inverted, it gives less accuracy.", "accuracy",
         INVERTED.name),
    _sensitive("It is robust to alpha: its ECE varies less than that of entropy regularization.",
               rivals=ENTROPY.name, paper=ranges()),
    _sensitive("That robustness is due to the difficulty: with shuffled weights the ECE varies "
               "more.", rivals=SHUFFLED.name),
    *(_source(f"RMD is a better {what} than {others}: {name}.", metric, method=f"{use} by RMD",
              rivals=[f"{use} by {rival}" for rival in rivals], paper=paper)
      for use, what, others, rivals, name, metric, paper in BY_SOURCE),
    _finds("RMD finds flipped labels better than Mahalanobis and k-means.", rivals=DISTANCES),
    _finds("RMD finds flipped labels better than losses, in-sample and out-of-fold.",
           rivals=("loss, in-sample", "loss, out-of-fold", *OWN_LOSSES)),
    *(_human(f"RMD agrees with human doubt more than {rival} (CIFAR-10H).", method=rival)
      for rival in ("Mahalanobis", "k-means, 10 centroids", "k-means, 100 centroids",
                    "loss of the network", "out-of-fold loss of a strong model")),
    untested("The gains hold for ImageNet, ResNet-50 and difficulties from CLIP.",
             "no accelerator and no weights were at hand; `--scale full` has the settings",
             printed("RMD", "Table 9", "accuracy", "proposed", "CE")),
    *figures.RMD_CLAIMS,
)  # fmt: skip

HUMAN_FILES = ("cifar10h.npz", RESNET20, "cifar10_resnet20_logits.npz", STRONG)
STUDY = Study(
    "[RMD], texts",
    {
        "decay20": Part(partial(with_chosen_decay, 20), order=METHODS, files=TEXTS),
        "decay100": Part(partial(with_chosen_decay, 100), order=METHODS, files=TEXTS),
        "rmd20": Part(partial(on_texts, 20, METHODS, NOISES), order=METHODS, files=TEXTS),
        "sensitivity": Part(sensitivity, derive=with_ranges, files=TEXTS),
        "sources": Part(sources, files=TEXTS),
        "human": Part(human, human_table, files=HUMAN_FILES),
        "embedded": Part(
            embedded,
            embedded_table,
            settings=described(embedded.__doc__),
            files=TEXTS,
            packages=(minilm.PACKAGE,),
        ),
        "rmd100": Part(partial(on_texts, 100, METHODS, NOISES), order=METHODS, files=TEXTS),
        **figures.RMD_PARTS,
    },
    CLAIMS,
)


def about_soft_labels(claim, headline=""):
    """Return what is claimed of texts and of images alike."""
    return (
        claim("Soft labels of the finder beat cross-entropy: accuracy.", headline=headline),
        claim("They beat cross-entropy with early stopping.", point="stop"),
        claim("They beat the difficulty-aware loss with early stopping.", rivals=AWARE.name,
              point="stop"),
        claim("They do no harm on clean labels: accuracy.", settings="clean", no_loss=True),
        claim("They reach the accuracy of true labels.", rivals="true labels", no_loss=True),
    )  # fmt: skip


_image = about("rmd_images", AWARE.name, rivals=CE.name, settings=IMAGE_NOISES)
_soft = about("rmd_images", SOFT.name, "accuracy", CE.name, IMAGE_NOISY)
_image_finds = about("rmd_images", "RMD", FLIPS, DISTANCES, FLIPPED)

IMAGE_CLAIMS = (
    *(_image(f"Without decay. {text}", metric, paper=STATED[metric],
             headline="clean" * (metric in ("accuracy", "ece")))
      for text, metric in OVER_CROSS_ENTROPY[:-1]),
    _image("Its predictions are closer to human labels.", "human_kl"),
    _image("They are after temperature scaling of both.", "human_kl_scaled"),
    *(_image(text, metric, losses, paper=over(metric, *losses))
      for text, metric, losses in OVER_LOSSES),
    _image("The difficulty matters: shuffled weights give less accuracy.", "accuracy",
           SHUFFLED.name),
    _image("The difficulty matters for selective risk.", "aurc", SHUFFLED.name),
    _image("The difficulty matters for the log-loss.", "nll", SHUFFLED.name),
    _image("The sign matters: regularizing the easy samples gives less accuracy.", "accuracy",
           INVERTED.name),
    _image("Difficulty from features of another task, rotation, raises accuracy.", "accuracy",
           method=ROTATION.name),
    _image("It beats shuffled weights: log-loss.", "nll", SHUFFLED.name, method=ROTATION.name),
    _image("Features of the same classes serve better than those of rotation: accuracy.",
           "accuracy", ROTATION.name),
    *(_image(text, metric, point=point) for text, metric, point in AFTERWARDS),
    _image_finds("RMD finds flipped labels better than Mahalanobis and k-means."),
    _image_finds("RMD finds flipped labels better than the loss out-of-fold.",
                 rivals="loss, out-of-fold"),
    _soft("Dropping the hardest samples beats the difficulty-aware loss: accuracy.",
          rivals=AWARE.name, method=DROP.name),
    *about_soft_labels(_soft),
)  # fmt: skip

HUMAN = ("human_kl", "human_kl_scaled")
IMAGE_STUDY = Study(
    "[RMD], images",
    {"rmd_images": Part(images, kept=HUMAN, order=IMAGE_METHODS, files=IMAGE_FILES)},
    IMAGE_CLAIMS,
)
