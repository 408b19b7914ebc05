"""One training loop for all methods: a plan says what the loss is and what it is given."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from skcalib.losses import CorrectnessHistory
from skcalib.nets._data import Mixup
from skcalib.posthoc import TemperatureScaling

from .measures import nll

# No training takes more epochs; None: as many as its settings say.
MAX_EPOCHS = None


@dataclass(frozen=True)
class Settings:
    """How long and how a student is trained."""

    n_epochs: int
    lr: float = 0.02
    batch_size: int = 200
    weight_decay: float = 0.0
    optimizer: str = "adam"
    device: str = "cpu"
    cosine: bool = False  # stochastic gradient descent always has that schedule, or milestones
    milestones: tuple[int, ...] = ()  # epochs at which the rate falls to a tenth


@dataclass
class Plan:
    """The loss, a function of ``skcalib.losses``, and its inputs for all training samples."""

    loss: Callable[..., torch.Tensor]
    target: Any
    rows: Any = None
    per_sample: dict = field(default_factory=dict)
    uses_history: bool = False
    weight_decay: float = 0.0
    mixup_alpha: float = 0.0


@dataclass
class Trained:
    """Logits of all parts after the last epoch and, by name, at each epoch to stop at."""

    net: torch.nn.Module
    last: dict
    stops: dict
    epochs: dict


def half_precision(device):
    """Return a context that computes in bfloat16 on CUDA, and changes nothing elsewhere."""
    return torch.autocast("cuda", torch.bfloat16, enabled=device.startswith("cuda"))


def logits_of(net, inputs, batch_size=2000):
    net.eval()
    with torch.no_grad():
        rows = torch.arange(len(inputs)).split(batch_size)
        logits = torch.cat([net(*inputs[r]).float().cpu() for r in rows])
    net.train()
    return logits


def make_optimizer(net, settings, weight_decay=0.0):
    decay = settings.weight_decay + weight_decay
    if settings.optimizer == "sgd":
        optimizer = torch.optim.SGD(
            net.parameters(), settings.lr, momentum=0.9, weight_decay=decay
        )
    else:
        # AdamW without decay is Adam. One kernel for all parameters is what pays here.
        optimizer = torch.optim.AdamW(
            net.parameters(), settings.lr, weight_decay=decay, fused=True
        )
    schedules = torch.optim.lr_scheduler
    if settings.milestones:
        return optimizer, schedules.MultiStepLR(optimizer, list(settings.milestones))
    if settings.cosine or settings.optimizer == "sgd":
        return optimizer, schedules.CosineAnnealingLR(optimizer, settings.n_epochs)
    return optimizer, None


class Trainer:
    """Steps of one plan: the loss gets the inputs of the samples of the batch."""

    def __init__(self, net, inputs, plan, settings):
        # Channels last is what convolutions in bfloat16 are fast with.
        layout = {"memory_format": torch.channels_last} if "cuda" in settings.device else {}
        self.net, self.inputs, self.plan = net.to(settings.device, **layout), inputs, plan
        self.device, self.settings = settings.device, settings
        self.optimizer, self.schedule = make_optimizer(net, settings, plan.weight_decay)
        self.target = torch.as_tensor(plan.target).to(self.device)
        self.per_sample = {
            name: torch.as_tensor(value, dtype=torch.float32).to(self.device)
            for name, value in plan.per_sample.items()
        }
        n_samples = len(self.target)
        self.history = None
        if plan.uses_history:
            self.history = CorrectnessHistory(n_samples, device=self.device)
        self.rows = torch.arange(n_samples) if plan.rows is None else torch.as_tensor(plan.rows)

    def step(self, batch):
        samples, mixup = self.inputs[batch], None
        if self.plan.mixup_alpha:
            mixup = Mixup.draw(self.plan.mixup_alpha, len(batch))
            samples = self.inputs.mixed(samples, mixup)
        with half_precision(self.device):
            logits = self.net(*samples).float()
        batch = batch.to(self.device)
        inputs = {name: value[batch] for name, value in self.per_sample.items()}
        target = self.target[batch]
        if mixup is not None:
            target = mixup.targets(target, logits.shape[1])
        if self.history is not None:
            inputs["history"] = self.history.fraction_correct(batch)
            self.history.record(batch, logits.detach(), target)
        loss = self.plan.loss(logits, target, **inputs)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()

    def epochs(self, n_epochs, choose=None):
        """Train on all rows, or those that `choose` returns for the net and the epochs done."""
        for epoch in range(min(n_epochs, MAX_EPOCHS or n_epochs)):
            rows = self.rows if choose is None else choose(self.net, epoch)
            for batch in rows[torch.randperm(len(rows))].split(self.settings.batch_size):
                self.step(batch)
            if self.schedule is not None:
                self.schedule.step()
            yield epoch + 1


def train(task, plan, settings, *, seed, watch=True):
    """Train a student of a task; with `watch`, keep the epochs that validation would stop at."""
    torch.manual_seed(seed)
    trainer = Trainer(task.net(), task.inputs["train"], plan, settings)
    best = dict.fromkeys(task.val_labels, np.inf)
    states, epochs = {}, {}
    for epoch in trainer.epochs(settings.n_epochs):
        # Every other epoch: the search for a temperature costs as much as the epoch.
        if not watch or (settings.n_epochs - epoch) % 2:
            continue
        val = logits_of(trainer.net, task.inputs["val"]).numpy()
        for name, labels in task.val_labels.items():
            # After temperature scaling on the same samples.
            loss = nll(
                labels, TemperatureScaling(mix_uniform=True).fit(val, labels).predict_proba(val)
            )
            if loss < best[name]:
                best[name], states[name], epochs[name] = loss, _copy(trainer.net), epoch
    end, last = _copy(trainer.net), all_logits(trainer.net, task)
    stops = {}
    for name, state in states.items():
        trainer.net.load_state_dict(state)
        stops[name] = last if epochs[name] == settings.n_epochs else all_logits(trainer.net, task)
    trainer.net.load_state_dict(end)
    return Trained(trainer.net, last, stops, epochs)


def _copy(net):
    return {name: value.clone() for name, value in net.state_dict().items()}


def all_logits(net, task):
    parts = ("val", "test", "ood")
    return {n: logits_of(net, i).numpy() for n, i in task.inputs.items() if n in parts}
