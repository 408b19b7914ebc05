"""What the recipes for other engines share: samples, a table of them, and the comparison."""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
from pyarrow import parquet

from skcalib.difficulty import RMDScorer
from skcalib.metrics import expected_calibration_error

CLASSES = [f"class {i}" for i in range(10)]
BLOCK = 50_000
# Rounding of sums over float32, in standard deviations of the difficulty.
TOLERANCE = 1e-4
# Of an engine: rows of a table (id, difficulty) in any order, and the calibration error.
Recipe = Callable[[Path, int], tuple[Callable[[], pyarrow.Table], float]]


def samples(n: int, n_features: int) -> tuple:
    """Return features, labels sorted by class, and probabilities."""
    rng = np.random.default_rng(0)
    codes = np.sort(rng.integers(0, len(CLASSES), n))
    X = rng.standard_normal((n, n_features), dtype=np.float32)
    X += 3 * (codes[:, None] % n_features == np.arange(n_features))
    proba = rng.dirichlet(np.ones(len(CLASSES)), n).astype(np.float32) / 2
    proba[np.arange(n), codes] += 0.5
    return X, np.array(CLASSES)[codes], proba / proba.sum(axis=1, keepdims=True)


def write(path: Path, X: np.ndarray, y: np.ndarray, proba: np.ndarray) -> None:
    def arrays(values: np.ndarray) -> pyarrow.Array:
        fixed = pyarrow.FixedSizeListArray.from_arrays(values.ravel(), values.shape[1])
        return fixed.cast(pyarrow.list_(pyarrow.float32()))

    columns = {"id": np.arange(len(y)), "label": y, "features": arrays(X), "proba": arrays(proba)}
    parquet.write_table(pyarrow.table(columns), path, row_group_size=BLOCK)


def agrees(recipe: Recipe, folder: Path, n: int, n_features: int) -> bool:
    """Tell whether the recipe gives what memory gives, and print by how much and how fast."""
    X, y, proba = samples(n, n_features)
    path = folder / f"{n}.parquet"
    write(path, X, y, proba)
    start = time.perf_counter()
    compute, error = recipe(path, n_features)
    added = time.perf_counter()
    table = compute().sort_by("id")
    scored = time.perf_counter()
    alone = RMDScorer().fit(X, y)
    expected, expected_error = alone.difficulty(X, y), expected_calibration_error(y, proba)
    end = time.perf_counter()
    difference = abs(table["difficulty"].to_numpy() - expected).max() / expected.std()
    same = len(table) == n and difference < TOLERANCE and abs(error - expected_error) < 1e-9
    for line in (
        f"{n:,} x {n_features}, {len(CLASSES)} classes: {'the same' if same else 'NOT the same'}",
        f"  difficulty: differs by {difference:.1e} of its standard deviation, at most",
        f"  calibration error: {error:.12f}, in memory {expected_error:.12f}",
        f"  fit and calibration error {added - start:.1f} s, difficulty {scored - added:.1f} s; "
        f"in memory {end - scored:.1f} s in all",
    ):
        print(line, flush=True)
    return same


def main(description: str | None, recipes: Callable[[str], Any]) -> int:
    """Run the recipe over few samples of scattered classes, then over --rows; 0 if they agree.

    `recipes` is a context that brings up the engine, with a folder for its files, and gives the
    recipe of each.
    """
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--features", type=int, default=128)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, recipes(folder) as (scattered, plain):
        few = agrees(scattered, Path(folder), 20_000, 16)
        many = agrees(plain, Path(folder), options.rows, options.features)
    return 0 if few and many else 1
