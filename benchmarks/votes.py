"""Votes of several people: the finder beside a majority, Dawid-Skene, GLAD, MACE and CROWDLAB.

    python -m benchmarks.votes --data ../shared/data [--draws 3] [--method skcalib ...] [--public]

Writes benchmarks/votes_results.json and the table of the guide; with --public those of five public
sets, votes alone, where Dawid and Skene's model is our own. The other peers (GLAD, MACE, CROWDLAB)
come from crowd-kit and cleanlab, the dependency group `votes`.
"""

import argparse
import json
import warnings
from pathlib import Path
from time import perf_counter

import numpy as np
from scipy.special import softmax
from scipy.stats import spearmanr
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks._tables import keep, shown, simple_table
from skcalib.labels import LabelIssueFinder, votes_from_long
from skcalib.metrics import expected_calibration_error

RESULTS = Path(__file__).with_name("votes_results.json")
PAGE = Path(__file__).parents[1] / "docs/measured/votes.inc"
PUBLIC = Path(__file__).with_name("votes_public_results.json")
PUBLIC_PAGE = Path(__file__).parents[1] / "docs/measured/votes_public.inc"
PUBLIC_SETS = {  # the first two have chosen SHARED_ERRORS
    "dog": "breeds of dogs",
    "duck": "kinds of ducks",
    "temporal": "order of events",
    "wsd": "senses of words",
    "prod": "equal products",
}
FEWEST_VOTES = 40  # of annotators whose intervals are counted
MOST_OF_GLAD = 1000  # samples: with 8 000, that of crowd-kit has not ended in 50 minutes
N_PICTURES, N_ANNOTATORS = 2000, 30


def counts_of(votes, n_classes):
    return np.stack([(votes == k).sum(axis=1) for k in range(n_classes)], axis=1)


def majority_of(votes, n_classes):
    noise = np.random.default_rng(0).uniform(0, 0.1, (len(votes), n_classes))
    return (counts_of(votes, n_classes) + noise).argmax(axis=1)


def out_of_fold(X, votes, n_classes):
    """Probabilities of a regression that has learned the majority of the other folds."""
    model = make_pipeline(StandardScaler(), LogisticRegression(C=0.03, max_iter=500))
    labels = majority_of(votes, n_classes)
    found = np.zeros((len(X), n_classes))
    proba = cross_val_predict(model, X, labels, cv=5, method="predict_proba")
    found[:, np.unique(labels)] = proba
    return found


def pictures(data, seed):
    """Yield votes that people gave on CIFAR-10H, without their names, and two models."""
    people = np.load(data / "cifar10h.npz")["counts"]
    strong = np.load(data / "cifar10_test_pred_probs.npz")
    small = softmax(np.load(data / "cifar10_resnet20_logits.npz")["logits"].astype(float), axis=1)
    rng = np.random.default_rng(seed)
    rows = rng.permutation(len(people))[:N_PICTURES]
    for n_votes in (2, 3, 5):
        votes = np.stack([rng.permutation(np.repeat(np.arange(10), people[i]))[:n_votes]
                          for i in rows]).astype(float)  # fmt: skip
        for name, proba in (("strong", strong["proba"].astype(float)), ("ResNet-20", small)):
            given = proba[rows] / proba[rows].sum(axis=1, keepdims=True)
            yield f"pictures, {name}", n_votes, votes, given, strong["y"][rows], None, None


def songs(data, seed):
    """Yield answers of workers on the genre of songs, some of which were drawn twice."""
    songs = np.load(data / "human_labels.npz", allow_pickle=True)
    names, y = np.unique(songs["music_true"], return_inverse=True)
    said = np.stack([np.searchsorted(names, songs[f"music_one_{i}"]) for i in range(3)], axis=1)
    for n_votes in (2, 3):
        votes = np.roll(said, seed, axis=1)[:, :n_votes].astype(float)
        yield "songs", n_votes, votes, out_of_fold(songs["music_X"], votes, 10), y, None, None


