"""Scorers, metrics, losses, nets and embedders on a GPU, each beside a bound of the same run.

    python -m benchmarks.cuda [--output FILE] [--device cuda] [--repeats 5] [--small] [--page]

The bound of a scorer is its own matrix products (of the prediction depth, those of the network and
of its probes), that of a metric one pass over the probabilities, that of a loss a training step
with torch's cross-entropy, that of a net a bare loop over all batches, that of an embedder or a
margin the passes of its model. Scorers are timed on the host as well, on part of the samples.
Lines also say how far the result is from that of an array on the host. Without a GPU the script
says so; ``--device cpu --small`` tries it: the ratios of the CPU mean nothing.
"""

from __future__ import annotations

import argparse
import copy
import json
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import timm
import torch
from skorch.dataset import ValidSplit
from torch.nn import functional

from skcalib import losses, metrics, nets
from skcalib.difficulty import KNNScorer, PredictionDepthScorer, RMDScorer
from skcalib.embeddings import LayerEmbedder, TimmEmbedder
from skcalib.posthoc import TemperatureScaling
from skcalib.selection import MaxEntropySelector
from skcalib.utils import _backends

from ._tables import simple_table

RESULTS = Path(__file__).with_name("cuda_results.json")
PAGE = RESULTS.parent.parent / "docs/measured/cuda.inc"
HOST_SAMPLES = 2000  # compared with the host
TEMPERATURE_SAMPLES = 8000  # the same for a temperature, which fewer samples fit on the host


class Case(NamedTuple):
    """What is timed beside its bound; and, of so many samples, also on the host."""

    name: str
    run: Callable[[], Any]
    bound: Callable[[], Any]
    error: float | None = None  # against the host
    n_samples: int | None = None
    on_host: Callable[[], Any] | None = None
    n_on_host: int | None = None


def blobs(n: int, d: int, n_classes: int, device: str) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator(device).manual_seed(0)
    y = torch.randint(n_classes, (n,), device=device, generator=generator)
    means = torch.randn((n_classes, d), device=device, generator=generator)
    return torch.randn((n, d), device=device, generator=generator).add_(means[y]), y


def rmd(device: str, n_samples: int, n_features: int, n_classes: int) -> Iterator[Case]:
    X, y = blobs(n_samples, n_features, n_classes, device)
    labels = y.cpu().numpy()
    square = torch.randn((n_features, n_features), device=device)
    wide = torch.randn((n_features, n_classes), device=device)
    scorer = RMDScorer().fit(X, y)
    part, part_labels = X[:HOST_SAMPLES].cpu().numpy(), labels[:HOST_SAMPLES]
    expected = scorer.difficulty(part, part_labels)
    apart = np.abs(scorer.difficulty(X[:HOST_SAMPLES], part_labels) - expected).max()
    error = float(apart / np.std(expected))
    yield Case("RMD fit", lambda: RMDScorer().fit(X, labels), lambda: X.T @ X)
    updated, one = copy.deepcopy(scorer), (X[:1], labels[:1])
    covariance = (X.T @ X / len(X)).double()
    yield Case(
        "RMD covariances decomposed", lambda: updated.partial_fit(*one).difficulty(*one),
        lambda: torch.linalg.eigh(covariance),
    )  # fmt: skip
    yield Case(
        "RMD difficulty(X, y)", lambda: scorer.difficulty(X, labels), lambda: X @ square, error,
        n_samples, lambda: scorer.difficulty(part, part_labels), len(part),
    )  # fmt: skip
    left_out = lambda: scorer.leave_one_out_difficulty(X, labels)
    yield Case("RMD leave_one_out_difficulty", left_out, lambda: [X @ square, X @ square])
    products = lambda: [(rows @ square) @ wide for rows in X.split(2**16)]
    yield Case("RMD difficulty(X)", lambda: scorer.difficulty(X), products)


def nearest(queries: torch.Tensor, train: torch.Tensor) -> list[torch.Tensor]:
    return [(rows @ train.T).amax(1) for rows in queries.split(2**10)]


def neighbors(device: str, n_samples: int, n_queries: int, n_features: int) -> Iterator[Case]:
    X, _ = blobs(n_samples + n_queries, n_features, 10, device)
    train, queries = X[:n_samples], X[n_samples:]
    scorer, on_host = KNNScorer(30).fit(train), KNNScorer(30).fit(train.cpu().numpy())
    few = queries[:100].cpu().numpy()
    error = float(np.abs(scorer.difficulty(queries[:100]) / on_host.difficulty(few) - 1).max())
    yield Case(
        "KNNScorer.difficulty", lambda: scorer.difficulty(queries),
        lambda: nearest(queries, train), error,
        n_queries, lambda: on_host.difficulty(few), len(few),
    )  # fmt: skip


