"""[RMD]: students guided by a pre-trained network, by rotations and by the same classes.

Students learn 4000 images, are validated on 2000 and tested on 4000, as in the other studies of
images, and the guides are those above. Students are perceptrons with 128 units on 8 x 8 pixels,
fifteen epochs of Adam. All have the weight decay that cross-entropy chose, and each chooses one of
four candidates, pairs of alpha and T for the difficulty-aware loss, by the log-loss of the
validation images on a seed that is not reported. "As published" is alpha .3, T .7 and weights by
the size of the distance; the others are by its rank. "Shuffled" hands the weights of
EfficientNet-Lite to other images. Each image is scored without itself, with the label that the
student learns.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import torch
from sklearn.metrics import roc_auc_score
from torch.nn import functional as F

from skcalib.difficulty import RelativeMahalanobisScorer

from .claims import DIRECTION, about
from .figures import errors_by, errors_table
from .images import Pictures, cifar_task, test_and_other_rows
from .methods import (
    CE,
    DECAY,
    ENTROPY,
    FOCAL,
    IMAGE_GRIDS,
    LS,
    Method,
    aware,
    with_candidates,
    with_decay,
)
from .printed import columns as printed
from .printed import value
from .results import Part, described
from .runner import chosen, compare
from .sources import GUIDES
from .students import Settings, train

SIZE, N_HIDDEN = 8, 128
SETTINGS = Settings(n_epochs=15, lr=0.02, batch_size=400, cosine=True)
NOISES = ("clean", "U20")
LITE, ROTATION, RESNET = GUIDES

# --- methods -------------------------------------------------------------------------------------

CANDIDATES = tuple(
    {"temperature": t, "alpha": a} for t, a in ((0.3, 0.1), (0.3, 0.4), (0.3, 1.2), (0.1, 1.0))
)


def guided_by(name):
    return Method(f"difficulty-aware by {name}", aware(f"RMD by {name}, left out"), CANDIDATES)


BY = {name: guided_by(name) for name in GUIDES}
PUBLISHED = Method(
    f"difficulty-aware by {LITE}, as published",
    aware(f"RMD by {LITE}, left out", scale="minmax"),
    ({"temperature": 0.7, "alpha": 0.3},),
)
SHUFFLED = Method(
    f"difficulty-aware by {LITE}, shuffled",
    aware(f"RMD by {LITE}, left out", control="shuffled"),
    CANDIDATES,
)
UNGUIDED = (CE, *with_candidates((DECAY, LS, FOCAL, ENTROPY), IMAGE_GRIDS))
METHODS = (*UNGUIDED, *BY.values(), PUBLISHED, SHUFFLED)

# --- runs ----------------------------------------------------------------------------------------


def student_task(cifar, noise, seed):
    """Return the task of the other studies of images for a perceptron on fewer pixels."""
    task = cifar_task(cifar, noise, seed)
    inputs = {
        name: Pictures(F.adaptive_avg_pool2d(task.inputs[name].images, SIZE))
        for name in ("train", "val", "test")
    }
    return replace(task, inputs=inputs, make_net=perceptron, human=None)


def perceptron():
    return torch.nn.Sequential(
        torch.nn.Flatten(),
        torch.nn.Linear(3 * SIZE**2, N_HIDDEN),
        torch.nn.ReLU(),
        torch.nn.Linear(N_HIDDEN, 10),
    )


def losses(images, options, records):
    cifar = images(options.data, options.out)
    for noise in options.noise or NOISES:
        make = partial(student_task, cifar, noise)
        at_one_decay(records, make, METHODS, SETTINGS, noise, options.seeds)


def at_one_decay(records, make_task, methods, *how, **more):
    """Cross-entropy with and without decay, and all other methods at the decay that it chose."""
    compare(records, make_task, methods[:2], *how, stops=False, **more)
    decay = chosen(records, DECAY.name, how[1])["last"]["weight_decay"]
    methods = [with_decay(method, decay) for method in methods[2:]]
    compare(records, make_task, methods, *how, stops=False, **more)


def errors(images, options, records):
    """Errors by difficulty, of students that have not seen the images.

    Students learn with cross-entropy and no decay. Gaussians are fitted on the images that they
    learned, and score the test images with their labels.
    """
    for seed in options.seeds:
        compute = partial(errors_of_student, images(options.data, options.out), seed)
        records.get({"setting": "students", "seed": seed}, compute)


def errors_of_student(cifar, seed):
    task, test = student_task(cifar, "clean", seed), test_and_other_rows(len(cifar.labels))[0]
    difficulties = {}
    for name, attribute in GUIDES.items():
        X = getattr(task, attribute)
        for kind, relative in {"RMD": True, "Mahalanobis": False}.items():
            scorer = RelativeMahalanobisScorer(relative=relative, shrinkage="auto")
            scorer.fit(X, task.true)
            difficulties[f"{kind}, {name}"] = scorer.difficulty(
                getattr(cifar, attribute)[test], task.test_labels
            )
    return errors_of(task, difficulties, SETTINGS)


def errors_of(task, difficulties, settings):
    """Return where a student that learned with cross-entropy errs on the test images."""
    logits = train(task, CE.plan(task), settings, seed=task.seed, watch=False).last["test"]
    wrong, methods = logits.argmax(axis=1) != task.test_labels, {}
    for name, difficulty in difficulties.items():
        values = errors_by(difficulty, wrong)
        values["errors_auroc"] = float(roc_auc_score(wrong, difficulty))
        methods[name] = {"last": values}
    return {"found": {"students": methods}}


# --- claims --------------------------------------------------------------------------------------

BY_LITE = BY[LITE].name


def over(metric, *rivals):
    return printed("RMD", "Table 2", metric, "proposed", list(rivals))


def claims(losses, errors, classes, noises=NOISES):
    """Return the claims about two parts; `classes` is the guide that learned the classes."""
    of = about(losses, BY_LITE, rivals=DECAY.name, settings=noises)
    err = about(errors, settings="students", metric="errors_auroc", paper=DIRECTION)
    return (
        of("Guided by a pre-trained network, decay in both, the student is more accurate.",
           "accuracy", paper=over("accuracy", "CE")),
        of("Guided by a pre-trained network, decay in both, the student is better calibrated.",
           "ece", paper=over("ECE", "CE")),
        of("Guided by a pre-trained network, decay in both, its log-loss is lower.", "nll"),
        of("Guided by a pre-trained network, its log-loss is lower after a temperature, too.",
           "nll_scaled"),
        of("Guided by a pre-trained network, its confidence separates errors better.",
           "errors_auroc", paper=printed("RMD", "Table 3", "AUROC, MSP", "proposed", "CE")),
        *(of(f"Guided by a pre-trained network, it is more accurate than {name}.", "accuracy",
             name, paper=over("accuracy", short))
          for name, short in ((LS.name, "LS"), (FOCAL.name, "FL"), (ENTROPY.name, "ER"))),
        *(of(f"Guided by a pre-trained network, it is better calibrated than {name}.", "ece",
             name, paper=over("ECE", short))
          for name, short in ((LS.name, "LS"), (FOCAL.name, "FL"), (ENTROPY.name, "ER"))),
        of("With the alpha, T and weights of the paper, it is better calibrated than "
           "cross-entropy with decay.", "ece", method=PUBLISHED.name, paper=over("ECE", "CE")),
        *(of(f"The pre-trained difficulty matters: shuffled, {worse}.", metric, SHUFFLED.name)
          for metric, worse in (("accuracy", "it is less accurate"),
                                ("nll", "the log-loss is higher"),
                                ("aurc", "the selective risk is higher"))),
        *(of(f"A better guide matters: {what}, by one that learned the classes than by a "
             "pre-trained one.", metric, BY_LITE, method=guided_by(classes).name)
          for metric, what in (("accuracy", "more accurate"), ("nll", "lower log-loss"),
                               ("aurc", "less selective risk"))),
        *(of(f"A better guide matters: {what}, by a pre-trained one than by rotation.", metric,
             BY[ROTATION].name)
          for metric, what in (("accuracy", "more accurate"), ("nll", "lower log-loss"),
                               ("aurc", "less selective risk"))),
        err("Students that have not seen the images err less from tenth to tenth of RMD by a "
            "pre-trained guide (Fig. 2; Spearman).", "trend", method=f"RMD, {LITE}", better=-1),
        err("The hardest hundredth by RMD has more errors of students than that by Mahalanobis, "
            "by a pre-trained guide (Fig. 6).", "hardest", f"Mahalanobis, {LITE}",
            method=f"RMD, {LITE}",
            paper=value("RMD", "Section 3.2", "error rate, about", "hardest")),
        err("RMD separates the errors of students better than Mahalanobis, by a pre-trained "
            "guide.", rivals=f"Mahalanobis, {LITE}", method=f"RMD, {LITE}"),
        err("A guide that learned the classes separates the errors of students better than a "
            "pre-trained one.", rivals=f"RMD, {LITE}", method=f"RMD, {classes}"),
        err("A pre-trained guide separates the errors of students better than rotation.",
            rivals=f"RMD, {ROTATION}", method=f"RMD, {LITE}"),
    )  # fmt: skip


CLAIMS = claims("guided_losses", "guided_errors", RESNET)


def parts(images, **needed):
    """Return the parts of the study; `images` makes the images with the features of all guides."""
    return {
        "guided_losses": Part(
            partial(losses, images), order=METHODS, settings=described(__doc__), **needed
        ),
        "guided_errors": Part(
            partial(errors, images), errors_table, settings=described(errors.__doc__), **needed
        ),
    }
