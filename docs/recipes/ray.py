"""The guide's recipe for ray, compared with memory: python -m docs.recipes.ray.

Twice on this machine alone: over batches of one or two classes, and over --rows rows of parquet.
Both must give what arrays in memory give, or the exit status is 1. Needs ray[data]; nothing else
here does.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow

from docs.recipes._compare import BLOCK, CLASSES, main


def recipe(data: Any, classes: list[str], batch_size: int) -> tuple:
    # The guide shows what follows.
    import pickle

    import numpy as np
    import ray

    from skcalib.difficulty import RMDScorer
    from skcalib.metrics import CalibrationAccumulator

    def fit(batch):
        part = RMDScorer().partial_fit(np.stack(batch["features"]), batch["label"])
        return {"part": [pickle.dumps(part)]}

    def accumulate(batch):
        part = CalibrationAccumulator(labels=classes)
        part.update(batch["label"], np.stack(batch["proba"]))
        return {"part": [pickle.dumps(part)]}

    def added_up(of_batch):
        rows = data.map_batches(of_batch, batch_size=batch_size).iter_rows()
        return sum(pickle.loads(row["part"]) for row in rows)

    def score(batch):
        values = ray.get(scorer).difficulty(np.stack(batch["features"]), batch["label"])
        return {"id": batch["id"], "difficulty": values}

    scorer = ray.put(added_up(fit).finalize())
    difficulty = data.map_batches(score, batch_size=batch_size)
    error = added_up(accumulate).result()
    # The guide ends here.
    return lambda: pyarrow.concat_tables(map(ray.get, difficulty.to_arrow_refs())), error


@contextmanager
def recipes(folder: str) -> Iterator[tuple]:
    import ray

    options = {"num_cpus": 2, "include_dashboard": False, "object_store_memory": 2 * 10**9}
    ray.init(_node_ip_address="127.0.0.1", logging_level="error", log_to_driver=False, **options)
    ray.data.DataContext.get_current().enable_progress_bars = False

    def plain(path: Path, n_features: int) -> tuple:
        return recipe(ray.data.read_parquet(str(path)), CLASSES, BLOCK)

    def scattered(path: Path, n_features: int) -> tuple:
        return recipe(ray.data.read_parquet(str(path)), CLASSES, 1000)

    try:
        yield scattered, plain
    finally:
        ray.shutdown()


if __name__ == "__main__":
    sys.exit(main(__doc__, recipes))
