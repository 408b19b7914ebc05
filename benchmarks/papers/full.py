"""The papers' own settings on images, for an accelerator: ``--scale full``.

``published.json`` has the settings as the papers print them. [RMD]: ResNet-34, 200 epochs, SGD
with a cosine schedule (ours). [GRA]: ResNet-50, 350 epochs, learning rate divided by ten after 150
and 250; the exponents are those of CIFAR-100, where the paper chooses them by cross-validation.
[PRIO]: ResNet-34, 200 epochs; after 10 on all images, every epoch is on the 30, 20 or 10 % of them
that a guide is least certain of, by the entropy of its prediction: the network itself, or a
ResNet-50 that was trained on all images with mixup, at the same epoch or after its last. Random
images are there for comparison. The parameters of label smoothing, mixup and focal loss are the
published ones for each fraction, with a target those of its own table; so are its learning rate,
cosine schedule, weight decay and momentum. [DEPTH] is in ``full_depth.py``.

What the papers do not print is ours: the epochs and the schedule of [RMD], the weight decay of
[GRA], batches of 128 where it is not [GRA], flips and shifts where it is not [RMD], and bfloat16
on CUDA. Nothing is chosen. A tenth of the training images is held out for validation. Difficulty
needs features of them: ``--features`` names an ``.npz`` with ``train`` (50000, d), made for
instance by ``skcalib.embeddings.OpenClipEmbedder``; without it, the methods that need difficulty
are left out. Seconds of [PRIO] are those of the clock, without the target's training, which is
kept: entropies of every epoch, one file a target in ``--out``.

CIFAR-10 is ``cifar10_jpeg.npz`` in the data folder, one file of 56 MB, which is enough (with
``cifar10h.npz`` beside it, predictions are compared with human labels too). The other sets are
``cifar100.npz``, ``svhn.npz`` and ``fashion_mnist.npz``, with ``train_images``, ``train_y``,
``test_images``, ``test_y``: bytes of shape (n, 32, 32, 3), or (n, 28, 28) for gray images, which
get a black border and three equal channels.

``--epochs`` and ``--images`` make a trial, whose runs are kept apart from those in full.
"""

from __future__ import annotations

import time
from dataclasses import replace
from functools import cache, partial

import numpy as np
import torch

from ..cifar_networks import cifar_resnet
from . import full_depth, gra
from .images import Pictures, as_input, human_proba
from .methods import CE, DECAY, FOCAL, Method, aware, mixed
from .needs import Missing
from .prio import ALONE, entropies, judged, recorded
from .published import PUBLISHED, image_set, named_setting
from .results import Part
from .rmd import OTHER_LOSSES
from .runner import compare
from .students import Settings, Trainer
from .tasks import Task

STUDENTS, PRIO = PUBLISHED["students"], PUBLISHED["prio"]
FRACTIONS, N_WARMUP = PRIO["fractions"], PRIO["warmup epochs"]
N_CLASSES = {"cifar10": 10, "cifar100": 100, "svhn": 10, "fashion_mnist": 10}
GUIDES = ("random", "entropy", "target of the epoch", "fixed target")


