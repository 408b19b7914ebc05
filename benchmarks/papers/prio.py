"""[PRIO]: which samples to train on, at equal numbers of gradient steps; CLINC150.

After a warm-up of 150 steps on all samples, every epoch trains on a fifth of the samples (or on
random ones of the same number), chosen by a guide: its own predictive entropy, that of a target,
balanced classes or chance. "Early" is a warm-up of 60 steps and a tenth of the samples. Redundant:
20 samples a class, each five times; imbalanced: from 100 down to 4 samples a class. A target is a
network of 256 units: fixed (trained for ten epochs, temperature fitted) or, as in the paper, one
for each epoch (trained alongside on all samples, temperature fitted). Steps are equal; seconds, of
one thread, count the choosing and not the target's training.
"""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial

import numpy as np
import torch

from skcalib.losses import cross_entropy_loss, focal_loss, label_smoothing_loss
from skcalib.metrics import predictive_entropy
from skcalib.posthoc import TemperatureScaling
from skcalib.selection import MaxEntropySelector

from .compare import chosen, compare
from .measures import measure, proba_of
from .methods import CE, FOCAL, LS, Method, grid, mixed
from .records import Records
from .students import Plan, Settings, Trainer, logits_of, train
from .texts import Bags, Clinc, TextTask, text_task

N_STEPS, POINTS = 450, (225, 450)
# (fraction of the samples, steps of the warm-up): the longer warm-up is two passes.
LATE, EARLY = (0.2, 150), (0.1, 60)
SETTINGS = Settings(n_epochs=1)
CASES = ("clean", "redundant", "imbalanced", "U20", "redundant, early", "imbalanced, early")
LOSSES = {
    "cross-entropy": cross_entropy_loss,
    "focal": partial(focal_loss, gamma=3.0),
    "label smoothing": partial(label_smoothing_loss, alpha=0.03),
}
EVERYWHERE = ("random", "entropy", "in proportion")
MORE = {
    "clean": ("fixed target", "target of the epoch", "entropy, temperature"),
    "U20": ("fixed target",),
    "imbalanced": ("balanced",),
    "imbalanced, early": ("balanced",),
}


# The claims of the poster: how the student is trained, and whose entropy chooses.
ALONE = (
    CE,
    LS,
    Method("mixup", mixed, grid(mixup_alpha=(0.1, 0.2, 0.4, 0.8))),
    FOCAL,
)
FRACTIONS = {"30 %": 0.3, "20 %": 0.2, "10 %": 0.1}
TARGET_EPOCHS = 20


def run(options):
    for part in ("losses", "random"):
        if options.only in ("", part):
            globals()[f"study_{part}"](Clinc(options.data, options.out), options)


def study_losses(clinc, options):
    """Every loss at every fraction, by the student's own entropy and by that of a target."""
    records = Records(options.out / "prio_losses.jsonl")
    make, seeds = partial(make_task, clinc, "clean"), range(options.seeds)
    for setting, fraction in FRACTIONS.items():
        train_one = partial(_guided, options.out, fraction)
        how = (SETTINGS, setting, seeds)
        compare(records, make, ALONE, *how, stops=False, train_one=train_one)
        compare(
            records, make, (replace(CE, name="random samples"),), *how, stops=False,
            train_one=train_one,
        )  # fmt: skip
        if fraction != 0.2:
            continue
        # By a target, with the parameter that was chosen without one.
        guided = tuple(
            replace(
                method,
                name=f"{method.name}, target",
                candidates=(chosen(records, method.name, setting)["last"],),
            )
            for method in ALONE
        )
        compare(records, make, guided, *how, stops=False, train_one=train_one)


def _guided(folder, fraction, task, method, options, settings, seed, stops):
    guide = "random" if method.name == "random samples" else "entropy"
    if method.name.endswith(", target"):
        guide = target_entropies(folder, task)
    return prioritized(
        task, method.plan(task, **options), guide, seed, fraction, measured=(N_STEPS,)
    )


def target_entropies(folder, task):
    """Return the entropies (epochs, n) that a target trained with mixup went through."""
    path = folder / f"prio_target_{task.seed}.npy"
    if not path.exists():
        torch.manual_seed(task.seed + 700)
        plan = mixed(task, 0.3)
        trainer = Trainer(task.net(n_hidden=256), task.inputs["train"], plan, SETTINGS)
        lines = []
        for _ in range(TARGET_EPOCHS):
            for batch in torch.randperm(len(task.given)).split(SETTINGS.batch_size):
                trainer.step(batch)
            proba = proba_of(logits_of(trainer.net, task.inputs["train"]).numpy())
            lines.append(predictive_entropy(proba).astype(np.float32))
        np.save(path, np.stack(lines))
    return np.load(path)


def study_random(clinc, options):
    records = Records(options.out / "prio.jsonl")
    for seed in range(options.seeds):
        for case in options.noise or CASES:
            task = None
            for loss, guide in _runs(case):
                key = {"setting": case, "method": guide, "loss": loss, "seed": seed}
                if key in records:
                    continue
                task = make_task(clinc, case, seed) if task is None else task
                when = EARLY if case.endswith(", early") else LATE
                plan = Plan(LOSSES[loss], task.given)
                row = records.get(key, partial(prioritized, task, plan, guide, seed, *when))
                last = row["points"]["last"]
                print(
                    f"{case:<12}{loss:<16}{guide:<22}{seed:2d} {last['accuracy']:.4f}", flush=True
                )


