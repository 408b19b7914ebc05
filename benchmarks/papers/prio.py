"""[PRIO]: which samples to train on, at equal numbers of gradient steps; CLINC150.

After a warm-up of 150 steps on all samples, every epoch trains on a fifth of the samples (or on
random ones of the same number), chosen by a guide: its own predictive entropy, that of a target,
balanced classes or chance. "Early" is a warm-up of 60 steps and a tenth of the samples. Redundant:
20 samples a class, each five times; imbalanced: from 100 down to 4 samples a class. A target is a
network of 256 units that is trained with mixup on all samples, and guides by what it was unsure of
after as many epochs. Steps are equal; seconds, of one thread, count the choosing.
"""

from __future__ import annotations

import time
from dataclasses import replace
from functools import cache, partial

import numpy as np
import torch

from skcalib.metrics import predictive_entropy
from skcalib.selection import MaxEntropySelector

from .claims import DIRECTION, METRICS, OWN, about, untested
from .measures import measure, proba_of
from .methods import CE, FOCAL, LS, Method, grid, mixed
from .needs import TEXTS
from .printed import rows as printed
from .results import Part, Study, described, settings_of
from .runner import chosen, compare
from .students import Settings, Trainer, all_logits, half_precision, logits_of
from .tables import Column, comparisons
from .texts import Bags, Clinc, text_task

# --- settings ------------------------------------------------------------------------------------

N_STEPS, POINTS = 450, (225, 450)
# (fraction of the samples, steps of the warm-up): the longer warm-up is two passes.
LATE, EARLY = (0.2, 150), (0.1, 60)
SETTINGS = Settings(n_epochs=1)
CASES = ("clean", "redundant", "imbalanced", "U20", "redundant, early", "imbalanced, early")
EVERYWHERE = ("random", "entropy", "in proportion")
# The claims of the poster: how the student is trained, and whose entropy chooses.
ALONE = (CE, LS, Method("mixup", mixed, grid(mixup_alpha=(0.1, 0.2, 0.4, 0.8))), FOCAL)
FRACTIONS = {"30 %": 0.3, "20 %": 0.2, "10 %": 0.1}
# With a target, students are less overconfident, and weaker losses may serve.
WITH_TARGET = "20 %"
TUNED = (
    replace(LS, candidates=grid(alpha=(0.001, 0.003, 0.01, 0.03))),
    Method("mixup", mixed, grid(mixup_alpha=(0.025, 0.05, 0.1, 0.2))),
    replace(FOCAL, candidates=grid(gamma=(0.125, 0.25, 0.5, 1.0))),
)
TARGET_EPOCHS = 20

# --- runs ----------------------------------------------------------------------------------------


def losses(options, records):
    """Every loss at every fraction, by the student's own entropy and by that of a target."""
    make, seeds = partial(make_task, Clinc(options.data, options.out), "clean"), options.seeds
    for setting in options.noise or FRACTIONS:
        fraction = FRACTIONS[setting]
        how = (SETTINGS, setting, seeds)
        train_one = partial(_guided, options.out, fraction)
        by = partial(compare, records, make, stops=False, train_one=train_one)
        by((*ALONE, replace(CE, name="random samples")), *how)
        if fraction == 0.2:
            # By a target, with the parameter that was chosen without one.
            guided = [
                replace(
                    method,
                    name=f"{method.name}, target",
                    candidates=(chosen(records, method.name, setting)["last"],),
                )
                for method in ALONE
            ]
            by(guided, *how)


def targets(options, records):
    """Table 2: each loss with a target and without, on a fifth of the samples.

    With a target, each loss chooses its parameter with the target. Alone it has the same
    candidates, which are smaller than those of the other table. Cross-entropy is the one there.
    """
    make = partial(make_task, Clinc(options.data, options.out), "clean")
    train_one = partial(_guided, options.out, FRACTIONS[WITH_TARGET])
    by = partial(compare, records, make, stops=False, train_one=train_one)
    by(TUNED, SETTINGS, WITH_TARGET, options.seeds)
    guided = [replace(method, name=f"{method.name}, target") for method in TUNED]
    by(guided, SETTINGS, WITH_TARGET, options.seeds)


def beside_cross_entropy(settings):
    """Besides, what cross-entropy has with and without the target."""
    alone = settings_of("prio_losses")[WITH_TARGET]
    methods = {name: {"last": alone[name]["last"]} for name in (CE.name, TARGET)}
    return {WITH_TARGET: methods | settings[WITH_TARGET]}


def _guided(folder, fraction, task, method, options, settings, seed, stops):
    guide = "random" if method.name == "random samples" else "entropy"
    if method.name.endswith(", target"):
        guide = target_entropies(folder, task)
    plan = method.plan(task, **options)
    steps = {"measured": (N_STEPS,), "n_steps": N_STEPS}
    return prioritized(task, plan, guide, seed, fraction, LATE[1], **steps)


