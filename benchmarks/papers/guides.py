"""[RMD]: does a better guide matter? A pre-trained one, rotations, one of the same classes.

Three networks give features of the 10 000 test images of CIFAR-10. EfficientNet-Lite0 learned
ImageNet and is used as it is, as [RMD] asks for (images enlarged to 160 x 160 pixels). A small
residual network learned, without labels, by how many quarter turns other images were turned. A
ResNet-20 learned the ten classes from other images. All have 64 features: of the 1280 of
EfficientNet-Lite, these are the principal components of all images, and rows say where all 1280
are taken. All are scored alike, by Gaussians with shrinkage "auto": each sample without itself, or
on a half that the Gaussians have not seen. Errors are those of a stronger network that was not
trained here. Flipped labels are those of the other studies of images.
"""

from __future__ import annotations

from functools import cache, partial

import numpy as np
from sklearn.decomposition import PCA
from sklearn.metrics import roc_auc_score

from skcalib.datasets import flip_labels
from skcalib.difficulty import RelativeMahalanobisScorer

from . import guided as students
from . import pretrained
from .claims import DIRECTION, METRICS, about
from .corruptions import corrupt_images
from .figures import KINDS, LEVELS, errors_by, errors_table
from .images import Cifar, cifar_task, human_proba, pictures
from .needs import IMAGES as IMAGE_FILES
from .needs import STRONG
from .printed import value as printed
from .results import Part, Study, described
from .rmd import agreements, find_flips
from .runner import found
from .sources import GUIDES
from .tables import FLIPS, NONE, csv_table, values_tables

LITE, ROTATION, RESNET = GUIDES
WHOLE = f"{LITE}, 1280 features"
N_COMPONENTS = 64  # as many as the other guides have
SCORES = {"RMD": True, "Mahalanobis": False}
N_FITTED, N_CORRUPTED, N_HARDEST = 6000, 40, 100
NOISY = ("U20", "I20")

# --- runs ----------------------------------------------------------------------------------------


@cache
def guided(folder, out):
    """Return the images with the features of all guides."""
    cifar = Cifar(folder, out)
    cifar.all_pretrained = pretrained.kept(out, "test", pictures(folder, "test")[0])
    cifar.components = PCA(N_COMPONENTS, random_state=0).fit(cifar.all_pretrained)
    cifar.pretrained = cifar.components.transform(cifar.all_pretrained)
    return cifar


def features_of(cifar):
    features = {name: getattr(cifar, attribute) for name, attribute in GUIDES.items()}
    return features | {WHOLE: cifar.all_pretrained}


def human(options, records):
    """Spearman of difficulty with the entropy of human labels, each image scored without itself.

    Standard errors by bootstrap, of differences from the same samples.
    """
    compute = partial(human_agreement, options.data, options.out)
    records.get({"setting": "CIFAR-10H"}, compute)


def human_agreement(folder, out):
    cifar = guided(folder, out)
    difficulties = {
        f"{kind}, {name}": RelativeMahalanobisScorer(
            relative=relative, shrinkage="auto"
        ).fit_difficulty(X, cifar.labels)
        for name, X in features_of(cifar).items()
        for kind, relative in SCORES.items()
    }
    return agreement_of(difficulties, cifar.labels, folder, GUIDES)


def agreement_of(difficulties, labels, folder, names):
    """Return how difficulties agree with people, and differences between them.

    `names` are those of the guides: a pre-trained one, one of rotations, one of the classes.
    """
    rows, resampled = agreements(difficulties, folder)
    lite, rotation, classes = names
    pairs = [(f"RMD, {name}", f"Mahalanobis, {name}") for name in names]
    pairs += [(f"RMD, {classes}", f"RMD, {lite}")]
    pairs += [(f"RMD, {lite}", f"RMD, {other}") for other in (rotation, WHOLE)]
    gains = {
        f"{a} minus {b}": [rows[a][0] - rows[b][0], (resampled[a] - resampled[b]).std(ddof=1)]
        for a, b in pairs
    }
    # Images whose label is not the class that most people choose.
    disputed = human_proba(folder).argmax(axis=1) != labels
    found_wrong = {
        name: float(disputed[np.argsort(-values, kind="stable")[:N_HARDEST]].mean())
        for name, values in difficulties.items()
    } | {"all images": float(disputed.mean())}
    parts = (
        found("CIFAR-10H", "Spearman", rows),
        found("differences", "gain", gains),
        found("disputed", "fraction", found_wrong),
    )
    return {"found": {name: of for part in parts for name, of in part["found"].items()}}