@contextmanager
def host_alone() -> Iterator[None]:
    """Take nothing for an accelerator, not even the CPU: a network there is read as arrays."""
    former = set(_backends.ACCELERATORS)
    _backends.ACCELERATORS.clear()
    yield
    _backends.ACCELERATORS.update(former)


def depth(
    device: str, n_samples: int, n_queries: int, n_features: int, n_classes: int
) -> Iterator[Case]:
    X, y = blobs(n_samples + n_queries, n_features, n_classes, device)
    train, queries, labels = X[:n_samples], X[n_samples:], y[:n_samples].cpu().numpy()
    torch.manual_seed(0)
    network = nets.MLP(n_features, n_classes, hidden_layer_sizes=(512, 256)).eval()
    there = copy.deepcopy(network).to(device)
    scorer = PredictionDepthScorer(there)
    few = queries[:100].cpu().numpy()
    with host_alone():
        of_arrays = PredictionDepthScorer(network).fit(train.cpu().numpy(), labels)
        expected = of_arrays.probe_predict(few)
    # The fraction of the probes that answer otherwise: those with votes at the limit may, where
    # the network rounds otherwise.
    error = float(np.mean(scorer.fit(train, labels).probe_predict(queries[:100]) != expected))

    def on_host() -> None:
        with host_alone():
            of_arrays.difficulty(few)

    @torch.no_grad()
    def products() -> None:
        there(queries)
        for probe in scorer.probes_:
            nearest(probe.search.train_[:n_queries], probe.search.train_)

    yield Case(
        "PredictionDepthScorer.difficulty", lambda: scorer.difficulty(queries), products, error,
        n_queries, on_host, len(few),
    )  # fmt: skip
    fit = lambda: PredictionDepthScorer(there).fit(train, labels)
    yield Case("PredictionDepthScorer.fit", fit, torch.no_grad()(lambda: there(train)))