def target_entropies(folder, task):
    """Return the entropies (epochs, n) that a target trained with mixup went through."""
    path = folder / f"prio_target_{task.seed}.npy"
    if not path.exists():
        torch.manual_seed(task.seed + 700)
        plan = mixed(task, 0.3)
        trainer = Trainer(task.net(n_hidden=256), task.inputs["train"], plan, SETTINGS)
        np.save(path, recorded(trainer, trainer.inputs, TARGET_EPOCHS))
    return np.load(path)


def recorded(trainer, inputs, n_epochs):
    """Return the entropies (n_epochs, n) that a training goes through."""
    epochs = trainer.epochs(n_epochs)
    lines = [entropies(trainer.net, inputs, trainer.device) for _ in epochs]
    return np.stack(lines).astype(np.float32)


def entropies(net, inputs, device):
    with half_precision(device):
        return predictive_entropy(proba_of(logits_of(net, inputs).numpy()))


def against_random(options, records):
    clinc = Clinc(options.data, options.out)
    for case in options.noise or CASES:
        when = EARLY if case.endswith(", early") else LATE
        tasks = cache(partial(make_task, clinc, case))
        for seed in options.seeds:
            for guide in (*EVERYWHERE, *["balanced"] * case.startswith("imbalanced")):
                key = {"setting": case, "method": guide, "seed": seed}
                compute = lambda s=seed, g=guide, t=tasks, w=when: prioritized(
                    t(s), CE.plan(t(s)), g, s, *w
                )
                records.get(key, compute)


def make_task(clinc, case, seed):
    if case in ("clean", "U20"):
        return text_task(clinc, 100, case, seed)
    if case.startswith("redundant"):
        task = text_task(clinc, 20, "clean", seed)
        return _subset(task, np.tile(np.arange(len(task.given)), 5))
    task = text_task(clinc, 100, "clean", seed)
    # From 100 samples a class down to 4, the order of the classes drawn anew.
    rng = np.random.default_rng([seed, 4])
    n_classes = len(np.unique(task.true))
    sizes = np.round(100 * 0.04 ** np.linspace(0, 1, n_classes)).astype(int)
    order = rng.permutation(n_classes)
    rows = [rng.choice(np.flatnonzero(task.true == k), n) for k, n in zip(order, sizes)]
    return _subset(task, np.concatenate(rows))


def _subset(task, rows):
    bags = object.__new__(Bags)
    bags.words, bags.weights = task.inputs["train"][torch.as_tensor(rows)]
    return replace(
        task, inputs=task.inputs | {"train": bags}, given=task.given[rows], true=task.true[rows],
        features=task.features[rows], _difficulty={},
    )  # fmt: skip


def prioritized(
    task, plan, guide, seed, fraction=LATE[0], warmup=LATE[1], *, measured=POINTS, n_steps=N_STEPS
):
    """Train with prioritization; measure at some numbers of steps."""
    torch.manual_seed(seed)
    start, aside = time.process_time(), 0.0
    trainer = Trainer(task.net(), task.inputs["train"], plan, SETTINGS)
    chooser = Chooser(task, guide, seed, fraction)
    steps, points = 0, {}
    while steps < n_steps:
        rows = trainer.rows if steps < warmup else chooser.choose(trainer.net)
        for batch in rows[torch.randperm(len(rows))].split(SETTINGS.batch_size)[: n_steps - steps]:
            trainer.step(batch)
            steps += 1
            if steps in (*measured, n_steps):
                paused = time.process_time()
                used = paused - start - aside
                points[str(steps)] = judged(task, trainer.net) | {"seconds": used}
                aside += time.process_time() - paused
    points["last"] = points[str(n_steps)]
    return {"points": points}


def judged(task, net):
    return measure(all_logits(net, task), task.test_labels, task.val_labels["clean"], task.human)


class Chooser:
    """Chooses the samples of an epoch."""

    def __init__(self, task, guide, seed, fraction):
        self.task, self.guide = task, guide
        self.rng = np.random.default_rng([seed, 5])
        self.n_chosen, self.epoch = round(fraction * len(task.given)), 1  # after a warm-up of two

    def choose(self, net):
        if isinstance(self.guide, np.ndarray):  # what a target was unsure of, epoch by epoch
            scores = self.guide[min(self.epoch, len(self.guide) - 1)]
            self.epoch += 1
            return torch.from_numpy(np.argsort(-scores, kind="stable")[: self.n_chosen])
        if self.guide == "balanced":
            p = 1.0 / np.bincount(self.task.given)[self.task.given]
            rows = self.rng.choice(len(p), self.n_chosen, replace=False, p=p / p.sum())
            return torch.from_numpy(rows)
        selector = MaxEntropySelector(
            n_samples=self.n_chosen,
            criterion="random" if self.guide == "random" else "entropy",
            sampling="soft" if self.guide == "in proportion" else "top",
            random_state=int(self.rng.integers(2**31)),
        )
        proba = proba_of(logits_of(net, self.task.inputs["train"]).numpy())
        return torch.from_numpy(selector.fit(proba).get_support(indices=True))