def simulated(data, seed):
    """Yield votes of 30 annotators, each with mistakes of his or her own."""
    tables = np.load(data / "human_labels.npz", allow_pickle=True)
    sets = {
        "digits": load_digits(return_X_y=True),
        "breast cancer": load_breast_cancer(return_X_y=True),
        "wine": load_wine(return_X_y=True),
        "segment": (tables["segment_X"], tables["segment_true"]),
    }
    for name, (X, true) in sets.items():
        y, rng = np.unique(true, return_inverse=True)[1], np.random.default_rng(seed)
        n_classes = int(y.max()) + 1
        skill = rng.beta(6, 2.5, N_ANNOTATORS)
        errors = rng.dirichlet(np.full(n_classes - 1, 0.5), (N_ANNOTATORS, n_classes))
        for n_votes in (2, 3, 5):
            votes = np.full((len(y), N_ANNOTATORS), np.nan)
            for row, label in enumerate(y):
                for who in rng.choice(N_ANNOTATORS, n_votes, replace=False):
                    other = rng.choice(n_classes - 1, p=errors[who, label])
                    right = rng.uniform() < skill[who]
                    votes[row, who] = label if right else other + (other >= label)
            yield name, n_votes, votes, out_of_fold(X, votes, n_classes), y, X, skill


SOURCES = (pictures, songs, simulated)


def by_majority(votes, proba, X):
    counts = counts_of(votes, proba.shape[1]) + 1.0 / proba.shape[1]
    agreed = counts.argmax(axis=1)[:, None]
    said = ~np.isnan(votes)
    accuracy = ((votes == agreed) & said).sum(axis=0) / said.sum(axis=0)
    return counts / counts.sum(axis=1, keepdims=True), accuracy


def _long(votes):
    import pandas as pd

    sample, annotator = np.nonzero(~np.isnan(votes))
    columns = {"task": sample, "worker": annotator, "label": votes[sample, annotator].astype(int)}
    return pd.DataFrame(columns)


def _columns(table, n_samples, n_classes):
    found = np.zeros((n_samples, n_classes))
    found[np.ix_(table.index, table.columns)] = table.fillna(0).to_numpy()
    return found


def by_dawid_skene(votes, proba, X):
    from crowdkit.aggregation import DawidSkene

    model = DawidSkene(n_iter=50)
    found = _columns(model.fit_predict_proba(_long(votes)), *proba.shape)
    errors = model.errors_.reset_index()
    own = errors[errors["label"] == errors[errors.columns[1]]]
    accuracy = [
        float(sum(row[k] * found[:, k].mean() for k in range(proba.shape[1]) if k in row and
                  row["label"] == k))
        for _, row in own.iterrows()
    ]  # fmt: skip
    total = np.bincount(own["worker"].to_numpy(), accuracy, votes.shape[1])
    return found, total


def by_glad(votes, proba, X):
    from crowdkit.aggregation import GLAD

    model = GLAD(n_iter=50, silent=True)
    found = _columns(model.fit_predict_proba(_long(votes)), *proba.shape)
    return found, model.alphas_.reindex(range(votes.shape[1])).to_numpy()


def by_crowdlab(votes, proba, X):
    """The posterior is put together from the weights that the function returns."""
    import pandas as pd
    from cleanlab.multiannotator import get_label_quality_multiannotator

    found = get_label_quality_multiannotator(
        pd.DataFrame(votes), proba, verbose=False, return_weights=True
    )
    table, weights = found["label_quality"], np.asarray(found["annotator_weight"])
    several = table["num_annotations"].to_numpy() != 1
    agree = table["annotator_agreement"].to_numpy()[several].mean()
    differ, said = (1.0 - agree) / (proba.shape[1] - 1), ~np.isnan(votes)
    posterior = proba * found["model_weight"]
    for k in range(proba.shape[1]):
        posterior[:, k] += np.where(votes == k, agree, differ * said) @ weights
    posterior /= (found["model_weight"] + said @ weights)[:, None]
    own = posterior[np.arange(len(votes)), table["consensus_label"].to_numpy().astype(int)]
    if not np.allclose(own, table["consensus_quality_score"]):
        raise RuntimeError("the weights no longer explain the scores of cleanlab")
    stats = found["annotator_stats"]["annotator_quality"]
    return posterior, stats.reindex(range(votes.shape[1])).to_numpy()


def by_finder(votes, proba, X):
    finder = LabelIssueFinder("precomputed").fit(proba, votes=votes)
    return finder.label_proba_, finder.annotators_["accuracy"]


def by_features(votes, proba, X):
    finder = LabelIssueFinder().fit(X, votes=votes)
    return finder.label_proba_, finder.annotators_["accuracy"]


