"""[RMD]: students of 20 000 training images, guided by a pre-trained network, and by two others.

Convolutional students learn 20 000 of the first 25 000 training images of CIFAR-10 at 8 x 8 pixels
and are validated on the other 5000, drawn anew for 4 seeds. They are tested on all 10 000 test
images, which people labeled once more. No label is flipped. The students have two convolutions and
64 hidden units: ten epochs of Adam without augmentation, batches of 400, learning rate .01 with a
cosine schedule. All have the weight decay that cross-entropy chose out of .1, .3 and 1, and each
chooses one of the first three candidates of the perceptrons above. "As published" and "shuffled"
mean the same as there.

The guides have seen none of the images that students learn: EfficientNet-Lite learned ImageNet,
and two residual networks of eight layers learned the last 20 000 training images at 16 x 16
pixels, one by how many quarter turns they were turned, the other by their classes. All have 64
features; of EfficientNet-Lite, the principal components of the first 30 000 training images.

Under corruption: means over six kinds of the first 1000 test images, corrupted at their own size
by `benchmarks.papers.corruptions`.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property, partial

import numpy as np
import torch
from sklearn.decomposition import PCA

from skcalib.difficulty import RelativeMahalanobisScorer
from skcalib.losses.functional import cross_entropy_loss
from skcalib.metrics import expected_calibration_error

from . import images as cifar
from . import pretrained
from .claims import DIRECTION, about
from .corruptions import corrupt_images
from .figures import KINDS, LEVELS, errors_table
from .guided import (
    BY_LITE,
    LITE,
    PUBLISHED,
    ROTATION,
    SHUFFLED,
    UNGUIDED,
    at_one_decay,
    claims,
    errors_of,
    guided_by,
)
from .guides import N_COMPONENTS, SCORES, WHOLE, agreement_claims, agreement_of, human_table
from .images import Pictures, as_input, pictures
from .measures import measure, proba_of
from .methods import DECAY, ENTROPY, LS
from .needs import IMAGES as IMAGE_FILES
from .printed import columns as printed
from .results import Part, Study, described
from .runner import SCREENING_SEED
from .sources import OF_TRAINING as GUIDES
from .students import Plan, Settings, Trainer, logits_of, train
from .tables import POINTS, Column, comparisons, values_tables
from .tasks import Task, noisy_labels

SIZE, WIDTH, N_HIDDEN = 8, 24, 64
SETTINGS = Settings(n_epochs=10, lr=0.01, batch_size=400, cosine=True)
GUIDE_SETTINGS = Settings(n_epochs=8, lr=0.01, batch_size=100, cosine=True)
N_TRAIN, N_VAL, N_CORRUPTED = 20_000, 5000, 1000
CLASSES, NOISES = "ResNet-8", ("clean",)
BY = {name: guided_by(name) for name in GUIDES}
METHODS = tuple(
    replace(method, candidates=method.candidates[:3])
    for method in (*UNGUIDED, *BY.values(), PUBLISHED, SHUFFLED)
)

# --- images --------------------------------------------------------------------------------------


def student():
    return torch.nn.Sequential(
        torch.nn.Conv2d(3, WIDTH, 3, stride=2, padding=1),
        torch.nn.ReLU(),
        torch.nn.Conv2d(WIDTH, 2 * WIDTH, 3, stride=2, padding=1),
        torch.nn.ReLU(),
        torch.nn.Flatten(),
        torch.nn.Linear(2 * WIDTH * (SIZE // 4) ** 2, N_HIDDEN),
        torch.nn.ReLU(),
        torch.nn.Linear(N_HIDDEN, 10),
    )


def shrunk(images, size=SIZE):
    """Return images as nets take them, made in pieces that need little memory."""
    parts = (images[i : i + 1000] for i in range(0, len(images), 1000))
    return torch.cat([as_input(part, size) for part in parts])


def features_of_nets(images, y, others):
    """Return {guide: features of each of others}, of two networks that learned images."""
    seen = shrunk(images, cifar.SIZE)
    turns, accuracy = cifar.trained_on_turns(seen)
    print(f"rotation: accuracy {accuracy:.3f} in the last epoch", flush=True)
    classes = cifar.small_resnet()
    torch.manual_seed(0)
    trainer = Trainer(classes, Pictures(seen), Plan(cross_entropy_loss, y), GUIDE_SETTINGS)
    for _ in trainer.epochs(GUIDE_SETTINGS.n_epochs):
        pass
    return {
        name: tuple(cifar.pooled(net.eval(), shrunk(of, cifar.SIZE)) for of in others)
        for name, net in ((ROTATION, turns), (CLASSES, classes))
    }


class Images:
    """All images of CIFAR-10 as students see them, with the features of all guides."""

    def __init__(self, folder, out):
        self.out = out
        (self.pictures, self.y), (self.test_pictures, self.y_test) = (
            pictures(folder, split) for split in ("train", "test")
        )
        self.inputs, self.test = shrunk(self.pictures), Pictures(shrunk(self.test_pictures))
        self.human = cifar.human_proba(folder)
        others = np.concatenate([cifar.enlarged_digits(), cifar.crops()])
        self.ood = Pictures(as_input(others, SIZE))

    @property
    def unseen(self):
        """Images that no guide has seen: training images but the last ones, and test images."""
        return self.pictures[: -cifar.N_TURNED], self.test_pictures

    @cached_property
    def all_pretrained(self):
        """All features of EfficientNet-Lite, of training and of test images."""
        names = ("train", "test")
        return tuple(pretrained.kept(self.out, *of) for of in zip(names, self.unseen))

    @cached_property
    def features(self):
        """{guide: (features of training images, of test images)}."""
        components = PCA(N_COMPONENTS, random_state=0).fit(self.all_pretrained[0])
        lite = tuple(components.transform(part) for part in self.all_pretrained)
        return {LITE: lite} | self.of_nets()

    def of_nets(self):
        path = self.out / "guided_train_nets.npz"
        if not path.exists():
            last = slice(-cifar.N_TURNED, None)
            found = features_of_nets(self.pictures[last], self.y[last], self.unseen)
            np.savez(
                path, **{f"{name} {i}": X for name, of in found.items() for i, X in enumerate(of)}
            )
        with np.load(path) as data:
            return {name: (data[f"{name} 0"], data[f"{name} 1"]) for name in (ROTATION, CLASSES)}

    @cached_property
    def difficulties(self):
        """{score, guide: difficulty of the test images}, by Gaussians of the training images."""
        every = self.features | {WHOLE: self.all_pretrained}
        y = self.y[: -cifar.N_TURNED]
        scorer = lambda kind: RelativeMahalanobisScorer(relative=SCORES[kind], shrinkage="auto")
        return {
            f"{kind}, {name}": scorer(kind).fit(train, y).difficulty(test, self.y_test)
            for name, (train, test) in every.items()
            for kind in SCORES
        }

    @cached_property
    def corrupted(self):
        """{severity: inputs of the first test images, once for every kind of corruption}."""
        images = self.test_pictures[:N_CORRUPTED]
        worse = lambda kind, k: corrupt_images(images, kind, severity=k, random_state=0)
        return {0: [Pictures(shrunk(images))]} | {
            k: [Pictures(shrunk(worse(kind, k))) for kind in KINDS] for k in LEVELS[1:]
        }

    def task(self, noise, seed):
        order = np.random.default_rng(seed).permutation(N_TRAIN + N_VAL)
        train, val = np.split(order, [N_TRAIN])
        rows = {"train": train, "val": val}
        inputs = {name: Pictures(self.inputs[torch.from_numpy(r)]) for name, r in rows.items()}
        features = {GUIDES[name]: of[0][train] for name, of in self.features.items()}
        return Task(
            inputs=inputs | {"test": self.test, "ood": self.ood},
            given=noisy_labels(self.y[train], noise, seed),
            true=self.y[train],
            val_labels={"clean": self.y[val]},
            test_labels=self.y_test,
            human=self.human,
            seed=seed,
            make_net=student,
            **features,
        )


# --- runs ----------------------------------------------------------------------------------------


def losses(options, records):
    images = Images(options.data, options.out)
    for noise in options.noise or NOISES:
        make = partial(images.task, noise)
        how = (SETTINGS, noise, options.seeds)
        at_one_decay(records, make, METHODS, *how, train_one=partial(run_one, images))


def run_one(images, task, method, options, settings, seed, _):
    """Measure a student on the test images and, unless it screens, on corrupted ones."""
    trained = train(task, method.plan(task, **options), settings, seed=seed, watch=False)
    row = measure(trained.last, task.test_labels, task.val_labels["clean"], task.human)
    if seed != SCREENING_SEED:
        for k, kinds in images.corrupted.items():
            found = [under(logits_of(trained.net, part).numpy(), task) for part in kinds]
            row |= {at(name, k): float(np.mean([one[name] for one in found])) for name in UNDER}
    return {"points": {"last": row}}


UNDER = ("accuracy", "confidence", "ECE")


def at(metric, k):
    return f"{metric}, severity {k}"


def under(logits, task):
    y, proba = task.test_labels[: len(logits)], proba_of(logits)
    return {
        "accuracy": (proba.argmax(axis=1) == y).mean(),
        "confidence": proba.max(axis=1).mean(),
        "ECE": expected_calibration_error(y, proba, strategy="quantile"),
    }


def with_severities(settings):
    """Make settings of severities, and by how much less ECE than decay alone the loss has."""
    severities = {f"severity {k}": {} for k in LEVELS}
    for noise, methods in settings.items():
        for name, points in methods.items():
            for k in LEVELS:
                values = {m: points["last"].pop(at(m, k), []) for m in UNDER}
                if noise == "clean" and name in CORRUPTED:
                    severities[f"severity {k}"][name] = {"last": values}
    gains = {}
    for severity, methods in severities.items():
        if {DECAY.name, BY_LITE} <= methods.keys():
            decay, loss = (methods[name]["last"]["ECE"] for name in (DECAY.name, BY_LITE))
            gains[severity] = {"last": {"ECE": [a - b for a, b in zip(decay, loss)]}}
    return settings | severities | {LESS: gains}


def losses_table(settings):
    noises = {name: methods for name, methods in settings.items() if name in NOISES}
    severities = {name: of for name, of in settings.items() if name.startswith("severity")}
    return "\n".join([
        comparisons(noises, points={"last": POINTS["last"]}),
        values_tables(severities, COLUMNS),
    ])  # fmt: skip


def errors(options, records):
    """Errors by difficulty, of students that have not seen the images.

    Three students learn with cross-entropy, no decay. Gaussians are fitted on the 30 000 training
    images that no guide has seen, and score the test images with their labels.
    """
    images = Images(options.data, options.out)
    for seed in options.seeds:
        compute = lambda seed=seed: errors_of(
            images.task("clean", seed), images.difficulties, SETTINGS
        )
        records.get({"setting": "students", "seed": seed}, compute)


def human(options, records):
    """Spearman of difficulty with the entropy of human labels, by Gaussians of training images.

    Gaussians are fitted on the 30 000 training images that no guide has seen, and score the test
    images with their labels. Standard errors by bootstrap, of differences from the same samples.
    """
    images = Images(options.data, options.out)
    compute = lambda: agreement_of(images.difficulties, images.y_test, options.data, GUIDES)
    records.get({"setting": "CIFAR-10H"}, compute)


# --- claims --------------------------------------------------------------------------------------

LESS = "less ECE than with decay alone"
CORRUPTED = tuple(method.name for method in (DECAY, LS, ENTROPY, BY[LITE], PUBLISHED))
COLUMNS = (
    Column("accuracy", "Accuracy under corruption, %", 100),
    Column("confidence", "Mean confidence under corruption, %", 100),
    Column("ECE", "ECE under corruption, %", 100),
)
_loss = about("guided_train_losses", BY_LITE, rivals=DECAY.name, settings=NOISES)
CLAIMS = (
    *claims("guided_train_losses", "guided_train_errors", CLASSES, NOISES),
    _loss("Guided by a pre-trained network, it detects out-of-distribution images better.",
          "ood_auroc", paper=printed("RMD", "Table 4", "AUROC, entropy", "proposed", "CE")),
    _loss("Guided by a pre-trained network, its probabilities are closer to the labels of "
          "people.", "human_kl"),
    _loss("Under corruption it is better calibrated than with decay alone, at every severity "
          "(Fig. 3).", "ECE", settings=[f"severity {k}" for k in LEVELS[1:]], paper=DIRECTION),
    _loss("That gain is larger under the strongest corruption than without (Fig. 3).", "ECE",
          "severity 0", method="severity 5", settings=LESS, better=1, paper=DIRECTION),
    *agreement_claims("guided_train_human", GUIDES),
)  # fmt: skip

_part = partial(Part, files=IMAGE_FILES[:2], packages=(pretrained.PACKAGE,))
STUDY = Study(
    "[RMD], training images",
    {
        "guided_train_losses": _part(
            losses, losses_table, order=METHODS, derive=with_severities,
            kept=("human_kl", *(at(metric, k) for metric in UNDER for k in LEVELS)),
        ),
        "guided_train_errors": _part(errors, errors_table, settings=described(errors.__doc__)),
        "guided_train_human": _part(human, human_table, settings=described(human.__doc__)),
    },
    CLAIMS,
    described(__doc__),
)  # fmt: skip
