"""Out-of-scope queries told from new ones: python -m benchmarks.novelty --data DIR [--out FILE].

CLINC150: scorers are fitted on 20 or 100 training queries of each of 150 intents, and rank 4500
test queries of these intents against 1000 that have none. Two sets of features: sentence
embeddings (MiniLM, 384 dimensions, of unit length), and words (TF-IDF and 256 singular vectors,
whose length varies). 20 a class are drawn five times.

For every method: AUROC, and the fraction of out-of-scope queries that pass where 95 % of the
others do (FPR at 95 % TPR); their standard errors over 500 resamples of the queries and over the
draws; processor seconds of the fit and of scoring all queries, in one thread. The table of the
guide is that of benchmarks/novelty_results.json, as a test checks.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path

import numpy as np
from sklearn.decomposition import TruncatedSVD
from sklearn.ensemble import IsolationForest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import LocalOutlierFactor
from sklearn.pipeline import make_pipeline
from threadpoolctl import threadpool_limits

from benchmarks._tables import simple_table, study
from skcalib.difficulty import KMeansPrototypeScorer, KNNScorer, RMDScorer
from skcalib.metrics import confidence_score, energy_score, max_logit_score

N_RESAMPLES = 500


def scorers() -> dict:
    return {
        "RMD": RMDScorer(),
        "RMD, normalized": RMDScorer(normalize=True),
        "Mahalanobis": RMDScorer(relative=False),
        "Mahalanobis, normalized": RMDScorer(relative=False, normalize=True),
        "5th neighbor": KNNScorer(),
        "5th neighbor, normalized": KNNScorer(normalize=True),
        "k-means": KMeansPrototypeScorer(random_state=0),
        "LocalOutlierFactor": LocalOutlierFactor(novelty=True),
        "IsolationForest": IsolationForest(random_state=0),
    }


def scores(X, y, queries) -> Iterator[tuple[str, np.ndarray, float, float]]:
    """Yield (method, scores, larger = more normal, seconds of the fit, seconds of scoring)."""
    for name, scorer in scorers().items():
        # scikit-learn's detectors take no labels and would ignore them.
        fit_seconds, _ = timed(lambda scorer=scorer: scorer.fit(X, y))
        seconds, values = timed(lambda scorer=scorer: scorer.score_samples(queries))
        yield name, values, fit_seconds, seconds
    model = LogisticRegression(C=10.0, max_iter=100)
    fit_seconds, _ = timed(lambda: model.fit(X, y))
    by_model = {
        "max logit": lambda: max_logit_score(model.decision_function(queries)),
        "energy": lambda: energy_score(model.decision_function(queries)),
        "MSP": lambda: confidence_score(model.predict_proba(queries)),
    }
    for name, call in by_model.items():
        seconds, values = timed(call)
        yield name, values, fit_seconds, seconds


def timed(call: Callable) -> tuple:
    """Return the processor seconds of a call, and what it returned."""
    start = time.process_time()
    result = call()
    return time.process_time() - start, result


def detection(inside: np.ndarray, outside: np.ndarray) -> tuple[float, float]:
    """Return AUROC and FPR at 95 % TPR, as `ood_report` does, in time for many resamples."""
    order = np.sort(inside)
    below = np.searchsorted(order, outside, "left") + np.searchsorted(order, outside, "right")
    lowest_kept = order[len(order) - int(np.ceil(0.95 * len(order)))]
    return 1.0 - below.mean() / (2 * len(order)), float((outside >= lowest_kept).mean())


def standard_errors(inside: list, outside: list) -> np.ndarray:
    """Return those of the means over the draws, from the queries and from the draws."""
    rng = np.random.default_rng(0)
    means = []
    for _ in range(N_RESAMPLES):
        rows_in = rng.integers(0, len(inside[0]), len(inside[0]))
        rows_out = rng.integers(0, len(outside[0]), len(outside[0]))
        draws = [detection(a[rows_in], b[rows_out]) for a, b in zip(inside, outside)]
        means.append(np.mean(draws, axis=0))
    variance = np.var(means, axis=0, ddof=1)
    if len(inside) > 1:
        values = [detection(a, b) for a, b in zip(inside, outside)]
        variance += np.var(values, axis=0, ddof=1) / len(inside)
    return np.sqrt(variance)


def draws(y, n_each, n_draws) -> Iterator[np.ndarray]:
    for seed in range(n_draws):
        rng = np.random.default_rng(seed)
        yield np.concatenate(
            [rng.choice(np.flatnonzero(y == k), n_each, replace=False) for k in np.unique(y)]
        )


def judged(train, y, inside, outside, n_each: int, n_draws: int) -> Iterator[dict]:
    """Yield a row of results for every method."""
    queries = np.vstack([inside, outside])
    found: dict = {}
    for rows in draws(y, n_each, n_draws):
        for name, *result in scores(train[rows], y[rows], queries):
            found.setdefault(name, []).append(result)
    for name, results in found.items():
        of_inside = [values[: len(inside)] for values, *_ in results]
        of_outside = [values[len(inside) :] for values, *_ in results]
        auroc, fpr = np.mean([detection(*pair) for pair in zip(of_inside, of_outside)], axis=0)
        auroc_se, fpr_se = standard_errors(of_inside, of_outside)
        fit_seconds, score_seconds = np.min([seconds for _, *seconds in results], axis=0)
        yield {
            "method": name, "auroc": auroc, "auroc_se": auroc_se, "fpr": fpr, "fpr_se": fpr_se,
            "fit_seconds": fit_seconds, "score_seconds": score_seconds,
        }  # fmt: skip


def features(folder: Path) -> Iterator[tuple]:
    data = np.load(folder / "clinc150_minilm.npz", allow_pickle=True)
    X, inside, outside = (
        data[name].astype(np.float32) for name in ("X_train", "X_test", "X_oos_test")
    )
    y = data["y_train"].astype(int)
    yield "sentence embeddings", X, y, inside, outside
    texts = json.loads((folder / "clinc150.json").read_text())
    words = make_pipeline(TfidfVectorizer(sublinear_tf=True), TruncatedSVD(256, random_state=0))
    train = words.fit_transform([text for text, _ in texts["train"]])
    rest = [words.transform([t for t, _ in texts[part]]) for part in ("test", "oos_test")]
    keep = [np.linalg.norm(block, axis=1) > 0 for block in (train, *rest)]
    yield (
        "words", train[keep[0]].astype(np.float32), y[keep[0]],
        rest[0][keep[1]].astype(np.float32), rest[1][keep[2]].astype(np.float32),
    )  # fmt: skip


def guide_table(rows: list[dict]) -> str:
    """Return the table of the user guide."""
    by_key = {(row["features"], row["samples_a_class"], row["method"]): row for row in rows}

    def text(row: dict, name: str) -> str:
        return f"{row[name]:.3f}±{row[f'{name}_se']:.3f}".replace("0.", ".")

    lines = []
    shown = (("sentence embeddings", 20), ("sentence embeddings", 100), ("words", 100))
    for method in dict.fromkeys(row["method"] for row in rows):
        few, many, words = (by_key[*key, method] for key in shown)
        cells = [text(row, name) for row in (few, many) for name in ("auroc", "fpr")]
        seconds = [f"{many[name]:.2f}" for name in ("fit_seconds", "score_seconds")]
        lines.append([method, *cells, text(words, "auroc"), *seconds])
    of = [f"{name}, {n}" for n in (20, 100) for name in ("AUROC", "FPR")]
    return simple_table(["method", *of, "words, 100", "fit, s", "scoring, s"], lines)


def results(data: Path) -> Iterator[dict]:
    sets = list(features(data))
    with threadpool_limits(1):
        for (n_each, n_draws), (name, *arrays) in product(((20, 5), (100, 1)), sets):
            for row in judged(*arrays, n_each, n_draws):
                yield {"features": name, "samples_a_class": n_each} | row


if __name__ == "__main__":
    study(__doc__, results, data=Path)
