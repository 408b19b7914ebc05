"""Training steps with every loss against the same steps with torch's cross-entropy.

A step is forward, loss, backward and a step of plain SGD, the cheapest optimizer and hence the
strictest bound, of two models: an MLP 784-512-512-10 on 128 samples, and a linear head 512 -> 1000
on 512 samples. The losses take turns; the table shows the ratio of the least times and that of the
medians. On the CPU the times are those of the process, so that other processes disturb them less.
Then MMCE alone by number of samples, which must grow like n log n.

    python -m benchmarks.losses [--device cuda] [--threads 1] [--rounds 120] [--out FILE.json]
"""

import argparse
import json
import math
import statistics
import time
from pathlib import Path

import torch
from torch import nn

from skcalib import losses

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


def models():
    """Name -> (model, features, number of classes)."""
    mlp = nn.Sequential(
        nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10)
    )
    return {
        "MLP": (mlp, torch.randn(128, 784), 10),
        "head": (nn.Linear(512, 1000), torch.randn(512, 512), 1000),
    }


def extra_inputs(loss, n, device):
    values = torch.rand(n).to(device)
    names = ("difficulty_weight", "history")
    return {name: values for name in names if getattr(loss, f"uses_{name}", False)}


def training_step(model, features, n_classes, loss, device):
    model, features = model.to(device), features.to(device)
    target = torch.randint(n_classes, (len(features),)).to(device)
    extra = extra_inputs(loss, len(features), device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)

    def step():
        optimizer.zero_grad()
        loss(model(features), target, **extra).backward()
        optimizer.step()
        if device != "cpu":
            torch.cuda.synchronize()

    return step


def seconds_in_turns(steps, rounds, device):
    """Return all times of every step; each round starts with another one."""
    clock = time.process_time if device == "cpu" else time.perf_counter
    names = list(steps)
    seconds = {name: [] for name in names}
    for i in range(rounds):
        for name in names[i % len(names) :] + names[: i % len(names)]:
            start = clock()
            steps[name]()
            seconds[name].append(clock() - start)
    return seconds


def measure(rounds, device):
    """Return (loss, model) -> milliseconds and ratios to the reference."""
    results = {}
    for model_name, (model, features, n_classes) in models().items():
        steps = {
            name: training_step(model, features, n_classes, loss, device)
            for name, loss in family().items()
        }
        seconds_in_turns(steps, 3, device)
        times = seconds_in_turns(steps, rounds, device)
        least, median = min(times[REFERENCE]), statistics.median(times[REFERENCE])
        for name, values in times.items():
            results.setdefault(name, {})[model_name] = {
                "least_ms": 1e3 * min(values),
                "least_ratio": min(values) / least,
                "median_ratio": statistics.median(values) / median,
            }
    return results


def print_table(results):
    print(f"\n{'':<26}{'bound':>6}{'MLP, 128 x 10':>27}{'head, 512 x 1000':>27}")
    print(f"{'':<32}{2 * '       ms   least  median'}")
    for name, result in results.items():
        bound = WIDER_BOUND if name in WIDER else BOUND
        line = f"{name:<26}{'' if name == REFERENCE else bound:>6}"
        for part in result.values():
            line += "{least_ms:>11.2f}{least_ratio:>8.3f}{median_ratio:>8.3f}".format(**part)
        missed = any(part["least_ratio"] > bound for part in result.values())
        print(line + ("  above the bound" if missed else ""))


def mmce_growth(device):
    """Return n -> nanoseconds of MMCE, forward and backward, divided by n log n."""
    growth = {}
    for n in (512, 4096, 32_768, 262_144):
        logits = torch.randn(n, 10).to(device).requires_grad_()
        target = torch.randint(10, (n,)).to(device)

        def step(logits=logits, target=target):
            losses.mmce_loss(logits, target).backward()

        least = min(seconds_in_turns({"MMCE": step}, 10, device)["MMCE"])
        growth[n] = 1e9 * least / (n * math.log2(n))
    return growth


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=120)
    parser.add_argument("--out", type=Path, help="write the results as JSON")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    where = f"torch {torch.__version__}, {options.device}, {options.threads} thread(s)"
    print(f"{where}, {options.rounds} rounds; plain SGD; times by those with {REFERENCE}")
    results = measure(options.rounds, options.device)
    print_table(results)
    growth = mmce_growth(options.device)
    print("\nMMCE, ns / (n log2 n):", *(f"n = {n}: {value:.1f}" for n, value in growth.items()))
    if options.out is not None:
        options.out.write_text(
            json.dumps({"where": where, "steps": results, "mmce_growth": growth}, indent=1)
        )


if __name__ == "__main__":
    main()