def human_table(settings):
    agree, disputed = settings.get("CIFAR-10H", {}), settings.get("disputed", {})
    rows = [
        [
            name,
            "{:.3f} ± {:.3f}".format(*agree[name]["last"]["Spearman"]) if name in agree else NONE,
            f"{100 * points['last']['fraction'][0]:.1f}",
        ]
        for name, points in disputed.items()
    ]
    header = ["difficulty", "Spearman", f"hardest {N_HARDEST}: most people say another class, %"]
    return csv_table("CIFAR-10H, ten thousand images", header, rows)


def groups(options, records):
    """Errors of a network by the difficulty of a guide, on the half that it was not fitted on."""
    for seed in options.seeds:
        records.get({"setting": "images", "seed": seed}, partial(by_groups, options, seed))


def by_groups(options, seed):
    cifar = guided(options.data, options.out)
    with np.load(options.data / STRONG) as data:
        wrong = data["proba"].argmax(axis=1) != cifar.labels
    fitted = np.random.default_rng(seed).permutation(len(wrong)) < len(wrong) // 2
    y, methods = cifar.labels, {}
    for name, X in features_of(cifar).items():
        for kind, relative in SCORES.items():
            scorer = RelativeMahalanobisScorer(relative=relative, shrinkage="auto")
            difficulty = scorer.fit(X[fitted], y[fitted]).difficulty(X[~fitted], y[~fitted])
            values = errors_by(difficulty, wrong[~fitted])
            values["errors_auroc"] = float(roc_auc_score(wrong[~fitted], difficulty))
            methods[f"{kind}, {name}"] = {"last": values}
    return {"found": {"images": methods}}


def flips(options, records):
    """How well each guide finds flipped labels among the 4000 images that students learn."""
    cifar = guided(options.data, options.out)
    names = [f"{kind} by {name}, left out" for name in GUIDES for kind in SCORES]
    for noise in options.noise or NOISY:
        find_flips(records, partial(cifar_task, cifar, noise), noise, options.seeds, names)


def severity(options, records):
    """Mean RMD by severity, in standard deviations of it on the clean images; EfficientNet-Lite.

    As above for rotation: Gaussians of 6000 clean images, and 40 others a seed that are corrupted
    at their own size and then enlarged. Flipped labels: of all images that are left.
    """
    for seed in options.seeds:
        records.get({"setting": "severity", "seed": seed}, partial(risen, options, seed))


def risen(options, seed):
    cifar, images = guided(options.data, options.out), pictures(options.data, "test")[0]
    y, X = cifar.labels, cifar.pretrained
    fitted, left = np.split(np.random.default_rng(seed).permutation(len(y)), [N_FITTED])
    scorer = RelativeMahalanobisScorer(shrinkage="auto").fit(X[fitted], y[fitted])
    judged = left[:N_CORRUPTED]
    clean = scorer.difficulty(X[left], y[left])
    scores = {}
    for kind in KINDS:
        scores[kind] = [clean[:N_CORRUPTED]]
        for k in LEVELS[1:]:
            worse = corrupt_images(images[judged], kind, severity=k, random_state=seed)
            features = pretrained.kept(options.out, f"{kind}_{k}_seed{seed}", worse)
            features = cifar.components.transform(features)
            scores[kind].append(scorer.difficulty(features, y[judged]))
    flipped = (flip_labels(y[left], fraction=k / 5, random_state=seed)[0] for k in LEVELS)
    scores["labels"] = [scorer.difficulty(X[left], labels) for labels in flipped]
    rows = {}
    for kind, levels in scores.items():
        means = [(values.mean() - levels[0].mean()) / clean.std() for values in levels]
        steps = {f"severity {k}": float(means[k]) for k in LEVELS[1:]}
        steps["smallest step"] = float(np.min(np.diff(means)))
        rows |= found(kind, "rise", steps)["found"]
    return {"found": rows}