def of_probabilities(device: str, n_samples: int, n_classes: int) -> Iterator[Case]:
    proba, y = blobs(n_samples, n_classes, n_classes, device)
    torch.softmax(proba, 1, out=proba)
    labels = y.cpu().numpy()
    part, part_labels = proba[:HOST_SAMPLES], labels[:HOST_SAMPLES]
    accumulated = lambda *given: metrics.CalibrationAccumulator().update(*given).result()
    for name, metric in (
        ("expected_calibration_error", metrics.expected_calibration_error),
        ("area_under_risk_coverage", metrics.area_under_risk_coverage),
        ("CalibrationAccumulator", accumulated),
    ):
        expected = metric(part_labels, part.cpu().numpy())
        error = abs(float(metric(part_labels, part) - expected))
        yield Case(name, lambda m=metric: m(labels, proba), lambda: proba.max(1), error)
    by_weight = partial(metrics.classwise_calibration_error, strategy="quantile")
    tenth = proba[: n_samples // 10]
    sorts = lambda: [columns.sort() for columns in tenth.T.split(64)]
    error = abs(by_weight(part_labels, part) - by_weight(part_labels, part.cpu().numpy()))
    yield Case(
        "class-wise error, bins of equal weight", lambda: by_weight(labels[: len(tenth)], tenth),
        sorts, error,
    )  # fmt: skip
    calibrator = TemperatureScaling(input="proba", mix_uniform=True)
    fitted = lambda scores, y: calibrator.fit(scores, y).temperature_
    some, of_some = proba[:TEMPERATURE_SAMPLES], labels[:TEMPERATURE_SAMPLES]
    error = abs(fitted(some, of_some) / fitted(some.cpu().numpy(), of_some) - 1)
    yield Case("TemperatureScaling.fit", lambda: fitted(proba, labels), proba.log, error)
    entropy = partial(metrics.predictive_entropy, proba)
    yield Case("predictive_entropy", entropy, lambda: proba.sum(1))


def training_steps(device: str, batch: int, n_features: int, n_classes: int) -> Iterator[Case]:
    X, y = blobs(batch, n_features, n_classes, device)
    network = torch.nn.Linear(n_features, n_classes, device=device)

    def step(loss: Callable[..., torch.Tensor]) -> None:
        network.zero_grad()
        loss(network(X), y).backward()

    bound = lambda: step(functional.cross_entropy)
    values = torch.rand(batch, device=device)
    for name in [name for name in losses.__all__ if name.endswith("Loss")]:
        module = getattr(losses, name)()
        names = [n for n in ("difficulty_weight", "history") if getattr(module, f"uses_{n}")]
        loss = partial(module, **dict.fromkeys(names, values))
        with torch.no_grad():
            there, here = network(X), network(X).cpu()
            on_host = module(here, y.cpu(), **dict.fromkeys(names, values.cpu()))
            error = abs(float(loss(there, y)) - float(on_host))
        yield Case(f"step with {name}", lambda loss=loss: step(loss), bound, error)


def epochs(
    device: str, n_samples: int, n_features: int, n_classes: int, batch: int
) -> Iterator[Case]:
    X, y = (values.cpu().numpy() for values in blobs(n_samples, n_features, n_classes, device))

    def fit(inputs: Any = X, **options: Any) -> nets.CalibratedNetClassifier:
        settings = {"max_epochs": 1, "batch_size": batch, "device": device, "random_state": 0}
        return nets.CalibratedNetClassifier(nets.MLP, **settings | options).fit(inputs, y)

    def bare() -> None:
        there, labels = torch.tensor(X, device=device), torch.tensor(y, device=device)
        network = nets.MLP(n_features, n_classes).to(device)
        optimizer = torch.optim.Adam(network.parameters())
        for rows in torch.randperm(n_samples, device=device).split(batch):
            optimizer.zero_grad()
            functional.cross_entropy(network(there[rows]), labels[rows]).backward()
            optimizer.step()

    by_entropy = nets.EpochPrioritizer(MaxEntropySelector(fraction=0.3), warmup_epochs=0)
    monitored = {"train_split": ValidSplit(5), "callbacks": [nets.CalibrationScoring()]}
    variants: dict[str, dict[str, Any]] = {
        "arrays": {},
        "a tensor of the device": {"inputs": torch.tensor(X, device=device)},
        "mixup": {"mixup_alpha": 0.2},
        "mixed precision": {"mixed_precision": "bf16"},
        "class weights": {"class_weight": "balanced"},
        "a loss that looks back": {"criterion": losses.CorrectnessRankingLoss},
        "30 % by entropy": {"prioritizer": by_entropy},
        "records": {"callbacks": [nets.TrainingDynamics()]},
        "validation": monitored,
    }
    for name, options in variants.items():
        yield Case(f"epoch, {name}", lambda options=options: fit(**options), bare)

    net, few = fit(), torch.tensor(X[:batch], device=device, requires_grad=True)
    on_host = fit(device="cpu")
    state = {name: value.cpu() for name, value in net.module_.state_dict().items()}
    on_host.module_.load_state_dict(state)
    grad = partial(torch.autograd.grad, inputs=few, retain_graph=True)
    passes = lambda: [grad(logits) for logits in net.module_(few).sum(0)[1:]]
    margin = partial(nets.adversarial_input_margin, net, X[:batch])
    error = float(np.abs(margin() / nets.adversarial_input_margin(on_host, X[:batch]) - 1).max())
    yield Case("adversarial_input_margin", margin, passes, error)


def features(device: str, n_samples: int, size: int, batch: int) -> Iterator[Case]:
    images = np.random.RandomState(0).randint(256, size=(n_samples, size, size, 3), dtype=np.uint8)
    embedder = TimmEmbedder("resnet18", batch_size=batch, image_size=size, device=device)
    on_host = TimmEmbedder("resnet18", batch_size=batch, image_size=size, device="cpu")
    few = images[:batch]
    error = float(np.abs(embedder.transform(few) - on_host.transform(few)).max())
    network = timm.create_model("resnet18", num_classes=0).eval().to(device)
    ready = torch.rand(batch, 3, size, size, device=device)
    loop = lambda: [network(ready) for _ in range(n_samples // batch)]
    passes = torch.inference_mode()(loop)
    yield Case("TimmEmbedder.transform", lambda: embedder.transform(images), passes, error)
    layers = LayerEmbedder(torch.nn.Sequential(network), ["0.layer2"], pooling="mean").fit(ready)
    yield Case("LayerEmbedder, a tensor", lambda: layers.transform(ready), lambda: network(ready))
    rows = np.random.RandomState(0).rand(n_samples, 3, size, size).astype(np.float32)
    yield Case("LayerEmbedder, host arrays", lambda: layers.transform(rows), passes)


# Every size on a GPU, and tiny, to try the script.
SIZES: dict[Callable[..., Iterator[Case]], dict[str, tuple[int, int]]] = {
    rmd: {"n_samples": (1_000_000, 2000), "n_features": (1024, 16), "n_classes": (1000, 5)},
    neighbors: {"n_samples": (200_000, 500), "n_queries": (20_000, 100), "n_features": (512, 40)},
    depth: {"n_samples": (50_000, 500), "n_queries": (10_000, 100), "n_features": (1024, 40),
            "n_classes": (100, 4)},
    of_probabilities: {"n_samples": (2_000_000, 8000), "n_classes": (1000, 40)},
    training_steps: {"batch": (4096, 64), "n_features": (1024, 16), "n_classes": (1000, 5)},
    epochs: {"n_samples": (200_000, 512), "n_features": (256, 8), "n_classes": (100, 3),
             "batch": (512, 128)},
    features: {"n_samples": (4096, 16), "size": (224, 32), "batch": (256, 8)},
}  # fmt: skip


def seconds(function: Callable[[], Any], device: str) -> float:
    start = time.perf_counter()
    function()
    if device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - start


def measure(
    cases: Iterator[Case], sizes: dict[str, int], device: str, repeats: int
) -> Iterator[dict[str, Any]]:
    for case in cases:
        tasks = [case.run, case.bound, *([case.on_host] if case.on_host else [])]
        turns = [[seconds(task, device) for task in tasks] for _ in range(repeats + 1)]
        here, bound, *on_host = np.min(turns[1:], axis=0)  # the first one warms up
        figure = {
            "name": case.name, "sizes": sizes, "seconds": here, "bound_seconds": bound,
            "ratio": here / bound, "error_against_host": case.error,
        }  # fmt: skip
        if on_host:
            figure["samples_per_second"] = case.n_samples / here
            figure["samples_per_second_on_host"] = case.n_on_host / on_host[0]
        shown = {name: v for name, v in figure.items() if isinstance(v, float)}
        print(case.name, *(f"{name} {v:.3g}" for name, v in shown.items()), sep=", ", flush=True)
        yield figure


def page(result: dict[str, Any]) -> str:
    """Return the table of the guide; the steps of all losses are one line."""
    shown, rows = lambda ms: f"{ms:.0f}" if ms >= 10 else f"{ms:.2g}", []
    for figure in result["figures"]:
        error, per_second = figure["error_against_host"], figure.get("samples_per_second", 0)
        gain = per_second / figure["samples_per_second_on_host"] if per_second else 0
        rows.append((
            figure["name"], shown(1000 * figure["seconds"]), f"{figure['ratio']:.1f}",
            "" if error is None else f"{error:.0e}" if error else "0",
            f"{gain:.0f}" if gain else "",
        ))  # fmt: skip
    steps = [row for row in rows if row[0].startswith("step with")]
    ratios, errors = ([float(row[k]) for row in steps] for k in (2, 3))
    milliseconds = sorted(float(row[1]) for row in steps)
    folded = (
        f"step with one of {len(steps)} losses", f"{milliseconds[0]} to {milliseconds[-1]}",
        f"{min(ratios)} to {max(ratios)}", f"{max(errors):.0e}", "",
    )  # fmt: skip
    at = rows.index(steps[0])
    every = [*rows[:at], folded, *(row for row in rows[at:] if row not in steps)]
    head = ("what", "ms", "of the bound", "off by", "of one CPU thread")
    return f"{result['device']}, torch {result['torch']}.\n\n{simple_table(head, every)}\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--output", type=Path, help="write the figures there, as JSON")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--small", action="store_true", help="tiny sizes, to try the script")
    parser.add_argument("--page", action="store_true", help="write the guide's table alone")
    options = parser.parse_args()
    if options.page:
        PAGE.write_text(page(json.loads(RESULTS.read_text())))
        return 0
    if options.device == "cuda" and not torch.cuda.is_available():
        print("There is no GPU that torch can use here: nothing was measured.")
        return 0
    name = torch.cuda.get_device_name() if options.device == "cuda" else "CPU: no figures of a GPU"
    if options.device == "cpu":
        _backends.ACCELERATORS.add("cpu")
    # The bounds in full precision, as the products of the package are.
    torch.set_float32_matmul_precision("highest")
    warnings.simplefilter("ignore")
    print(f"{name}, torch {torch.__version__}")
    figures: list[dict[str, Any]] = []
    for cases, both in SIZES.items():
        sizes = {size: pair[options.small] for size, pair in both.items()}
        made = cases(options.device, **sizes)
        figures += measure(made, sizes, options.device, options.repeats)
        if options.output is not None:  # after every part: what is cut off leaves the others
            result = {"device": name, "torch": torch.__version__, "figures": figures}
            options.output.write_text(json.dumps(result, indent=1) + "\n")
        if options.device == "cuda":
            torch.cuda.empty_cache()
    return 0


if __name__ == "__main__":
    sys.exit(main())
