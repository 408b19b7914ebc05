"""``--scale quick``: every study on data that come with scikit-learn, in minutes, nothing stored.

Handwritten digits stand in for all data: enlarged to 32 x 32 pixels for the images, and as texts
with a word for every bright pixel. Votes of people are drawn from out-of-fold probabilities. The
tables that are printed say that a study runs, not what it finds: two seeds, two epochs, and the
first candidate of every method; of studies with many settings, one.
"""

from __future__ import annotations

import io
import json
import tempfile
import time
from argparse import Namespace
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from unittest.mock import patch

import numpy as np
from PIL import Image
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from . import (
    depth,
    figures,
    gra,
    guided_train,
    guides,
    images,
    minilm,
    pretrained,
    prio,
    prio_images,
    pruning,
    results,
    runner,
    shift,
    students,
)
from .runner import Records

N_SEEDS, N_PEOPLE = 2, 50
N_TRAIN_TEXTS, N_VAL_TEXTS = 100, 30  # of every class, as in CLINC150 without its 150 classes
N_TRAIN_IMAGES = 800
# The one setting of a part that is run; of the others, all.
SETTING = {
    "decay20": "U20", "decay100": "U20", "rmd20": "clean", "rmd100": "U20", "rmd_images": "U20",
    "gra_texts": "clean", "prio_losses": "20 %", "prio_images": "20 %", "prio": "redundant",
    "guides_flips": "U20", "guided_losses": "U20",
    "guided_train_losses": "clean", "pruning": "U20",
}  # fmt: skip


def pixels(pictures):
    """Stand in for the features of a pre-trained network."""
    return pictures[:, ::4, ::4].mean(axis=3).reshape(len(pictures), -1)


def bright(texts):
    """Stand in for sentence embeddings: the pixels that a text of this scale names."""
    rows = np.zeros((len(texts), 64), np.float32)
    for row, text in zip(rows, texts):
        row[[8 * int(word[3]) + int(word[10]) for word in text.split()]] = 1
    return rows


# What is smaller than in the studies: (module, name, value).
SMALLER = (
    (students, "MAX_EPOCHS", 2),
    (runner, "MAX_CANDIDATES", 1),
    (images, "N_TRAIN", 300),
    (images, "N_TEST", 400),
    (images, "N_OOD", 100),
    (images, "N_TURNED", 400),
    (images, "N_EPOCHS_OF_TURNS", 1),
    (prio, "N_STEPS", 60),
    (prio, "LATE", (0.2, 20)),
    (prio_images, "N_POOL", 700),
    (prio_images, "N_TRAIN", 400),
    (prio_images, "N_VAL", 300),
    (prio_images, "N_TEST", 400),
    (shift, "N_TEST", 200),
    (shift, "N_FIT", 100),
    (figures, "N_FITTED", 600),
    (figures, "N_JUDGED", 100),
    (gra, "N_EACH", 500),
    (pretrained, "embed", pixels),
    (minilm, "embed", bright),
    (pruning, "WINDOW", 2),
    (guides, "N_FITTED", 600),
    (guided_train, "N_TRAIN", 300),
    (guided_train, "N_VAL", 100),
    (guided_train, "N_CORRUPTED", 50),
    (depth, "N_REPEATS", 4),
    (depth, "N_DESCENDED", 300),
    (depth, "N_MEANS", 2),
    (depth, "SETS", {name: depth.SETS[name] for name in ("digits", "made classes")}),
    (depth, "DESCENTS", {
        name: (*how[:3], (200,), how[4]) for name, how in depth.DESCENTS.items()
    }),
)  # fmt: skip


def write_stand_in(folder: Path) -> None:
    """Write the files of the data folder, made of the digits of scikit-learn."""
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    X, y = X[order], y[order]
    _write_texts(folder, X, y)
    _write_images(folder, X, y)