# --- claims --------------------------------------------------------------------------------------


def agreement_claims(part, names):
    claim = about(part, metric="gain", settings="differences")
    lite, rotation, classes = names
    return (
        *(claim(f"By {name}, RMD agrees with human doubt more than the Mahalanobis distance.",
                method=f"RMD, {name} minus Mahalanobis, {name}") for name in names),
        claim("A guide that learned the classes agrees with human doubt more than a pre-trained "
              "one.", method=f"RMD, {classes} minus RMD, {lite}"),
        claim("A pre-trained guide agrees with human doubt more than rotation.",
              method=f"RMD, {lite} minus RMD, {rotation}"),
        claim("64 components of a pre-trained guide agree with human doubt more than all "
              "features.", method=f"RMD, {lite} minus RMD, {WHOLE}"),
    )  # fmt: skip


_groups = about("guides_groups", settings="images", metric="errors_auroc")
_flips = about("guides_flips", metric=FLIPS, settings=[f"flips, {noise}" for noise in NOISY])
_risen = about("guides_severity", metric="rise", settings=(*KINDS, "labels"), paper=DIRECTION)
CLAIMS = (
    *agreement_claims("guides_human", GUIDES),
    _groups("By a pre-trained guide, errors get rarer from tenth to tenth of RMD (Fig. 2; "
            "Spearman).", "trend", method=f"RMD, {LITE}", better=-1, paper=DIRECTION),
    _groups("By a pre-trained guide, the hardest hundredth by RMD has more errors than that by "
            "Mahalanobis (Fig. 6).", "hardest", f"Mahalanobis, {LITE}", method=f"RMD, {LITE}",
            paper=printed("RMD", "Section 3.2", "error rate, about", "hardest")),
    _groups("By a pre-trained guide, RMD tells a network's errors better than Mahalanobis.",
            rivals=f"Mahalanobis, {LITE}", method=f"RMD, {LITE}", paper=DIRECTION),
    _groups("A guide that learned the classes tells errors better than a pre-trained one.",
            rivals=f"RMD, {LITE}", method=f"RMD, {RESNET}"),
    _groups("A pre-trained guide tells errors better than rotation.",
            rivals=f"RMD, {ROTATION}", method=f"RMD, {LITE}"),
    _groups("64 components of a pre-trained guide tell errors better than all its features.",
            rivals=f"RMD, {WHOLE}", method=f"RMD, {LITE}"),
    _flips("By a pre-trained guide, RMD finds flipped labels better than Mahalanobis.",
           rivals=f"Mahalanobis by {LITE}, left out", method=f"RMD by {LITE}, left out"),
    _flips("A guide that learned the classes finds flipped labels better than a pre-trained one.",
           rivals=f"RMD by {LITE}, left out", method=f"RMD by {RESNET}, left out"),
    _flips("A pre-trained guide finds flipped labels better than rotation.",
           rivals=f"RMD by {ROTATION}, left out", method=f"RMD by {LITE}, left out",
           settings="flips, U20"),  # the other noise is made from the features of rotation
    _risen("By a pre-trained guide, RMD rises with corruption and with label noise, from none to "
           "the worst (Fig. 1b).", method="severity 5"),
    _risen("By a pre-trained guide, it rises with every step of them.", method="smallest step"),
    *students.CLAIMS,
)  # fmt: skip

FILES = (*IMAGE_FILES, STRONG)
_part = partial(Part, files=FILES, packages=(pretrained.PACKAGE,))
STUDY = Study(
    "[RMD], guides",
    {
        "guides_human": _part(human, human_table),
        "guides_groups": _part(groups, errors_table),
        "guides_flips": _part(flips),
        "guides_severity": _part(
            severity, partial(values_tables, columns=[METRICS["rise"]]),
            settings=described(severity.__doc__),
        ),
        **students.parts(guided, files=FILES, packages=(pretrained.PACKAGE,)),
    },
    CLAIMS,
    described(__doc__),
)  # fmt: skip