SHOWN = ("accuracy", "nll", "nll_scaled", "ece", "temperature")
COLUMNS = (*map(METRICS.get, SHOWN), Column("seconds", "CPU s", 1, 2))


def without_end(settings):
    """Keep of the last step what is claimed: the table shows the steps before."""
    for methods in settings.values():
        for points in methods.values():
            points["last"] = {n: v for n, v in points["last"].items() if n in ENDS}
    return settings


ENDS = ("options", "accuracy")
AFTER = {str(n): f"after {n} steps" for n in POINTS}

# --- claims --------------------------------------------------------------------------------------

CALIBRATING = (LS.name, "mixup", FOCAL.name)
TARGET = f"{CE.name}, target"


# Our losses by the names of the paper's rows.
PRINTED = {CE.name: "CE", LS.name: "LS", "mixup": "mixup", FOCAL.name: "focal"}


def of_table(metric, after, before=CE.name, *, table=1, other=0, of=tuple(FRACTIONS)):
    """Return what Table 1 or 2 prints of two losses, or Table 2 beside Table 1 of one."""
    tables = (f"Table {table}", {"other": f"Table {other}"} if other else {})
    return printed("PRIO", tables[0], metric, PRINTED[after], PRINTED[before], of, **tables[1])


_claim = about("prio_losses", rivals=CE.name, settings=FRACTIONS, paper=DIRECTION)
_target = about("prio_targets", settings=WITH_TARGET)
_random = about("prio", "entropy", "accuracy", "random", CASES)
CLAIMS = (
    *(_claim(f"Calibrating by {name} lowers the ECE of a student that learns its least certain "
             "samples.", "ece", method=name, headline="20 %", paper=of_table("ECE", name))
      for name in CALIBRATING),
    *(_claim(f"Calibrating by {name} costs less than a point of accuracy.", "accuracy",
             method=name, no_loss=True, paper=of_table("accuracy", name),
             headline="20 %" * (name == FOCAL.name)) for name in CALIBRATING),
    *(_claim(f"Calibrating by {name} helps after a temperature, too: log-loss.", "nll_scaled",
             method=name, paper=OWN) for name in CALIBRATING),
    _claim("Mixup is better calibrated than label smoothing.", "ece", LS.name, method="mixup",
           paper=of_table("ECE", "mixup", LS.name)),
    _claim("Mixup is more accurate than label smoothing.", "accuracy", LS.name, method="mixup",
           paper=of_table("accuracy", "mixup", LS.name)),
    _claim("A target trained with mixup chooses better samples than the student: ECE.", "ece",
           settings="20 %", method=TARGET, headline="20 %",
           paper=of_table("ECE", CE.name, table=2, other=1, of=("20 %",))),
    _claim("A target trained with mixup chooses better samples: accuracy.", "accuracy",
           settings="20 %", method=TARGET,
           paper=of_table("accuracy", CE.name, table=2, other=1, of=("20 %",))),
    *(_target(f"A target trained with mixup lowers the ECE of {name}, its parameter chosen with "
              "the target.", "ece", name, method=f"{name}, target",
              paper=of_table("ECE", name, name, table=2, other=1, of=(WITH_TARGET,)))
      for name in CALIBRATING),
    *(_target(f"A target trained with mixup raises the accuracy of {name}, its parameter chosen "
              "with the target.", "accuracy", name, method=f"{name}, target",
              paper=of_table("accuracy", name, name, table=2, other=1, of=(WITH_TARGET,)))
      for name in CALIBRATING),
    *(_target(f"With a target, calibrating by {name} lowers the ECE, too.", "ece", TARGET,
              method=f"{name}, target",
              paper=of_table("ECE", name, table=2, of=(WITH_TARGET,))) for name in CALIBRATING),
    _claim("The least certain samples beat random ones at equal steps.", "accuracy",
           "random samples", method=CE.name, paper=OWN, headline="10 %"),
    _random("They beat random samples in other cases.", settings=CASES[1:]),
    _random("They beat random samples early: after half of the steps.", point="225"),
    _random("A draw in proportion to entropy beats random samples.", method="in proportion"),
    _random("Entropy does more than balance the classes.", rivals="balanced",
            settings=("imbalanced", "imbalanced, early")),
    untested("Prioritization saves wall time on CIFAR-10 and CIFAR-100 with ResNet-34.",
             "no accelerator was at hand; `--scale full` has the settings"),
)  # fmt: skip

STUDY = Study(
    "[PRIO], texts",
    {
        "prio_losses": Part(losses, files=TEXTS),
        "prio_targets": Part(
            targets,
            order=(*ALONE, *TUNED),
            derive=beside_cross_entropy,
            shown=SHOWN,
            settings=described(targets.__doc__),
            files=TEXTS,
        ),
        "prio": Part(
            against_random,
            partial(comparisons, columns=COLUMNS, points=AFTER, reference="random"),
            derive=without_end,
            shown=(*SHOWN, "seconds"),
            files=TEXTS,
        ),
    },
    CLAIMS,
    described(__doc__),
)
