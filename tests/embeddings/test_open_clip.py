"""OpenClipEmbedder: the library's own forward passes, and what is said when there is no model."""

import json

import numpy as np
import open_clip
import pytest
import torch
from numpy.testing import assert_allclose
from PIL import Image

from skcalib.embeddings import OpenClipEmbedder


@torch.no_grad()
def _own_forward(model, preprocess, images):
    rows = [model.encode_image(preprocess(Image.fromarray(image))[None]) for image in images]
    return torch.cat(rows).numpy()


def test_features_equal_the_forward_pass_of_the_library(tiny_clip, images):
    name, path, model, preprocess = tiny_clip
    want = _own_forward(model, preprocess, images)
    assert_allclose(OpenClipEmbedder(name, path).transform(images), want, atol=1e-6)
    assert_allclose(OpenClipEmbedder(name, str(path)).fit_transform(images), want, atol=1e-6)


def test_random_weights_equal_the_seeded_library(tiny_clip, images):
    with torch.random.fork_rng():
        torch.manual_seed(11)
        model, _, preprocess = open_clip.create_model_and_transforms(tiny_clip[0])
    want = _own_forward(model.eval(), preprocess, images)
    got = OpenClipEmbedder(tiny_clip[0], random_state=11).transform(images)
    assert_allclose(got, want, atol=1e-6)


def test_image_size(tiny_clip, images):
    name, path, _, _ = tiny_clip
    model, preprocess = open_clip.create_model_from_pretrained(
        name, str(path), force_image_size=64
    )
    got = OpenClipEmbedder(name, path, image_size=64).transform(images)
    assert_allclose(got, _own_forward(model.eval(), preprocess, images), atol=1e-5)


@pytest.mark.slow
def test_texts_equal_the_forward_pass_of_the_library(tiny_clip):
    name, path, model, _ = tiny_clip
    texts = ["a blurry photo", "several objects", "a cat"]
    with torch.no_grad():
        want = model.encode_text(open_clip.get_tokenizer(name)(texts)).numpy()
    got = OpenClipEmbedder(name, path, batch_size=2).encode_text(texts)
    assert got.dtype == np.float32
    assert_allclose(got, want, atol=1e-6)
    assert_allclose(OpenClipEmbedder("tiny/clip", path).encode_text(texts), want, atol=1e-6)
    with pytest.raises(TypeError, match="texts must be a sequence of str, got 'a cat'"):
        OpenClipEmbedder(name, path).encode_text("a cat")


@pytest.mark.skipif(
    not hasattr(open_clip.factory, "LOCAL_DIR_PREFIX"), reason="open_clip knows no local-dir: yet"
)
def test_a_local_folder_brings_its_weights(tiny_clip, images, tmp_path):
    name, path, model, preprocess = tiny_clip
    config = {"model_cfg": open_clip.get_model_config(name), "preprocess_cfg": {}}
    (tmp_path / "open_clip_config.json").write_text(json.dumps(config))
    (tmp_path / "open_clip_model.pth").write_bytes(path.read_bytes())
    got = OpenClipEmbedder(f"local-dir:{tmp_path}").transform(images)
    assert_allclose(got, _own_forward(model, preprocess, images), atol=1e-6)
    with pytest.raises(ValueError, match="pretrained must be None for 'local-dir:"):
        OpenClipEmbedder(f"local-dir:{tmp_path}", path).transform(images)
    (tmp_path / "open_clip_model.pth").unlink()
    with pytest.raises(OSError, match="pass 'local-dir:<folder>' as model_name"):
        OpenClipEmbedder(f"local-dir:{tmp_path}").transform(images)


def test_quick_gelu_follows_the_tag(monkeypatch, tiny_clip, images):
    """The tag "openai" of ViT-B-32 was trained with QuickGELU; open_clip would only warn."""
    calls = []

    def record(name, pretrained, **options):
        calls.append((name, pretrained, options["force_quick_gelu"]))
        return tiny_clip[2], tiny_clip[3]

    monkeypatch.setattr(open_clip, "create_model_from_pretrained", record)
    OpenClipEmbedder("ViT-B/32", "openai").transform(images)
    OpenClipEmbedder("ViT-B-32", "laion2b_s34b_b79k").transform(images)
    assert calls == [("ViT-B-32", "openai", True), ("ViT-B-32", "laion2b_s34b_b79k", False)]


def test_no_network(monkeypatch, images, tmp_path):
    """The hub's own client, told that it is offline."""
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(OSError, match=r"'laion2b_s34b_b79k' could not be loaded .* pass its path"):
        OpenClipEmbedder("ViT-B-32", "laion2b_s34b_b79k").transform(images)
    with pytest.raises(OSError, match=r"'hf-hub:laion/none' could not be loaded .*local-dir:"):
        OpenClipEmbedder("hf-hub:laion/none").transform(images)


@pytest.mark.parametrize(
    ("name", "pretrained", "message"),
    [
        ("ViT-B-23", None, r"model_name must be in .*, got 'ViT-B-23' \(near names: ViT-B-32,"),
        ("qqqqqqqq", None, r"in open_clip\.list_models\(\), got 'qqqqqqqq'\."),
        ("ViT-B-32", "openia", r"tags of ViT-B-32 \(openai, .*, got 'openia'"),
        (
            "ViT-B-32",
            "/no/such/file.pt",
            "a local file, None or one of .* '/no/such/file.pt'",
        ),
        ("tiny-clip", "openai", r"tags of tiny-clip \(it has none\), got 'openai'"),
    ],
)
def test_unknown_models_and_weights(name, pretrained, message, images, tiny_clip):
    with pytest.raises(ValueError, match=message):
        OpenClipEmbedder(name, pretrained).transform(images)


def test_weights_that_do_not_fit(tiny_clip, images, tmp_path):
    name, _, model, _ = tiny_clip
    state = model.state_dict()
    torch.save(state | {"visual.proj": torch.zeros(3, 3)}, tmp_path / "other.pt")
    state.pop("visual.proj")
    torch.save(state, tmp_path / "part.pt")
    (tmp_path / "no.pt").write_text("no weights")
    for file in (tmp_path / "other.pt", tmp_path / "part.pt", tmp_path / "no.pt"):
        with pytest.raises(ValueError, match=f"weights that fit tiny-clip, got '{file}': "):
            OpenClipEmbedder(name, file).transform(images)
