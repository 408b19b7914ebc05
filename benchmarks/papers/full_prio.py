"""[PRIO] on CIFAR-10 and CIFAR-100: all losses, fractions and guides of the paper.

A ResNet-34 trains for 200 epochs; after 10 on all images, every epoch is on the 30, 20 or 10 % of
them that a guide is least certain of, by the entropy of its prediction: the network itself, or a
ResNet-50 that was trained on all images with mixup, at the same epoch or after its last. Random
images are there for comparison. The parameters of label smoothing, mixup and focal loss are the
published ones for each fraction, with a target those of its own table (label smoothing, which we
do not find there, as without).

Our reading: SGD with a cosine schedule (weight decay 5e-4, batches of 128), flips and shifts, a
tenth of the images for validation, and the cases besides "clean", for cross-entropy alone.
Redundant: a fifth of the
images, five times each. Imbalanced: from all images of a class down to a twenty-fifth. U20: 20 %
of the labels flipped. Seconds are those of the clock, with the choosing and without the target's
training, which is kept: entropies of every epoch, one file a target in ``--out``.
"""

from __future__ import annotations

import time
from functools import partial

import numpy as np
import torch

from skcalib import losses
from skcalib.datasets import flip_labels
from skcalib.metrics import predictive_entropy

from .compare import Tasks
from .full import full_task, image_settings, named_setting, resnet
from .images import Pictures
from .measures import measure, proba_of
from .published import FRACTIONS, N_WARMUP, PRIO, STUDENTS
from .records import Records
from .students import Plan, Trainer, half_precision, logits_of

GUIDES = ("random", "entropy", "target of the epoch", "fixed target")
CASES = ("clean", "redundant", "imbalanced", "U20")


def published(options):
    """Return the settings of a data set; sets that the paper has not have those of CIFAR-10."""
    return PRIO["cifar100" if options.dataset == "cifar100" else "cifar10"]


def plan_of(options, loss, fraction, given, *, guided=False):
    """Return the plan of a loss at a fraction, alone or guided by a target."""
    if loss == "cross-entropy":
        return Plan(losses.cross_entropy_loss, given)
    found = published(options)
    by_loss = found["alone"] | (found["target"] if guided else {})
    value = by_loss[loss][FRACTIONS.index(fraction)]
    if loss == "mixup":
        return Plan(losses.cross_entropy_loss, given, mixup_alpha=value)
    if loss == "focal":
        return Plan(partial(losses.focal_loss, gamma=value), given)
    return Plan(partial(losses.label_smoothing_loss, alpha=value), given)


def runs(case):
    """Yield (loss, fraction, guide): all losses on clean images, cross-entropy elsewhere."""
    for loss in ("cross-entropy", *PRIO["cifar10"]["alone"])[: 4 if case == "clean" else 1]:
        yield loss, 1.0, "all"
        yield from ((loss, fraction, guide) for fraction in FRACTIONS[1:] for guide in GUIDES)


def run(options):
    network, records = (
        options.network or STUDENTS["prio"]["network"],
        Records(options.out / "full_prio.jsonl"),
    )
    setting = named_setting(options, network)
    for seed in range(options.seeds):
        for case in options.noise or CASES:
            tasks = Tasks(partial(prio_task, options, network, case))
            for how in runs(case):
                loss, fraction, guide = how
                key = {
                    "setting": setting, "target": options.target, "case": case,
                    "method": guide, "loss": loss, "fraction": fraction, "seed": seed,
                }  # fmt: skip
                if options.only not in f"{loss}, {guide}" or key in records:
                    continue
                row = records.get(key, partial(prioritized, options, tasks[seed], case, *how))
                last = {name: round(value, 4) for name, value in row["points"]["last"].items()}
                print(case, *how, seed, last, flush=True)


