"""The recipes of the guide for Spark and ray, on stand-ins that hand batches to functions."""

import pickle
import sys
from types import SimpleNamespace

import pytest

from docs.recipes._compare import CLASSES, agrees

pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")


class Frame:
    """Of Spark: partitions of one class or none, and what is sent to a worker is a copy."""

    def __init__(self, path):
        table = parquet.read_table(path)
        is_of = [pa.compute.equal(table["label"], label) for label in [*CLASSES, "none"]]
        self.partitions = [table.filter(mask).to_batches(max_chunksize=700) for mask in is_of]

    def mapInArrow(self, function, schema):
        batches = [batch for part in self.partitions for batch in function(iter(part))]
        table = pa.Table.from_batches(batches)
        rows = [SimpleNamespace(**row) for row in table.to_pylist()]
        return SimpleNamespace(collect=lambda: rows, toArrow=lambda: table)


class Data:
    """Of ray: batches as dicts of columns, those of arrays as arrays of objects."""

    def __init__(self, table):
        self.table = table

    def map_batches(self, function, batch_size):
        batches = self.table.combine_chunks().to_batches(max_chunksize=batch_size)
        columns = [
            {name: batch[name].to_numpy(zero_copy_only=False) for name in batch.schema.names}
            for batch in batches
        ]
        return Data(pa.concat_tables([pa.table(function(batch)) for batch in columns]))

    def iter_rows(self):
        return iter(self.table.to_pylist())

    def to_arrow_refs(self):
        return [self.table]


@pytest.mark.slow
def test_the_recipe_for_spark_gives_what_memory_gives(tmp_path):
    from docs.recipes.spark import recipe

    def broadcast(value):
        return SimpleNamespace(value=pickle.loads(pickle.dumps(value)))

    spark = SimpleNamespace(sparkContext=SimpleNamespace(broadcast=broadcast))

    def on_frame(path, n_features):
        return recipe(spark, Frame(path), n_features, CLASSES)

    assert agrees(on_frame, tmp_path, 5000, 8)


@pytest.mark.slow
def test_the_recipe_for_ray_gives_what_memory_gives(tmp_path, monkeypatch):
    from docs.recipes.ray import recipe

    monkeypatch.setitem(sys.modules, "ray", SimpleNamespace(put=pickle.dumps, get=_get))

    def on_data(path, n_features):
        return recipe(Data(parquet.read_table(path)), CLASSES, 700)

    assert agrees(on_data, tmp_path, 5000, 8)


def _get(reference):
    return pickle.loads(reference) if isinstance(reference, bytes) else reference
