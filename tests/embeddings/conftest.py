"""Small models with random weights, saved to local files: nothing is downloaded."""

import json
from contextlib import suppress

import numpy as np
import pytest

# Without torch the tests beside this file are skipped one by one, and not all tests with them.
with suppress(ImportError):
    import torch
    from PIL import Image

TINY_CLIP = {
    "embed_dim": 16,
    "vision_cfg": {"image_size": 32, "layers": 2, "width": 32, "patch_size": 8, "head_width": 16},
    "text_cfg": {"context_length": 16, "vocab_size": 49408, "width": 16, "heads": 2, "layers": 1},
}


@pytest.fixture(scope="session")
def tiny_clip(tmp_path_factory):
    """Register the model "tiny-clip" and return (name, file of weights, model, preprocess)."""
    import open_clip

    folder = tmp_path_factory.mktemp("open_clip")
    config = folder / "tiny-clip.json"
    config.write_text(json.dumps(TINY_CLIP))
    open_clip.add_model_config(config)
    with torch.random.fork_rng():
        torch.manual_seed(7)
        model, _, preprocess = open_clip.create_model_and_transforms("tiny-clip")
    torch.save(model.state_dict(), folder / "weights.pt")
    return "tiny-clip", folder / "weights.pt", model.eval(), preprocess


@pytest.fixture(scope="session")
def small_timm(tmp_path_factory):
    """Return (name, file of weights with a classifier, model without, preprocess at 32 pixels)."""
    import timm

    with torch.random.fork_rng():
        torch.manual_seed(7)
        model = timm.create_model("test_resnet", num_classes=5)
    path = tmp_path_factory.mktemp("timm") / "weights.pt"
    torch.save(model.state_dict(), path)
    model.reset_classifier(0)
    config = timm.data.resolve_data_config({"input_size": (3, 32, 32)}, model=model)
    return "test_resnet", path, model.eval(), timm.data.create_transform(**config)


@pytest.fixture
def images():
    """Return 7 random images of smooth colors, uint8 (7, 40, 48, 3)."""
    coarse = np.random.default_rng(3).integers(0, 256, (7, 5, 6, 3)).astype(np.uint8)
    return np.stack([np.asarray(Image.fromarray(image).resize((48, 40))) for image in coarse])


@pytest.fixture
def files(images, tmp_path):
    paths = [tmp_path / f"{i}.png" for i in range(len(images))]
    for path, image in zip(paths, images):
        Image.fromarray(image).save(path)
    return paths