def full_task(options, network, seed):
    (images, y), (test, y_test) = image_set(options)
    n_used = min(options.images or len(y), len(y))
    rows = np.random.default_rng(seed).permutation(len(y))[:n_used]
    train, val = rows[n_used // 10 :], rows[: n_used // 10]
    test, y_test = test[: options.images], y_test[: options.images]
    human = None
    if options.dataset == "cifar10" and (options.data / "cifar10h.npz").exists():
        human = human_proba(options.data)[: len(y_test)]
    parts = {"train": images[train], "val": images[val], "test": test}
    return Task(
        inputs={
            name: Pictures(as_input(part), augment=name == "train", device=options.device)
            for name, part in parts.items()
        },
        given=y[train],
        true=y[train],
        val_labels={"clean": y[val]},
        test_labels=y_test,
        make_net=partial(cifar_resnet, network, N_CLASSES[options.dataset]),
        seed=seed,
        human=human,
        features=np.load(options.features)["train"][train] if options.features else None,
    )


def rmd_methods(options):
    """Yield the methods of [RMD] with the published parameters."""
    published = PUBLISHED["rmd"] | PUBLISHED.get(f"rmd, {options.dataset}", {})
    yield CE
    for method in OTHER_LOSSES:
        yield replace(method, candidates=(published[method.name],))
    if options.features:
        of_paper = (PUBLISHED["difficulty-aware"],)
        yield Method("difficulty-aware, as published", aware(scale=None), of_paper)
        yield Method("difficulty-aware, min-max", aware(scale="minmax"), of_paper)
        yield Method("difficulty-aware", aware(), ({"temperature": 0.3, "alpha": 0.3},))


def gra_methods(options):
    """Yield the methods of [GRA]; the losses have the published parameters by default."""
    for method in gra.METHODS:
        if method.name != DECAY.name and not method.name.endswith("as published"):
            of_paper = {"gamma": 3.0} if method.name == FOCAL.name else {}
            yield replace(method, candidates=(of_paper,))


def image_settings(options, study, batch_size=128, **other):
    """Return the settings of a study; those of a trial keep the shares of the milestones."""
    student = {"lr": 0.1, "milestones": (), **STUDENTS[study], **other}
    n_epochs = options.epochs or student["n_epochs"]
    milestones = (round(at * n_epochs / student["n_epochs"]) for at in student["milestones"])
    return Settings(
        n_epochs=n_epochs, lr=student["lr"], batch_size=batch_size, device=options.device,
        weight_decay=student["weight_decay"], optimizer="sgd", milestones=tuple(milestones),
    )  # fmt: skip


def compared(methods, options, records):
    network = options.network or STUDENTS[options.study]["network"]
    every = tuple(methods(options))
    compare(
        records,
        partial(full_task, options, network),
        [m for m in every if m.name == options.only]
        or [m for m in every if options.only in m.name],
        image_settings(options, options.study),
        named_setting(options, network),
        options.seeds,
        every=True,
    )


def published(options):
    """Return the settings of a data set; sets that the paper has not have those of CIFAR-10."""
    return PRIO["cifar100" if options.dataset == "cifar100" else "cifar10"]


def plan_of(options, loss, fraction, task, *, guided=False):
    """Return the plan of a loss at a fraction, alone or guided by a target."""
    if loss == CE.name:
        return CE.plan(task)
    parameters = published(options)["alone"] | (published(options)["target"] if guided else {})
    value = parameters[loss][FRACTIONS.index(fraction)]
    method = next(method for method in ALONE if method.name == loss)
    (parameter,) = method.candidates[0]
    return method.plan(task, **{parameter: value})


def prioritization(options, records):
    network = options.network or STUDENTS["prio"]["network"]
    runs = [(1.0, "all"), *((f, guide) for f in FRACTIONS[1:] for guide in GUIDES)]
    for seed in options.seeds:
        tasks = cache(partial(full_task, options, network))
        for loss in (CE.name, *published(options)["alone"]):
            for fraction, guide in runs:
                key = {
                    "setting": named_setting(options, network), "target": options.target,
                    "method": guide, "loss": loss, "fraction": fraction, "seed": seed,
                }  # fmt: skip
                if options.only in f"{loss}, {guide}":
                    how = (loss, fraction, guide)
                    compute = lambda s=seed, t=tasks, h=how: prioritized(options, t(s), *h)
                    records.get(key, compute)


def prioritized(options, task, loss, fraction, guide):
    """Train with prioritization; measure after the last epoch."""
    settings = image_settings(options, "prio", lr=published(options)["lr"])
    recorded = None
    if "target" in guide:
        recorded = target_entropies(options, task, settings)
        recorded = recorded[-1:] if guide == "fixed target" else recorded
    rng = np.random.default_rng([task.seed, 5])
    n_samples = len(task.given)
    n_chosen = max(1, round(fraction * n_samples))
    n_warmup = min(N_WARMUP, settings.n_epochs // 2)
    plain = Pictures(task.inputs["train"].images, device=options.device)

    def choose(net, epoch):
        if fraction == 1.0 or epoch < n_warmup:
            return torch.arange(n_samples)
        if guide == "random":
            scores = rng.random(n_samples)
        elif recorded is not None:
            scores = recorded[min(epoch - 1, len(recorded) - 1)]
        else:
            scores = entropies(net, plain, options.device)
        return torch.from_numpy(np.argsort(-scores, kind="stable")[:n_chosen].copy())

    start = time.perf_counter()
    torch.manual_seed(task.seed)
    plan = plan_of(options, loss, fraction, task, guided=recorded is not None)
    trainer = Trainer(task.net(), task.inputs["train"], plan, settings)
    for _ in trainer.epochs(settings.n_epochs, choose):
        pass
    if settings.device.startswith("cuda"):
        torch.cuda.synchronize()  # what is timed has to be over
    seconds = time.perf_counter() - start
    return {"points": {"last": judged(task, trainer.net) | {"clock_seconds": seconds}}}


def target_entropies(options, task, settings):
    """Return the entropies (n_epochs, n_samples) that the target's own training went through."""
    name = f"{named_setting(options, options.target)}, {task.seed}"
    path = options.out / f"full_prio_target-{name.replace(', ', '-').replace(' ', '_')}.npy"
    if not path.exists():
        torch.manual_seed(100 + task.seed)
        net = cifar_resnet(options.target, N_CLASSES[options.dataset])
        plan = mixed(task, published(options)["target mixup"])
        trainer = Trainer(net, task.inputs["train"], plan, settings)
        plain = Pictures(task.inputs["train"].images, device=options.device)
        np.save(path, recorded(trainer, plain, settings.n_epochs))
    return np.load(path)


STUDIES = {
    "rmd": partial(compared, rmd_methods),
    "gra": partial(compared, gra_methods),
    "prio": prioritization,
    "depth": full_depth.run,
}


def parts(study):
    """Return the runs of a study in full."""
    if study not in STUDIES:
        raise Missing(f"--scale full is there for {', '.join(STUDIES)}, got {study}.")
    return {f"full_{study}": Part(STUDIES[study])}