def prio_task(options, network, case, seed):
    """Return the images of a case; validation and test images are the same in all of them."""
    task = full_task(options, network, seed)
    rng, n_samples = np.random.default_rng([seed, 4]), len(task.given)
    if case == "U20":
        task.given = flip_labels(task.given, fraction=0.2, random_state=seed)[0]
    elif case == "redundant":
        _keep(task, np.tile(np.arange(n_samples // 5), 5))
    elif case == "imbalanced":
        # The order of the classes is drawn anew for each seed.
        classes = rng.permutation(np.unique(task.given))
        kept = 0.04 ** np.linspace(0, 1, len(classes))[classes.argsort()]
        probability = kept[np.searchsorted(np.sort(classes), task.given)]
        _keep(task, np.flatnonzero(rng.random(n_samples) < probability))
    return task


def _keep(task, rows):
    train = task.inputs["train"]
    task.inputs["train"] = Pictures(
        train.images[torch.from_numpy(rows)], augment=train.augment, device=train.device
    )
    task.given = task.given[rows]


def prioritized(options, task, case, loss, fraction, guide):
    """Train with prioritization; measure after the last epoch."""
    settings = image_settings(options, "prio", lr=published(options)["lr"])
    recorded = None
    if "target" in guide:
        recorded = target_entropies(options, task, case, settings)
        recorded = recorded[-1:] if guide == "fixed target" else recorded
    rng = np.random.default_rng([task.seed, 5])
    n_samples = len(task.given)
    n_chosen, n_warmup = max(1, round(fraction * n_samples)), min(N_WARMUP, settings.n_epochs // 2)
    plain = Pictures(task.inputs["train"].images, device=options.device)

    def choose(net, epoch):
        if fraction == 1.0 or epoch < n_warmup:
            return torch.arange(n_samples)
        if guide == "random":
            scores = rng.random(n_samples)
        elif recorded is not None:
            scores = recorded[min(epoch - 1, len(recorded) - 1)]
        else:
            scores = entropies(net, plain)
        return torch.from_numpy(np.argsort(-scores, kind="stable")[:n_chosen].copy())

    start = time.perf_counter()
    plan = plan_of(options, loss, fraction, task.given, guided=recorded is not None)
    net, n_seen = train_by(choose, task, plan, settings, task.net(), task.seed)
    seconds = time.perf_counter() - start
    parts = {n: logits_of(net, i).numpy() for n, i in task.inputs.items() if n != "train"}
    found = measure(parts, task.test_labels, task.val_labels["clean"], task.human)
    return {"points": {"last": found | {"clock_seconds": seconds, "samples_seen": n_seen}}}


def train_by(choose, task, plan, settings, net, seed):
    """Train a network on the samples that are chosen for each epoch; return it, and how many."""
    torch.manual_seed(seed)
    trainer, n_seen = Trainer(net, task.inputs["train"], plan, settings), 0
    for epoch in range(settings.n_epochs):
        rows = choose(trainer.net, epoch)
        for batch in rows[torch.randperm(len(rows))].split(settings.batch_size):
            trainer.step(batch)
        trainer.schedule.step()
        n_seen += len(rows)
    if settings.device.startswith("cuda"):
        torch.cuda.synchronize()  # what is timed has to be over
    return trainer.net, n_seen


def entropies(net, inputs):
    with half_precision(inputs.device):
        return predictive_entropy(proba_of(logits_of(net, inputs).numpy()))


def target_entropies(options, task, case, settings):
    """Return the entropies (n_epochs, n_samples) that the target's own training went through."""
    network = options.target
    name = "-".join([named_setting(options, network), case, str(task.seed)])
    path = options.out / f"full_prio_target-{name.replace(', ', '-').replace(' ', '_')}.npy"
    if not path.exists():
        plain, lines = Pictures(task.inputs["train"].images, device=options.device), []

        def choose(net, epoch):
            if epoch:
                lines.append(entropies(net, plain).astype(np.float32))
            return torch.arange(len(plain))

        alpha = published(options)["target mixup"]
        plan = Plan(losses.cross_entropy_loss, task.given, mixup_alpha=alpha)
        net = resnet(network, task.net().fc.out_features)
        net, _ = train_by(choose, task, plan, settings, net, 100 + task.seed)
        np.save(path, np.stack([*lines, entropies(net, plain)]))
    return np.load(path)