def _runs(case):
    """Every case asks what it is for; the calibrating losses are those of the paper."""
    guides = (*EVERYWHERE, *MORE.get(case, ()))
    yield from (("cross-entropy", guide) for guide in guides)
    if case == "clean":
        for loss in ("focal", "label smoothing"):
            yield from ((loss, guide) for guide in ("random", "entropy"))


def make_task(clinc, case, seed):
    if case in ("clean", "U20"):
        return text_task(clinc, 100, case, seed)
    if case.startswith("redundant"):
        task, copies = text_task(clinc, 20, "clean", seed), np.tile(np.arange(3000), 5)
        return _subset(task, copies)
    task = text_task(clinc, 100, "clean", seed)
    # From 100 samples a class down to 4, the order of the classes drawn anew.
    rng = np.random.default_rng([seed, 4])
    sizes = np.round(100 * 0.04 ** np.linspace(0, 1, 150)).astype(int)
    order = rng.permutation(150)
    rows = [rng.choice(np.flatnonzero(task.true == k), n) for k, n in zip(order, sizes)]
    return _subset(task, np.concatenate(rows))


def _subset(task, rows):
    inputs = {**task.inputs, "train": _bags_of(task.inputs["train"], rows)}
    return TextTask(
        inputs, task.given[rows], task.true[rows], task.features[rows], task.val_labels,
        task.test_labels, task.n_words, task.seed,
    )  # fmt: skip


def _bags_of(bags, rows):
    chosen = object.__new__(Bags)
    chosen.words, chosen.weights = bags[torch.as_tensor(rows)]
    return chosen


def prioritized(task, plan, guide, seed, fraction=LATE[0], warmup=LATE[1], measured=POINTS):
    """Train with prioritization; measure at some numbers of steps."""
    torch.manual_seed(seed)
    start = time.process_time()
    trainer = Trainer(task.net(), task.inputs["train"], plan, SETTINGS)
    chooser = Chooser(task, guide, seed, fraction)
    steps, aside, points = 0, 0.0, {}
    while steps < N_STEPS:
        rows = trainer.rows if steps < warmup else chooser.choose(trainer.net)
        for batch in rows[torch.randperm(len(rows))].split(SETTINGS.batch_size):
            trainer.step(batch)
            steps += 1
            if steps in measured:
                paused = time.process_time()
                used = paused - start - aside - chooser.seconds
                points[str(steps)] = _measured(task, trainer.net) | {"seconds": used}
                aside += time.process_time() - paused
            if steps == N_STEPS:
                break
    points["last"] = points[str(N_STEPS)]
    return {"points": points}


def _measured(task, net):
    parts = {n: logits_of(net, i).numpy() for n, i in task.inputs.items() if n != "train"}
    return measure(parts, task.test_labels, task.val_labels["clean"])


class Chooser:
    """Chooses the samples of an epoch; `seconds` is what the targets' own training took."""

    def __init__(self, task, guide, seed, fraction):
        self.task, self.guide, self.seconds = task, guide, 0.0
        self.rng = np.random.default_rng([seed, 5])
        self.n_chosen, self.epoch = round(fraction * len(task.given)), 1  # after a warm-up of two
        self.target = None

    def choose(self, net):
        if isinstance(self.guide, np.ndarray):  # what a target was unsure of, epoch by epoch
            scores = self.guide[min(self.epoch, len(self.guide) - 1)]
            self.epoch += 1
            return torch.from_numpy(np.argsort(-scores, kind="stable")[: self.n_chosen])
        if self.guide == "balanced":
            return torch.from_numpy(self._balanced())
        criterion = "random" if self.guide == "random" else "entropy"
        sampling = "soft" if self.guide == "in proportion" else "top"
        selector = MaxEntropySelector(
            n_samples=self.n_chosen,
            criterion=criterion,
            sampling=sampling,
            random_state=int(self.rng.integers(2**31)),
        )
        return torch.from_numpy(selector.fit(self._proba(net)).get_support(indices=True))

    def _balanced(self):
        counts = np.bincount(self.task.given)
        p = 1.0 / counts[self.task.given]
        return self.rng.choice(len(p), self.n_chosen, replace=False, p=p / p.sum())

    def _proba(self, net):
        if self.guide in ("fixed target", "target of the epoch"):
            return self._target_proba()
        logits = logits_of(net, self.task.inputs["train"]).numpy()
        return self._scaled(net, logits) if "temperature" in self.guide else proba_of(logits)

    def _scaled(self, net, logits):
        val = logits_of(net, self.task.inputs["val"]).numpy()
        scaler = TemperatureScaling().fit(val, self.task.val_labels["clean"])
        return scaler.predict_proba(logits)

    def _target_proba(self):
        start = time.process_time()
        plan = Plan(cross_entropy_loss, self.task.given)
        if self.target is None:
            n_epochs = 10 if self.guide == "fixed target" else 2
            net, seed = self.task.net(n_hidden=256), self.task.seed + 700
            settings = Settings(n_epochs=n_epochs)
            self.target = train(self.task, plan, settings, seed=seed, watch=False, net=net).net
            self.trainer = Trainer(self.target, self.task.inputs["train"], plan, SETTINGS)
        elif self.guide == "target of the epoch":
            for batch in torch.randperm(len(self.task.given)).split(SETTINGS.batch_size):
                self.trainer.step(batch)
        self.seconds += time.process_time() - start
        return self._scaled(self.target, logits_of(self.target, self.task.inputs["train"]).numpy())
