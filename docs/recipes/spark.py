"""The guide's recipe for Spark, compared with memory: python -m docs.recipes.spark.

Twice in local mode: over partitions of few classes each, some of them empty, and over --rows rows
of parquet. Both must give what arrays in memory give, or the exit status is 1. Needs pyspark 4.0
and the Java that it asks for; nothing else here does.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from docs.recipes._compare import BLOCK, CLASSES, main


def recipe(spark: Any, frame: Any, n_features: int, classes: list[str]) -> tuple:
    # The guide shows what follows.
    import pickle

    import pyarrow as pa

    from skcalib.difficulty import RMDScorer
    from skcalib.metrics import CalibrationAccumulator

    def matrix(column, width):  # nulls and arrays of other lengths are errors
        return column.cast(pa.list_(pa.float32(), width)).flatten().to_numpy().reshape(-1, width)

    def fit(batches):
        part = RMDScorer()
        for batch in batches:
            part.partial_fit(matrix(batch["features"], n_features), batch["label"])
        yield pa.record_batch({"part": [pickle.dumps(part)]})

    def accumulate(batches):
        part = CalibrationAccumulator(labels=classes)
        for batch in batches:
            part.update(batch["label"], matrix(batch["proba"], len(classes)))
        yield pa.record_batch({"part": [pickle.dumps(part)]})

    def added_up(of_partition):
        rows = frame.mapInArrow(of_partition, "part binary").collect()
        return sum(pickle.loads(row.part) for row in rows)

    def score(batches):
        for batch in batches:
            values = scorer.value.difficulty(matrix(batch["features"], n_features), batch["label"])
            yield pa.record_batch({"id": batch["id"], "difficulty": values})

    scorer = spark.sparkContext.broadcast(added_up(fit).finalize())
    difficulty = frame.mapInArrow(score, "id long, difficulty double")
    error = added_up(accumulate).result()
    # The guide ends here.
    return difficulty.toArrow, error


@contextmanager
def recipes(folder: str) -> Iterator[tuple]:
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # else the first python3 of the PATH
    options = {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.local.dir": folder,
        "spark.log.level": "ERROR",
        "spark.sql.execution.arrow.maxRecordsPerBatch": str(BLOCK),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    spark = SparkSession.builder.master("local[2]").config(map=options).getOrCreate()

    def plain(path: Path, n_features: int) -> tuple:
        return recipe(spark, spark.read.parquet(str(path)), n_features, CLASSES)

    def scattered(path: Path, n_features: int) -> tuple:
        frame = spark.read.parquet(str(path)).repartition(16, "label").cache()
        partitions = frame.select("label").rdd.glom().collect()
        n_labels = [len({row.label for row in rows}) for rows in partitions]
        print("classes of the partitions:", *n_labels)
        if min(n_labels) > 0 or max(n_labels) == len(CLASSES):
            raise RuntimeError("partitions must lack classes, and some be empty")
        return recipe(spark, frame, n_features, CLASSES)

    try:
        yield scattered, plain
    finally:
        spark.stop()


if __name__ == "__main__":
    sys.exit(main(__doc__, recipes))
