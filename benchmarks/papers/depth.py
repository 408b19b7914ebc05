"""[DEPTH]: its claims on four data sets, over independent runs.

Handwritten digits; classes made by ``make_classification``; sentence embeddings of 2000 queries of
CLINC150, 20 intents; features that a ResNet-20 has of 2000 test images of CIFAR-10. A run is an
ensemble of perceptrons with four hidden layers, each trained on three quarters of the samples
(with a tenth of the labels flipped), a fresh one of which held-out samples are asked, and one that
memorizes 40 % flipped labels. Initial weights, splits and flips are drawn anew; standard errors
are over runs. Lines of the bounds go from full agreement at depth 0 to chance at the deepest.
"""

from __future__ import annotations

import warnings
from functools import partial

import numpy as np
import torch
from scipy.stats import spearmanr
from sklearn.base import clone
from sklearn.datasets import load_digits, make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.preprocessing import StandardScaler

from skcalib.datasets import flip_labels
from skcalib.difficulty import DifficultyProfiler, PredictionDepthScorer
from skcalib.difficulty.training_dynamics import prediction_depth, prediction_entropy
from skcalib.losses import CrossEntropyLoss, ZeroHingeLoss
from skcalib.nets import MLP

from .claims import DIRECTION, METRICS, about, untested
from .needs import RESNET20
from .printed import columns, value
from .results import Part, Study, described, short
from .runner import found
from .tables import Column, values_tables

N_REPEATS, N_NEIGHBORS = 12, 30
# Loss and descent of Sec. 3.3: rate, momentum, steps (a fifth of the rate after each), batch size
# (None: all samples). The 0-hinge loss on the full batch has a four-hundredth of the paper's steps
# at four hundred times its rate.
N_DESCENDED, N_MEANS = 600, 6
CONTROL, BOTH = "cross-entropy, SGD", "0-hinge, GD"
DESCENTS = {
    CONTROL: (CrossEntropyLoss, 0.02, 0.9, (3200,), 32),
    "cross-entropy, GD": (CrossEntropyLoss, 0.0256, 0.9, (2000,), None),
    "0-hinge, SGD": (ZeroHingeLoss, 0.04, 0.9, (2000, 1000), 32),
    BOTH: (ZeroHingeLoss, 0.0256, 0.95, (2000,), None),
}
PROBES = ("nearest neighbors", "logistic regression", "logistic regression, other half")
FILES = ("clinc150_minilm.npz", RESNET20)
LAYERS = ("input", *(f"layer {i}" for i in range(1, 5)), "softmax")


def digits(folder):
    X, y = load_digits(return_X_y=True)
    return X / 16, y


def made(folder):
    return make_classification(
        2000, 20, n_informative=8, n_redundant=4, n_classes=5, n_clusters_per_class=2,
        class_sep=1.5, flip_y=0.0, random_state=0,
    )  # fmt: skip


def queries(folder):
    with np.load(folder / "clinc150_minilm.npz") as data:
        kept = data["y_train"] < 20
        X, y = data["X_train"][kept].astype(np.float32), data["y_train"][kept]
    return X * np.sqrt(X.shape[1]), y  # of unit length so far


def image_features(folder):
    with np.load(folder / "cifar10_resnet20_features.npz") as data:
        return data["features"][:2000].astype(np.float32), data["y"][:2000]


SETS = {"digits": digits, "made classes": made, "queries": queries,
        "image features": image_features}  # fmt: skip


def scorer(seed=None, max_iter=60):
    net = MLPClassifier(
        (64,) * 4, alpha=0.0, learning_rate_init=3e-3, max_iter=max_iter, tol=0.0,
        n_iter_no_change=max_iter, random_state=seed,
    )  # fmt: skip
    return PredictionDepthScorer(net)


def run(measure, options, records):
    for seed in options.seeds:
        for name in options.noise or SETS:
            compute = partial(measure, name, partial(SETS[name], options.data), seed)
            records.get({"setting": name, "seed": seed}, compute)


def measured(name, load, seed, n_repeats=None):
    X, y = load()
    given, _ = flip_labels(y, fraction=0.1, random_state=seed)
    with warnings.catch_warnings():
        # The number of epochs is given: there is nothing to converge to.
        warnings.simplefilter("ignore", ConvergenceWarning)
        profiler = DifficultyProfiler(
            scorer(), n_repeats=n_repeats or N_REPEATS, test_size=0.25, random_state=seed
        ).fit(X, given)
        values = of_the_ensemble(profiler, given)
        values |= of_a_fresh_network(X, given, profiler.profile_["difficulty_type"], seed)
        values |= of_random_labels(X, y, seed)
    return found(name, "value", {name: float(value) for name, value in values.items()})