def _write_texts(folder, X, y):
    place = np.array([np.sum(y[:i] == k) for i, k in enumerate(y)])  # among those of its class
    ends = (N_TRAIN_TEXTS, N_TRAIN_TEXTS + N_VAL_TEXTS)
    rows = dict(zip(("train", "val", "test"), _split(place, ends)))
    words = np.array([f"row{i // 8}column{i % 8}" for i in range(64)])
    arrays, texts = {}, {}
    for name, kept in rows.items():
        arrays |= {f"X_{name}": X[kept] / 16, f"y_{name}": y[kept]}
        texts[name] = [[" ".join(words[x > 7]), str(k)] for x, k in zip(X[kept], y[kept])]
    # Out of scope: digits whose pixels are in another order.
    strange = X[:N_TRAIN_TEXTS, np.random.default_rng(1).permutation(64)]
    texts["oos_test"] = [[" ".join(words[x > 7]), "oos"] for x in strange]
    (folder / "clinc150.json").write_text(json.dumps(texts))
    np.savez(folder / "clinc150_minilm.npz", X_oos_test=strange / 16, **arrays)


def _split(place, ends):
    first, second = ends
    return place < first, (place >= first) & (place < second), place >= second


def _write_images(folder, X, y):
    arrays = {}
    split = slice(None, N_TRAIN_IMAGES), slice(N_TRAIN_IMAGES, None)
    for name, rows in zip(("train", "test"), split):
        encoded = [_jpeg(x) for x in X[rows]]
        arrays |= {
            f"{name}_jpeg": np.frombuffer(b"".join(encoded), dtype=np.uint8),
            f"{name}_offsets": np.cumsum([0, *map(len, encoded)]),
            f"{name}_y": y[rows],
        }
    np.savez(folder / "cifar10_jpeg.npz", **arrays)
    X, y = X[split[1]], y[split[1]]
    model = make_pipeline(StandardScaler(), LogisticRegression(C=0.01, max_iter=200))
    proba = cross_val_predict(model, X, y, method="predict_proba")
    counts = np.random.default_rng(0).multinomial(N_PEOPLE, proba)
    np.savez(folder / "cifar10h.npz", counts=counts)
    np.savez(folder / "cifar10_resnet20_features.npz", features=X, y=y)
    np.savez(folder / "cifar10_resnet20_logits.npz", logits=np.log(proba), y=y)
    np.savez(folder / "cifar10_test_pred_probs.npz", proba=proba)


def _jpeg(x):
    pixels = np.kron(x.reshape(8, 8) * (255 / 16), np.ones((4, 4))).astype(np.uint8)
    file = io.BytesIO()
    Image.fromarray(pixels).convert("RGB").save(file, format="JPEG")
    return file.getvalue()


@contextmanager
def smaller() -> Iterator[None]:
    """Shrink the studies while it is open."""
    with ExitStack() as stack:
        for module, name, value in SMALLER:
            stack.enter_context(patch.object(module, name, value))
        yield


def run(studies: dict, only: str = "", *, n_seeds: int = N_SEEDS) -> None:
    """Run studies on the stand-in, and print the table of every part; `only` names one part."""
    print(__doc__.partition("\n\n")[2])
    found: dict = {}
    stored = results.load
    load = lambda name: found.get(name) or stored(name)
    load.cache_clear = stored.cache_clear
    with tempfile.TemporaryDirectory() as name, smaller(), patch.object(results, "load", load):
        folder = Path(name)
        write_stand_in(folder)
        out = folder / "runs"
        out.mkdir()
        for study in studies.values():
            for name, part in study.parts.items():
                if only in ("", name):
                    noise = [SETTING[name]] if name in SETTING else None
                    options = Namespace(data=folder, out=out, noise=noise, seeds=range(n_seeds))
                    records = Records(out / f"{name}.jsonl")
                    start = time.process_time()
                    part.run(options, records)
                    seconds = time.process_time() - start
                    settings = part.derive(results.collected(records, part))
                    found[name] = {"settings": settings}
                    print(f"\n{study.name}, {name} ({seconds:.0f} s of the processor)\n")
                    print(part.table(settings), flush=True)
