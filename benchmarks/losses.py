"""Forward and backward of every loss against torch's cross-entropy and one softmax.

Two bounds, timed in turns with the losses: cross-entropy alone, and cross-entropy plus one softmax
(forward and backward), for the formulas that need one. Then whole training steps, where the loss
is a small part, and MMCE by number of rows.

    python -m benchmarks.losses [--device cuda] [--threads 2]
"""

import argparse
import math

import torch
from torch.nn.functional import cross_entropy

from benchmarks._timing import least_seconds, print_ratios
from skcalib import losses

REPEATS = {(512, 1000): 150, (128, 10): 600}
NEEDS = {
    "DifficultyAwareLoss": "difficulty_weight",
    "UncertaintyWeightedLoss": "difficulty_weight",
}
NEEDS["CorrectnessRankingLoss"] = "history"


def family():
    for name in losses.__all__:
        if name.endswith("Loss"):
            yield name, getattr(losses, name)(), NEEDS.get(name)
    yield "FocalLoss(detach_weight=True)", losses.FocalLoss(detach_weight=True), None
    yield "DualFocalLoss(detach_weight=True)", losses.DualFocalLoss(detach_weight=True), None
    yield "DualFocalLoss(rival=second)", losses.DualFocalLoss(rival="second_largest"), None


def batch(n, n_classes, device):
    generator = torch.Generator().manual_seed(0)
    logits = 3 * torch.randn(n, n_classes, generator=generator)
    label = torch.randint(n_classes, (n,), generator=generator)
    row = torch.rand(n, generator=generator)
    return logits.to(device).requires_grad_(), label.to(device), row.to(device)


def synchronized(function, device):
    if device == "cpu":
        return function

    def run():
        function()
        torch.cuda.synchronize()

    return run


def steps(n, n_classes, device):
    """Name -> a function that runs forward and backward on one batch."""
    logits, label, row = batch(n, n_classes, device)
    upstream = torch.rand(n, n_classes, device=device)

    def softmax_step():
        torch.softmax(logits, 1).backward(upstream)

    def loss_step(loss, needs):
        extra = {} if needs is None else {needs: row}

        def step():
            logits.grad = None
            loss(logits, label, **extra).backward()

        return step

    named = {"torch softmax": softmax_step}
    named["torch CrossEntropyLoss"] = loss_step(torch.nn.CrossEntropyLoss(), None)
    smoothed = torch.nn.CrossEntropyLoss(label_smoothing=0.05)
    named["torch CrossEntropyLoss(label_smoothing)"] = loss_step(smoothed, None)
    named |= {name: loss_step(loss, needs) for name, loss, needs in family()}
    return {name: synchronized(step, device) for name, step in named.items()}


def print_family(n, n_classes, device):
    seconds = least_seconds(steps(n, n_classes, device), repeats=REPEATS[n, n_classes])
    alone = seconds["torch CrossEntropyLoss"]
    both = alone + seconds.pop("torch softmax")
    print(f"\n({n}, {n_classes}) float32; cross-entropy {1e6 * alone:.0f} us, ", end="")
    print(f"with one softmax {1e6 * both:.0f} us")
    print(f"  {'':<42}{'us':>8}{'x CE':>8}{'x (CE + softmax)':>18}")
    for name, value in seconds.items():
        print(f"  {name:<42}{1e6 * value:8.0f}{value / alone:8.2f}{value / both:18.2f}")


def print_training(device):
    """A step of an MLP 784-512-512-10 on 128 rows with SGD."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(128, 784, generator=generator).to(device)
    _, label, row = batch(128, 10, device)
    net = torch.nn.Sequential(
        torch.nn.Linear(784, 512), torch.nn.ReLU(), torch.nn.Linear(512, 512), torch.nn.ReLU(),
        torch.nn.Linear(512, 10),
    ).to(device)  # fmt: skip
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-6)

    def training(loss, needs):
        extra = {} if needs is None else {needs: row}

        def step():
            optimizer.zero_grad()
            loss(net(x), label, **extra).backward()
            optimizer.step()

        return synchronized(step, device)

    bound = "torch CrossEntropyLoss"
    named = {bound: training(torch.nn.CrossEntropyLoss(), None)}
    named |= {name: training(loss, needs) for name, loss, needs in family()}
    seconds = least_seconds(named, repeats=150)
    print_ratios("training step, MLP 784-512-512-10, 128 rows", bound, seconds)


def double_sum_mmce(logits, label):
    """MMCE as the papers' code computes it: all pairs of rows."""
    confidence, top = torch.softmax(logits, 1).max(1)
    gap = (top == label).float() - confidence
    kernel = torch.exp(-(confidence[:, None] - confidence[None, :]).abs() / 0.4)
    error = (gap[:, None] * gap[None, :] * kernel).sum().sqrt() / len(label)
    return cross_entropy(logits, label) + 2 * error


def print_mmce(device):
    for n in (512, 4096, 65_536):
        logits, label, _ = batch(n, 10, device)

        def step(loss, logits=logits, label=label):
            logits.grad = None
            loss(logits, label).backward()

        bound = "torch CrossEntropyLoss"
        named = {bound: lambda step=step: step(torch.nn.CrossEntropyLoss())}
        named["MMCELoss"] = lambda step=step: step(losses.MMCELoss())
        if n <= 4096:
            named["all pairs"] = lambda step=step: step(double_sum_mmce)
            a, b = losses.mmce_loss(logits, label).item(), double_sum_mmce(logits, label).item()
            if not math.isclose(a, b, rel_tol=1e-4):
                raise RuntimeError(f"MMCE differs: {a} and {b}")
        named = {name: synchronized(function, device) for name, function in named.items()}
        print_ratios(f"MMCE, {n} rows, 10 classes", bound, least_seconds(named, repeats=15))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    print(f"torch {torch.__version__}, {options.device}, {options.threads} thread(s)")
    for shape in REPEATS:
        print_family(*shape, options.device)
    print_training(options.device)
    print_mmce(options.device)


if __name__ == "__main__":
    main()