def over_data_sets(settings):
    """Besides, per seed the correlation of mean depth and accuracy over the data sets."""
    if len(settings) < 3:
        return settings
    of_sets = [
        [methods[name]["last"]["value"] for methods in settings.values()]
        for name in ("mean depth", "accuracy, held out")
    ]
    n = min(len(values) for part in of_sets for values in part)
    depths, accuracies = (np.array([values[:n] for values in part]) for part in of_sets)
    value = [short(spearmanr(*pair)[0]) for pair in zip(depths.T, accuracies.T)]
    name = "mean depth and accuracy"
    return settings | {"data sets": {name: {"last": {"options": {}, "value": value}}}}


def rank_correlation(a, b):
    """Return Spearman's correlation where both are known."""
    known = ~(np.isnan(a) | np.isnan(b))
    a, b = a[known], b[known]
    # Of few samples all may be alike, and then there is no correlation.
    return spearmanr(a, b)[0] if len(np.unique(a)) > 1 < len(np.unique(b)) else np.nan


def of_the_ensemble(profiler, y):
    held_out, profile = profiler.held_out_, profiler.profile_
    depth = profiler.depth_[held_out]
    correct = (profiler.predictions_ == y)[held_out].astype(float)
    mean_depth = profile["depth_held_out"]
    learned = profiler.iteration_learned_[held_out].astype(float)
    deep = depth > np.nanmedian(depth)
    halves = [_mean_depth(profiler.depth_[half::2], held_out[half::2]) for half in (0, 1)]
    return {
        "accuracy, held out": correct.mean(),
        "no depth": np.isnan(depth).mean(),
        "shallow minus deep, accuracy": correct[~deep].mean() - correct[deep].mean(),
        "depth and correct": rank_correlation(depth, correct),
        "depth and consensus": rank_correlation(mean_depth, profile["consensus_consistency"]),
        "depth and iteration learned": rank_correlation(depth, learned),
        "depths of two halves": rank_correlation(*halves),
        "mean depth": np.nanmean(mean_depth),
        **_bounds(mean_depth, profile, len(np.unique(y))),
        "depth and disagreement of others": _of_others(profiler),
    }


def _bounds(depth, profile, n_classes):
    """Fractions of samples on the right side of a line, minus those at shuffled depths.

    Lines go from agreement at depth 0 to chance at the deepest.
    """
    known = ~np.isnan(depth)
    share = depth[known] / depth[known].max()
    entropy = profile["prediction_entropy"][known]
    consistency = profile["consensus_consistency"][known]
    sides = {"depth": share, "shuffled": np.random.default_rng(0).permutation(share)}
    above = {n: (consistency >= 1 - (1 - 1 / n_classes) * x).mean() for n, x in sides.items()}
    below = {n: (entropy <= np.log(n_classes) * x).mean() for n, x in sides.items()}
    return {
        "samples above the line of consistency": above["depth"],
        "above the line, minus shuffled": above["depth"] - above["shuffled"],
        "samples below the line of entropy": below["depth"],
        "below the line, minus shuffled": below["depth"] - below["shuffled"],
    }


def _of_others(profiler):
    """Correlation of the depth in one network with the entropy of what all others answer."""
    found = []
    for run, held_out in enumerate(profiler.held_out_):
        others = np.delete(profiler.predictions_, run, axis=0)
        entropy = prediction_entropy(others)
        found.append(rank_correlation(profiler.depth_[run][held_out], entropy[held_out]))
    return np.nanmean(found)


def _mean_depth(depth, held_out):
    """Return the mean depth of each sample in networks that held it out; NaN where none did."""
    depths = np.ma.masked_array(depth, mask=~held_out | np.isnan(depth))
    return depths.mean(axis=0).filled(np.nan)


def output_margin(logits):
    """Return the largest logit minus the second largest."""
    return np.ptp(np.partition(logits, -2)[:, -2:], axis=1)


