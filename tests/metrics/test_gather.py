"""Accumulators of the processes of torch.distributed, added up: gloo, two processes."""

import json
import subprocess
import sys

import numpy as np
import pytest

from skcalib.metrics import CalibrationAccumulator

pytest.importorskip("torch.distributed")

RANK = """
import json, sys
from datetime import timedelta
import numpy as np
import torch.distributed as dist
from skcalib.metrics import CalibrationAccumulator

rank, store = int(sys.argv[1]), sys.argv[2]
dist.init_process_group(
    "gloo", init_method=f"file://{store}", rank=rank, world_size=2, timeout=timedelta(minutes=5)
)
rng = np.random.default_rng(rank)
proba = rng.dirichlet(np.ones(3), 100 + rank)
y = rng.integers(0, 3, 100 + rank)
found = []
for names in (None, range(3), ["a", "b", "c"] if rank else range(3)):
    mine = CalibrationAccumulator(metrics=["e_value"], labels=names)
    mine.update(y if names is None else np.array(names)[y], proba)
    try:
        parts = [None, None]
        dist.all_gather_object(parts, mine)
        found.append([mine.to_json(), sum(parts).to_json(), mine.to_json()])
    except ValueError as error:
        found.append(str(error))
print(json.dumps(found), flush=True)
sys.stdin.read()  # until it is killed: torch 2.7 may hang as it destroys the group
"""


def run_both(folder):
    store = folder / "store"
    runs = [
        subprocess.Popen(
            [sys.executable, "-c", RANK, str(rank), str(store)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    try:
        return [json.loads(run.stdout.readline()) for run in runs]
    finally:
        for run in runs:
            run.kill()
            run.communicate()


@pytest.mark.slow
def test_every_process_has_the_sum_of_both_or_an_error(tmp_path):
    processes = run_both(tmp_path)
    for case in range(2):  # labels found, and labels given
        first, second = (found[case] for found in processes)
        parts = [CalibrationAccumulator.from_json(text) for text in (first[0], second[0])]
        total = sum(parts)
        for before, gathered, after in (first, second):
            found = CalibrationAccumulator.from_json(gathered)
            np.testing.assert_allclose(found.sums_, total.sums_, rtol=1e-15)
            assert found.result() == pytest.approx(total.result(), rel=1e-14)
            assert found.evidence() == pytest.approx(total.evidence(), rel=1e-12)
            assert before == after  # that of the process is as it was
        assert parts[0].result() != pytest.approx(total.result(), rel=1e-3)
    for found in processes:
        assert "Only accumulators with the same" in found[2]
