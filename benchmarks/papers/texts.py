"""CLINC150 as tasks: a subset, noise in its labels, bags of words, difficulties."""

from __future__ import annotations

import json
from functools import cached_property, partial
from pathlib import Path

import numpy as np
import torch
from joblib import Memory
from scipy.sparse import csr_matrix
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from skcalib.labels import LabelIssueFinder

from .tasks import Task, noisy_labels, rivals_of

SPLITS = ("train", "val", "test", "oos_test")


class Bags:
    """Bags of words: the positions and weights of the words of each text, padded."""

    def __init__(self, matrix: csr_matrix):
        counts = np.diff(matrix.indptr)
        place = np.arange(matrix.nnz) - np.repeat(matrix.indptr[:-1], counts)
        text = np.repeat(np.arange(matrix.shape[0]), counts)
        words = np.full((matrix.shape[0], max(counts.max(), 1)), matrix.shape[1])
        weights = np.zeros(words.shape, dtype=np.float32)
        words[text, place], weights[text, place] = matrix.indices, matrix.data
        self.words, self.weights = torch.from_numpy(words), torch.from_numpy(weights)

    def __len__(self):
        return len(self.words)

    def __getitem__(self, rows):
        return self.words[rows], self.weights[rows]

    @staticmethod
    def mixed(samples, mixup):
        """Return bags whose sums of word vectors are mixed: both bags, with their shares."""
        words, weights = samples
        share, partner = mixup.fraction, mixup.partner
        return (
            torch.cat([words, words[partner]], dim=1),
            torch.cat([share * weights, (1 - share) * weights[partner]], dim=1),
        )


class BagNet(torch.nn.Module):
    """Weighted sum of word vectors -> ReLU -> linear: a perceptron on a sparse TF-IDF matrix."""

    def __init__(self, n_words, n_hidden=64, n_classes=150):
        super().__init__()
        linear = torch.nn.Linear(n_words, n_hidden)
        padded = torch.cat([linear.weight.detach().T, torch.zeros(1, n_hidden)])
        self.words = torch.nn.Parameter(padded)
        self.bias = torch.nn.Parameter(linear.bias.detach())
        self.output = torch.nn.Linear(n_hidden, n_classes)

    def forward(self, words, weights):
        padding = len(self.words) - 1
        hidden = torch.nn.functional.embedding_bag(
            words, self.words, per_sample_weights=weights, mode="sum", padding_idx=padding
        )
        return self.output((hidden + self.bias).relu())


class Clinc:
    """The texts, labels and sentence embeddings; `cache` is a folder for what takes a minute."""

    def __init__(self, folder: Path, cache: Path):
        texts = json.loads((folder / "clinc150.json").read_text())
        self.texts = {
            name: [text for text, _ in texts[key]]
            for name, key in zip(("train", "val", "test", "ood"), SPLITS)
        }
        with np.load(folder / "clinc150_minilm.npz") as data:
            self.labels = {n: data[f"y_{n}"].astype(int) for n in ("train", "val", "test")}
            self.features = {n: data[f"X_{n}"].astype(np.float32) for n in ("train", "val")}
        self.cache = cache

    @cached_property
    def rivals(self):
        """For training texts the most probable wrong class, and how probable it is."""
        cached = Memory(self.cache, verbose=0).cache(out_of_fold_rivals)
        return cached(self.texts["train"], self.labels["train"])


def out_of_fold_rivals(texts, y):
    model = make_pipeline(TfidfVectorizer(), LogisticRegression(C=10.0, max_iter=30))
    return rivals_of(model, texts, y)


def text_task(clinc, n_each, noise, seed, *, noisy_validation=False):
    """Return the task of a seed: its samples (all where n_each is 100), noise and validation."""
    rng = np.random.default_rng(seed)
    y = clinc.labels["train"]
    classes = np.unique(y)
    rows = [rng.choice(np.flatnonzero(y == k), n_each, replace=False) for k in classes]
    rows = np.concatenate(rows)
    reader = TfidfVectorizer()
    inputs = {"train": Bags(reader.fit_transform([clinc.texts["train"][i] for i in rows]))}
    for name in ("val", "test", "ood"):
        inputs[name] = Bags(reader.transform(clinc.texts[name]))
    val = {"clean": clinc.labels["val"]}
    if noisy_validation:
        val["noisy"] = noisy_labels(val["clean"], noise, seed + 1000)
        issues = LabelIssueFinder().fit(clinc.features["val"], val["noisy"]).issues_
        val["repaired"] = np.where(issues["is_issue"], issues["suggested_label"], val["noisy"])
    rivals = [values[rows] for values in clinc.rivals] if noise[0] == "I" else None
    return Task(
        inputs=inputs,
        given=noisy_labels(y[rows], noise, seed, rivals),
        true=y[rows],
        features=clinc.features["train"][rows],
        val_labels=val,
        test_labels=clinc.labels["test"],
        make_net=partial(BagNet, len(reader.vocabulary_), n_classes=len(classes)),
        seed=seed,
    )
