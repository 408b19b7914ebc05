"""The benchmark of a GPU runs, here on the CPU and with tiny sizes."""

import json
import sys

import pytest
import torch

from skcalib.utils import _backends

cuda = pytest.importorskip("benchmarks.cuda")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # tiny sizes
def test_every_line_has_a_bound_and_agrees_with_the_host(monkeypatch, tmp_path):
    output = tmp_path / "figures.json"
    options = ["--device", "cpu", "--small", "--repeats", "1", "--output", str(output)]
    monkeypatch.setattr(sys, "argv", ["cuda", *options])
    monkeypatch.setattr(_backends, "ACCELERATORS", set(_backends.ACCELERATORS))  # it adds the CPU
    assert cuda.main() == 0
    result = json.loads(output.read_text())
    assert result["device"].startswith("CPU")
    names = " ".join(figure["name"] for figure in result["figures"])
    for part in (
        "RMD fit", "KNNScorer", "PredictionDepthScorer.difficulty", "expected_calibration_error",
        "CalibrationAccumulator", "RMD covariances decomposed", "bins of equal weight",
        "TemperatureScaling.fit", "BrierLoss", "epoch, mixup", "adversarial_input_margin",
        "TimmEmbedder", "LayerEmbedder, host arrays",
    ):  # fmt: skip
        assert part in names
    rates = [figure for figure in result["figures"] if "samples_per_second" in figure]
    assert {figure["name"].split(".")[0].split()[0] for figure in rates} == {
        "RMD", "KNNScorer", "PredictionDepthScorer"
    }  # fmt: skip
    assert all(figure["samples_per_second_on_host"] > 0 for figure in rates)
    for figure in result["figures"]:
        assert figure["seconds"] > 0
        assert figure["bound_seconds"] > 0
        assert figure["error_against_host"] is None or figure["error_against_host"] < 1e-3


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_says_that_there_is_no_gpu(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["cuda"])
    assert cuda.main() == 0
    assert capsys.readouterr().out.startswith("There is no GPU")
