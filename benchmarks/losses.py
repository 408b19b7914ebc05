"""Training steps with every loss against the same steps with torch's cross-entropy.

A step is forward, loss, backward and a step of plain SGD, the cheapest optimizer and hence the
strictest bound, of two models: an MLP 784-512-512-10 on 128 samples, and a linear head 512 -> 1000
on 512 samples. Losses that take longer than they should are named. Then MMCE alone by number of
samples, which must grow like n log n.

    python -m benchmarks.losses [--threads 1] [--repeats 5]
"""

import math

import torch
from torch import nn

from benchmarks._timing import least_seconds, print_speed, speed_options
from skcalib import losses
from skcalib.losses import functional

REFERENCE = "torch CrossEntropyLoss"
BOUND = 1.08
# Losses that need more than the probability of the label.
WIDER_BOUND = 1.2
WIDER = {
    "BrierLoss", "BSCELoss", "CorrectnessRankingLoss", "DifficultyAwareLoss", "DualFocalLoss",
    "EntropyRegularizedLoss", "MMCELoss", "ZeroHingeLoss",
}  # fmt: skip


def family():
    """Name -> loss with its default parameters."""
    names = [name for name in losses.__all__ if name.endswith("Loss")]
    return {REFERENCE: nn.CrossEntropyLoss()} | {name: getattr(losses, name)() for name in names}


def training_step(model, features, n_classes, loss):
    n = len(features)
    target, values = torch.randint(n_classes, (n,)), torch.rand(n)
    names = ("difficulty_weight", "history")
    extra = {name: values for name in names if getattr(loss, f"uses_{name}", False)}
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)

    def step():
        optimizer.zero_grad()
        loss(model(features), target, **extra).backward()
        optimizer.step()

    return step


def measure(repeats):
    mlp = nn.Sequential(
        nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10)
    )
    for name, model, features, n_classes in (
        ("MLP, 128 x 10", mlp, torch.randn(128, 784), 10),
        ("head, 512 x 1000", nn.Linear(512, 1000), torch.randn(512, 512), 1000),
    ):
        steps = {
            loss_name: training_step(model, features, n_classes, loss)
            for loss_name, loss in family().items()
        }
        least_seconds(steps, repeats=1)  # warms up
        seconds = print_speed(f"training step, {name}", REFERENCE, steps, repeats=repeats)
        ratios = {loss: value / seconds[REFERENCE] for loss, value in seconds.items()}
        bounds = {loss: WIDER_BOUND if loss in WIDER else BOUND for loss in ratios}
        above = [loss for loss, ratio in ratios.items() if ratio > bounds[loss]]
        print(f"  above {BOUND}, or {WIDER_BOUND} where more is needed: {', '.join(above) or '-'}")


def mmce_growth(sizes, repeats):
    """Print nanoseconds of MMCE, forward and backward, divided by n log n."""
    print("\nMMCE, ns / (n log2 n):")
    for n in sizes:
        logits, target = torch.randn(n, 10, requires_grad=True), torch.randint(10, (n,))
        step = lambda z=logits, y=target: functional.mmce_loss(z, y).backward()
        seconds = least_seconds({"MMCE": step}, repeats=repeats)["MMCE"]
        print(f"  n = {n}: {1e9 * seconds / (n * math.log2(n)):.1f}")


def main():
    options = speed_options(__doc__)
    torch.manual_seed(0)
    more = 1 if options.small else 24
    measure(more * options.repeats)
    mmce_growth(map(options.size, (512, 4096, 32_768, 262_144)), 2 * options.repeats)


if __name__ == "__main__":
    main()