def of_a_fresh_network(X, y, form, seed, make_scorer=scorer):
    """Output margin and middle probe of one network, on samples that it held out."""
    train, test = train_test_split(np.arange(len(y)), test_size=0.25, random_state=seed)
    fitted = make_scorer(seed=1000 + seed).fit(X[train], y[train])
    depth, net = fitted.difficulty(X[test]), fitted.estimator_
    # Logits up to a constant of the sample, which no margin sees.
    margin = output_margin(np.log(np.maximum(net.predict_proba(X[test]), 1e-300)))
    nothing = np.zeros(len(test), dtype=bool)
    network = fitted.middle_probe_predict(X[test], nothing) == y[test]
    middle = fitted.middle_probe_predict(X[test]) == y[test]
    unclear = form[test] == "ambiguous_without_label"
    found = {"depth and margin": rank_correlation(depth, margin)}
    for k in (3, 10):
        other = clone(fitted).set_params(estimator=FrozenEstimator(net), n_neighbors=k)
        other.fit(X[train], y[train])
        found[f"depth with {k} neighbors"] = rank_correlation(depth, other.difficulty(X[test]))
    found["ambiguous without label"] = unclear.mean()
    found["middle minus network, all"] = middle.mean() - network.mean()
    if isinstance(net, MLPClassifier):
        margin = input_margin(partial(_logits, net), X[test])
        found["depth and input margin"] = rank_correlation(depth, margin)
    if unclear.any():
        found["middle minus network, ambiguous"] = middle[unclear].mean() - network[unclear].mean()
    return found


def _logits(net, X):
    """Return the logits of a perceptron of scikit-learn for a tensor."""
    for i, (weights, bias) in enumerate(zip(net.coefs_, net.intercepts_)):
        X = X.relu() if i else X
        X = X @ torch.from_numpy(weights).double() + torch.from_numpy(bias).double()
    return X


def input_margin(logits_of, X):
    """Distance to the nearest linearized boundary of a network, min (z_i - z_j) / |grad|."""
    X = torch.tensor(np.asarray(X), dtype=torch.float64, requires_grad=True)
    logits = logits_of(X)
    top = logits.argmax(dim=1)
    margins = []
    for j in range(logits.shape[1]):
        gap = logits.gather(1, top[:, None])[:, 0] - logits[:, j]
        (slope,) = torch.autograd.grad(gap.sum(), X, retain_graph=True)
        distance = gap / slope.norm(dim=1).clamp_min(1e-12)
        margins.append(torch.where(top == j, torch.inf, distance).detach())
    return torch.stack(margins).min(dim=0).values.numpy()