METHODS = {
    "majority": by_majority,
    "Dawid-Skene": by_dawid_skene,
    "GLAD": by_glad,
    "CROWDLAB": by_crowdlab,
    "skcalib": by_finder,
    "skcalib, features": by_features,
}


def judged(posterior, y):
    """Fraction right, log-loss (at most that of 1e-6), and calibration error."""
    posterior = posterior / posterior.sum(axis=1, keepdims=True)
    loss = -np.log(np.maximum(posterior[np.arange(len(y)), y], 1e-6)).mean()
    return {
        "right": float((posterior.argmax(axis=1) == y).mean()),
        "log_loss": float(loss),
        "ece": float(expected_calibration_error(y, posterior, labels=range(posterior.shape[1]))),
    }


def measure(data, n_draws, methods):
    """Yield one row for every set, number of votes, draw and method."""
    for seed in range(n_draws):
        for source in SOURCES:
            for name, n_votes, votes, proba, y, X, skill in source(data, seed):
                for method in methods:
                    of = METHODS[method]
                    if X is None and of is by_features:
                        continue
                    start = perf_counter()
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        posterior, accuracy = of(votes, proba, X)
                    row = {"set": name, "votes": n_votes, "draw": seed, "method": method}
                    row |= judged(posterior, y) | {"seconds": perf_counter() - start}
                    if skill is not None:
                        row["spearman"] = float(spearmanr(accuracy, skill, nan_policy="omit")[0])
                    yield row


def dawid_skene(sample, who, label, n, n_classes, n_steps=50):
    """Posterior of Dawid and Skene's model, with .01 votes for every entry of a row."""
    counts = np.zeros((n, n_classes))
    np.add.at(counts, (sample, label), 1.0)
    posterior = counts / counts.sum(axis=1, keepdims=True)
    for _ in range(n_steps):
        rows = np.full((who.max() + 1, n_classes, n_classes), 0.01)
        np.add.at(rows, (who, slice(None), label), posterior[sample])
        rows = np.log(rows / rows.sum(axis=2, keepdims=True))
        joint = np.tile(np.log(posterior.mean(axis=0) + 1e-9), (n, 1))
        np.add.at(joint, sample, rows[who, :, label])
        posterior = softmax(joint, axis=1)
    return posterior


def by_crowd_kit(model, sample, who, label, n, n_classes):
    """Posterior of a model of crowd-kit; its MACE draws its start from a fixed seed."""
    import pandas as pd

    long = pd.DataFrame({"task": sample, "worker": who, "label": label})
    return _columns(model.fit_predict_proba(long), n, n_classes)


def judge_public(posterior, gold):
    """Fraction right (a tie is half right), log-loss (at most that of 1e-3), mean confidence."""
    best = posterior == posterior.max(axis=1, keepdims=True)
    rows = np.arange(len(gold))
    return {
        "right": float((best[rows, gold] / best.sum(axis=1)).mean()),
        "log_loss": float(-np.log(np.maximum(posterior[rows, gold], 1e-3)).mean()),
        "predicted": float(posterior.max(axis=1).mean()),
    }


def measure_public(data):
    """Yield one row for every public set and method, votes alone."""
    from crowdkit.aggregation import GLAD, MACE

    table = np.load(data / "votes_public.npz")
    for name, title in PUBLIC_SETS.items():
        sample, who, label = (table[f"{name}_{part}"].astype(int)
                              for part in ("sample", "annotator", "label"))  # fmt: skip
        gold = table[f"{name}_gold"].astype(int)
        n, n_classes = len(gold), int(max(label.max(), gold.max())) + 1
        counts = np.full((n, n_classes), 1.0 / n_classes)
        np.add.at(counts, (sample, label), 1.0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            votes = votes_from_long(sample, who, label, index=range(n))
            finder = LabelIssueFinder().fit(None, votes=votes)
        found = np.zeros((n, n_classes))
        found[:, finder.classes_] = finder.label_proba_
        checked = gold >= 0
        use = checked[sample]
        number = np.bincount(who[use], minlength=who.max() + 1)
        right = np.bincount(who[use], (label == gold[sample])[use], who.max() + 1)
        people = finder.annotators_
        position = people["annotator"].astype(int)
        truth = right[position] / np.maximum(number[position], 1)
        some = number[position] >= FEWEST_VOTES
        held = (people["accuracy_low"] <= truth) & (truth <= people["accuracy_high"])
        posteriors = {
            "majority": counts / counts.sum(axis=1, keepdims=True),
            "Dawid-Skene": dawid_skene(sample, who, label, n, n_classes),
            "skcalib": found,
        }
        given = sample, who, label, n, n_classes
        if n <= MOST_OF_GLAD:
            posteriors["GLAD"] = by_crowd_kit(GLAD(n_iter=50, silent=True), *given)
        posteriors["MACE"] = by_crowd_kit(MACE(), *given)
        for method, posterior in posteriors.items():
            row = {"set": title, "samples": n, "annotators": len(people), "method": method}
            row |= judge_public(posterior[checked], gold[checked])
            if method == "skcalib":
                row["held"] = float(held[some].mean())
            yield row


def page_of_public(rows):
    """Return the table of the public sets."""
    head = ("set", "samples", "annotators", "method", "right", "log-loss", "predicted",
            "intervals hold")  # fmt: skip
    lines = [
        (row["set"], str(row["samples"]), str(row["annotators"]), row["method"],
         *(shown(row[key], 3) for key in ("right", "log_loss", "predicted")),
         shown(row["held"], 2) if "held" in row else "")
        for row in rows
    ]  # fmt: skip
    return f"{simple_table(head, lines)}\n"


def means(rows):
    """Return the mean over draws of every set, number of votes and method."""
    found = {}
    order = {method: place for place, method in enumerate(METHODS)}
    first = {row["set"]: place for place, row in reversed(list(enumerate(rows)))}
    key = lambda row: (first[row["set"]], row["votes"], order[row["method"]])
    for row in sorted(rows, key=key):
        found.setdefault((row["set"], row["votes"], row["method"]), []).append(row)
    numbers = ("right", "log_loss", "ece", "spearman")
    return {
        key: {name: np.mean([row[name] for row in part]) for name in numbers if name in part[0]}
        for key, part in found.items()
    }


def lost(table):
    """Return sentences on where a peer is ahead of the finder with the same probabilities."""
    sentences = []
    cells = list(dict.fromkeys((name, votes) for name, votes, _ in table))
    numbers = {"right": ("is right more often", 1), "log_loss": ("has a smaller log-loss", -1)}
    for number, (word, sign) in numbers.items():
        behind = []
        for name, votes in cells:
            own = table[name, votes, "skcalib"][number]
            peers = [m for m in METHODS if not m.startswith("skcalib")
                     and sign * (table[name, votes, m][number] - own) > 5e-5]  # fmt: skip
            behind += [f"{name}, {votes} votes ({', '.join(peers)})"] if peers else []
        where = "; ".join(behind) if behind else "nowhere"
        sentences.append(
            f"A peer {word} than the finder with the same probabilities in {len(behind)} of "
            f"{len(cells)} cells: {where}."
        )
    return "\n\n".join(sentences)


def page(rows):
    """Return the table of the guide."""
    table = means(rows)
    head = ("set", "votes", "method", "right", "log-loss", "ECE", "ranks of annotators")
    lines = [
        (name, str(votes), method, *(shown(cell[key], 3) for key in ("right", "log_loss", "ece")),
         shown(cell["spearman"], 2) if "spearman" in cell else "")
        for (name, votes, method), cell in table.items()
    ]  # fmt: skip
    return f"{lost(table)}\n\n{simple_table(head, lines)}\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with the real data")
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--method", nargs="*", choices=METHODS, help="these; others stay")
    parser.add_argument("--public", action="store_true", help="five public sets, votes alone")
    given = parser.parse_args()
    if given.public:
        keep(measure_public(given.data), PUBLIC)
        PUBLIC_PAGE.write_text(page_of_public(json.loads(PUBLIC.read_text())))
        return
    rows, methods = [], given.method or list(METHODS)
    if given.method:
        rows = [r for r in json.loads(RESULTS.read_text()) if r["method"] not in methods]
    for row in measure(given.data, given.draws, methods):
        rows.append({k: round(v, 4) if isinstance(v, float) else v for k, v in row.items()})
        print(rows[-1], flush=True)
    RESULTS.write_text(json.dumps(rows, indent=1) + "\n")
    PAGE.write_text(page(rows))


if __name__ == "__main__":
    main()