def of_random_labels(X, y, seed, make_scorer=scorer, max_iter=300):
    """Accuracy of first and last probe on samples with a memorized wrong label."""
    given, changed = flip_labels(y, fraction=0.4, random_state=seed)
    fitted = make_scorer(seed=2000 + seed, max_iter=max_iter).fit(X, given)
    probes = fitted.probe_predict(X[changed])
    true = (probes == y[changed, None]).mean(axis=0)
    memorized = (probes == given[changed, None]).mean(axis=0)
    early = true[: len(true) // 2 + 1].max()
    return {
        "true label, best early probe": early,
        "true label, last probe": true[-1],
        "changed label, first probe": memorized[0],
        "changed label, last probe": memorized[-1],
        "early minus last, true label": early - true[-1],
    }


def margins(name, load, seed):
    """The intervention of Sec. 3.3: 0-hinge loss, full batch, small rate; and each change alone.

    Per combination the accuracy, the mean output margin (in powers of ten), the median input
    margin and the mean depth of held-out samples, and how well nearest neighbors in the hidden
    layers know the classes of training samples.
    """
    X, y = load()
    parts = train_test_split(
        X.astype(np.float32), y, train_size=N_DESCENDED, test_size=300, random_state=seed
    )
    methods = {
        loss_and_descent: {"last": _margins_of(*parts, seed, *how)}
        for loss_and_descent, how in DESCENTS.items()
    }
    return {"found": {name: methods}}


def _margins_of(X_train, X_test, y_train, y_test, seed, *how):
    net = descended(X_train, y_train, [seed], *how).eval()
    depth, logits, hidden = _depth_of(net, X_train, y_train, X_test)
    values = {
        "accuracy": (logits.argmax(axis=1) == y_test).mean(),
        "output margin": np.log10(output_margin(logits).mean()),
        "log margin": np.log(np.median(input_margin(net.double(), X_test))),
        "depth": depth.mean(),
        "hidden probes": np.mean(hidden),
    }
    return {metric: float(value) for metric, value in values.items()}


def _depth_of(net, X_train, y_train, X_test):
    """Return depths and logits of test samples, and training accuracies of the hidden probes."""
    (train, _), (test, logits) = (_layers(net, X) for X in (X_train, X_test))
    probes = [KNeighborsClassifier(N_NEIGHBORS).fit(layer, y_train) for layer in train]
    neighbors = np.stack([probe.predict(layer) for probe, layer in zip(probes, test)], axis=1)
    # Where the last probe disagrees with the network, no layer is deep enough.
    depth = prediction_depth(neighbors, logits.argmax(axis=1))
    hidden = [probe.score(layer, y_train) for probe, layer in zip(probes[1:-2], train[1:-2])]
    return np.nan_to_num(depth, nan=neighbors.shape[1]), logits, hidden


def descended(X, y, seed, loss, rate, momentum, steps, batch_size):
    """Train a perceptron by gradient descent; the rate falls to a fifth after each of `steps`.

    Without a batch size, every step is on all samples.
    """
    torch.manual_seed(sum(1000**i * part for i, part in enumerate(seed)))
    net, loss = MLP(X.shape[1], len(np.unique(y)), hidden_layer_sizes=(64,) * 4), loss()
    optimizer = torch.optim.SGD(net.parameters(), rate, momentum)
    X, y = torch.from_numpy(X), torch.from_numpy(y)
    for n_steps in steps:
        for _ in range(n_steps):
            rows = slice(None) if batch_size is None else torch.randint(len(y), (batch_size,))
            optimizer.zero_grad()
            loss(net(X[rows]), y[rows]).backward()
            optimizer.step()
        for group in optimizer.param_groups:
            group["lr"] /= 5
    return net


def _layers(net, X):
    """Return input, values before each activation and softmax, and the logits."""
    found = [torch.from_numpy(X)]
    hooks = [
        module.register_forward_hook(lambda _, __, output: found.append(output))
        for module in net.modules() if isinstance(module, torch.nn.Linear)
    ]  # fmt: skip
    with torch.no_grad():
        logits = net(found[0])
    for hook in hooks:
        hook.remove()
    return [layer.numpy() for layer in (*found[:-1], logits.softmax(1))], logits.numpy()


def means(name, load, seed):
    """Figure 6: mean depth of held-out samples against the logarithm of their mean margins.

    Over networks with other initial weights and other batches, all of the same samples, trained as
    the control of Sec. 3.3.
    """
    X, y = load()
    X_train, X_test, y_train, _ = train_test_split(
        X.astype(np.float32), y, train_size=N_DESCENDED, test_size=300, random_state=seed
    )
    depths, margins = [], {"output margin": [], "input margin": []}
    for i in range(N_MEANS):
        net = descended(X_train, y_train, [seed, i], *DESCENTS[CONTROL]).eval()
        depth, logits, _ = _depth_of(net, X_train, y_train, X_test)
        depths.append(depth)
        margins["output margin"].append(output_margin(logits))
        margins["input margin"].append(input_margin(net.double(), X_test))
    depth = np.mean(depths, axis=0)
    values = {
        what: float(np.corrcoef(depth, np.log(np.mean(of, axis=0)))[0, 1])
        for what, of in margins.items()
    }
    return found(name, "value", values)


def probes(name, load, seed):
    """Figure E.48: probes by nearest neighbors and by logistic regression, layer by layer.

    On the training samples, and for half of them by a regression that learned the other half.
    """
    X, y = load()
    X, y = X.astype(np.float32), y.astype(int)
    net = descended(X, y, [seed], *DESCENTS[CONTROL])
    half = np.random.default_rng(seed).permutation(len(y)) < len(y) // 2
    methods: dict = {kind: {} for kind in PROBES}
    for layer, name_of in zip(_layers(net.eval(), X)[0], LAYERS):
        layer = StandardScaler().fit_transform(layer)
        linear, of_half = (LogisticRegression(C=100.0, max_iter=2000) for _ in range(2))
        of_half.fit(layer[half], y[half])
        for kind, accuracy in zip(PROBES, (
            KNeighborsClassifier(N_NEIGHBORS).fit(layer, y).score(layer, y),
            linear.fit(layer, y).score(layer, y),
            of_half.score(layer[~half], y[~half]),
        )):  # fmt: skip
            methods[kind][name_of] = float(accuracy)
    return {"found": {name: {kind: {"last": layers} for kind, layers in methods.items()}}}


AMBIGUOUS = columns("DEPTH", "Section 4", "accuracy", "probe in layer 4", "network", scale=0.01)
_claim = about("depth", metric="value", settings=SETS, paper=DIRECTION)
_of_margins = about("depth_margins", rivals=BOTH, settings=SETS, paper=DIRECTION)
_of_probes = about("depth_probes", settings=SETS, paper=DIRECTION)
_of_means = about("depth_means", metric="value", settings=SETS, better=-1)


def of_table4(metric, other):
    """Return what Table 4 prints of another descent and of the 0-hinge loss on the full batch."""
    unit = "powers of ten" if metric == "output margin" else "points"
    return columns("DEPTH", "Table 4", metric, other, BOTH, unit=unit)


CLAIMS = (
    _claim("Consistency has a linear lower bound in depth: more samples lie above the line than "
           "with shuffled depths (fraction).", method="above the line, minus shuffled", better=1,
           effect=0.02, headline="digits"),
    _claim("The entropy of held-out votes has a linear upper bound in depth: more samples lie "
           "below the line than with shuffled depths (fraction).",
           method="below the line, minus shuffled", better=1, effect=0.02),
    _claim("Deeper predictions are less accurate on held-out samples (Spearman).",
           method="depth and correct", better=-1, headline="digits"),
    _claim("Deeper predictions are less consistent across networks (Spearman).",
           method="depth and consensus", better=-1),
    _claim("The depth in one network tells where the others disagree (Spearman).",
           method="depth and disagreement of others", better=1),
    _claim("Deeper predictions are learned later (Spearman).",
           method="depth and iteration learned", better=1, headline="digits"),
    _claim("Deeper predictions have smaller output margins (Spearman).",
           method="depth and margin", better=-1),
    _claim("Deeper predictions have smaller input margins (Spearman).",
           method="depth and input margin", better=-1),
    _claim("Depths agree between networks of other seeds (Spearman).",
           method="depths of two halves", better=1),
    _claim("Depths by 3 neighbors agree with those by 30 (Spearman).",
           method="depth with 3 neighbors", better=1),
    _claim("Depths by 10 do, too (Spearman).", method="depth with 10 neighbors", better=1),
    _claim("Data sets with deeper predictions are the less accurate ones (Spearman, four sets).",
           method="mean depth and accuracy", better=-1, settings="data sets"),
    _claim("On samples with a memorized wrong label, early probes know the true one better than "
           "the last (accuracy).", method="early minus last, true label", better=1,
           headline="digits"),
    _claim("On samples that are ambiguous without their label, the middle of the network is more "
           "often right than its end (accuracy).", method="middle minus network, ambiguous",
           better=1, headline="digits", paper=AMBIGUOUS),
    *(_of_margins(f"The 0-hinge loss by full-batch descent leaves a smaller output margin than "
                  f"{other}.", "output margin", method=other,
                  paper=of_table4("output margin", other),
                  headline="digits" * (other == CONTROL))
      for other in DESCENTS if other != BOTH),
    *(_of_margins(f"It is less accurate than {other}.", "accuracy", method=other,
                  paper=of_table4("accuracy", other)) for other in DESCENTS if other != BOTH),
    *(_of_margins(f"Its predictions are deeper than those of {other}.", "depth", method=other)
      for other in DESCENTS if other != BOTH),
    *(_of_margins(f"Its hidden layers cluster less of the training samples than those of {other}.",
                  "hidden probes", method=other) for other in DESCENTS if other != BOTH),
    _of_probes("In the first layer, logistic regression tells the classes of training samples "
               "that nearest neighbors do not (Fig. E.48).", "layer 1", method=PROBES[1],
               rivals=PROBES[0]),
    _of_probes("It knows them better than those of samples it has not seen.", "layer 1",
               method=PROBES[1], rivals=PROBES[2]),
    *(_of_means(f"Over {N_MEANS} networks, samples of larger mean depth have a smaller mean "
                f"{what} margin (correlation with its logarithm, Fig. 6).",
                method=f"{what} margin",
                paper=value("DEPTH", "Figure 6", f"CIFAR-10, {what} margin", "correlation"))
      for what in ("output", "input")),
    untested("Depths agree between architectures.",
             "one architecture was trained; `--scale full` has three"),
)  # fmt: skip


TABLE = partial(values_tables, columns=[Column("value", "Means over runs", digits=3)])
MARGINS = [
    METRICS[m] for m in ("accuracy", "output margin", "log margin", "depth", "hidden probes")
]
IN_LAYERS = [Column(name, f"Accuracy of the probes, {name}, %", 100) for name in LAYERS]
STUDY = Study(
    "[DEPTH]",
    {
        "depth": Part(partial(run, measured), TABLE, derive=over_data_sets, files=FILES),
        "depth_margins": Part(
            partial(run, margins),
            partial(values_tables, columns=MARGINS),
            settings=described(margins.__doc__),
            files=FILES,
        ),
        "depth_means": Part(
            partial(run, means), TABLE, settings=described(means.__doc__), files=FILES
        ),
        "depth_probes": Part(
            partial(run, probes),
            partial(values_tables, columns=IN_LAYERS),
            settings=described(probes.__doc__),
            files=FILES,
        ),
    },
    CLAIMS,
    described(__doc__),
)
