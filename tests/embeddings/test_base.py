"""What embedders of images share, tried on both: rows, views, laziness, caches, parameters."""

import pickle
import subprocess
import sys
import textwrap
import weakref

import numpy as np
import pandas as pd
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from PIL import Image
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.utils import estimator_checks, get_tags
from sklearn.utils.validation import check_is_fitted

from skcalib.embeddings import OpenClipEmbedder, TimmEmbedder, _images


@pytest.fixture(params=["open_clip", "timm"])
def build(request, tiny_clip, small_timm):
    """Return a function that builds an embedder of local weights."""
    if request.param == "open_clip":
        return lambda **kwargs: OpenClipEmbedder(*tiny_clip[:2], **kwargs)
    return lambda **kwargs: TimmEmbedder(*small_timm[:2], **{"image_size": 32} | kwargs)


# Those of scikit-learn's checks that do not feed numbers.
@pytest.mark.parametrize(
    "check",
    [
        estimator_checks.check_estimator_cloneable,
        estimator_checks.check_estimator_repr,
        estimator_checks.check_estimator_tags_renamed,
        estimator_checks.check_get_params_invariance,
        estimator_checks.check_mixin_order,
        estimator_checks.check_no_attributes_set_in_init,
        estimator_checks.check_set_params,
        estimator_checks.check_valid_tag_types,
    ],
    ids=lambda check: check.__name__,
)
def test_estimator_checks(check, build):
    check("embedder", build())


@pytest.mark.slow
@pytest.mark.usefixtures("on_host")  # a GPU rounds by the size of the batch
def test_batches_workers_and_order_do_not_change_a_row(build, images, files):
    want = build().transform(images)
    assert want.dtype == np.float32
    assert len(np.unique(want, axis=0)) == 7
    assert_allclose(build(batch_size=2).transform(files), want, atol=1e-6)
    order = np.random.default_rng(0).permutation(7)
    assert_allclose(build(batch_size=3).transform(images[order]), want[order], atol=1e-6)
    assert_allclose(build().transform(images[2:3]), want[2:3], atol=1e-6)


def test_an_accelerator_computes_while_the_next_batch_is_prepared(build, images, monkeypatch):
    embedder, steps = build(batch_size=3), []

    def note(owner, name):
        inner = getattr(owner, name)
        monkeypatch.setattr(owner, name, lambda *a, **k: (steps.append(name), inner(*a, **k))[1])

    note(_images, "collate")
    note(embedder, "_encode")
    for _ in embedder._batches(images):
        steps.append("fetched")
    assert steps == [
        *("collate", "_encode", "collate", "fetched"),
        *("_encode", "collate", "fetched", "_encode", "fetched"),
    ]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:This process .* multi-threaded:DeprecationWarning")
def test_workers(build, images, files, tmp_path):
    got = build(num_workers=2, batch_size=2, n_views=2).transform(files)
    assert_allclose(got, build(n_views=2).transform(images), atol=1e-6)
    with pytest.raises(OSError, match=r"^X\[7\]: cannot read the image '.*missing.png'"):
        build(num_workers=2, batch_size=2).transform([*files, tmp_path / "missing.png"])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:This process .* multi-threaded:DeprecationWarning")
@pytest.mark.parametrize("num_workers", [0, 1])
def test_the_limit_of_pixels_holds_in_every_process(num_workers, build, files, monkeypatch):
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 40 * 48 - 1)
    with pytest.raises(OSError, match=r"^X\[0\]: .* more than 1919 pixels"):
        build(num_workers=num_workers).transform(files)


@pytest.mark.slow
def test_views(build, images):
    plain = build()
    assert_array_equal(plain.transform_views(images), plain.transform(images)[None])
    views = build(n_views=3, random_state=5).transform_views(images)
    assert views.shape == (3, 7, plain.transform(images).shape[1])
    assert np.abs(views[0] - views[1]).max() > 1e-3
    again = build(n_views=3, random_state=5, batch_size=4)
    assert_allclose(again.transform(images), views.mean(axis=0), atol=1e-6)
    order = np.random.default_rng(0).permutation(7)
    assert_allclose(again.transform_views(images[order]), views[:, order], atol=1e-6)
    # The first views stay what they are when more are asked for; another seed gives others.
    two = build(n_views=2, random_state=5).transform_views(images)
    assert_allclose(two, views[:2], atol=1e-6)
    other = build(n_views=2, random_state=6).transform_views(images)
    assert np.abs(other - two).max() > 1e-3


@pytest.mark.slow
def test_half_precision(build, images):
    want = build().transform(images)
    for precision in ("bfloat16", "float16"):
        got = build(precision=precision).transform(images)
        assert got.dtype == np.float32
        assert not np.array_equal(got, want)
        assert np.abs(got - want).max() < 0.05 * np.abs(want).max()


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_device_does_not_change_a_row(build, images):
    got = build(device="cuda").transform(images)
    assert_allclose(got, build(device="cpu").transform(images), rtol=1e-3, atol=1e-3)


def test_nothing_is_loaded_before_it_is_needed(build, images, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "open_clip", None)
        patch.setitem(sys.modules, "timm", None)
        embedder = clone(build()).fit(images)
        assert "Embedder(" in repr(embedder)
        pickle.loads(pickle.dumps(embedder))
        with pytest.raises(ImportError, match=r"pip install 'skcalib\[embeddings\] @"):
            embedder.transform(images)
    assert len(embedder.transform(images)) == 7


@pytest.mark.slow
def test_the_model_is_not_pickled_and_not_cloned(build, images):
    embedder = build()
    want = embedder.transform(images)
    assert len(pickle.dumps(embedder)) < 2000
    assert_array_equal(pickle.loads(pickle.dumps(embedder)).transform(images), want)
    assert_array_equal(clone(embedder).transform(images), want)
    assert "_loaded" not in vars(clone(embedder))


@pytest.mark.slow
def test_the_model_follows_its_parameters(build, images):
    embedder = build()
    first = embedder.transform(images)
    loaded = embedder._loaded.model
    embedder.set_params(batch_size=2, n_views=2).transform(images)
    assert embedder._loaded.model is loaded
    embedder.set_params(pretrained=None, n_views=None)
    assert np.abs(embedder.transform(images) - first).max() > 1e-3


def test_random_weights_are_seeded_and_the_generator_is_left_alone(build, images):
    state = torch.get_rng_state()
    random = build().set_params(pretrained=None)
    first = random.transform(images)
    assert_array_equal(torch.get_rng_state(), state)
    torch.rand(1)
    assert_array_equal(clone(random).transform(images), first)
    other = clone(random).set_params(random_state=1).transform(images)
    assert np.abs(other - first).max() > 1e-3


@pytest.mark.slow
def test_names_and_frames(build, images, files):
    embedder = build().set_output(transform="pandas")
    names = embedder.get_feature_names_out()
    prefix = type(embedder).__name__.lower()
    X = pd.DataFrame({"file": files}, index=list("abcdefg"))
    frame = embedder.transform(X)
    assert list(frame.index) == list("abcdefg")
    assert list(frame.columns) == list(names) == [f"{prefix}{i}" for i in range(len(names))]
    assert_array_equal(frame, build().transform(images))
    assert embedder.transform(files).shape == frame.shape
    size = build(image_size=64).get_feature_names_out()
    assert len(size) == len(names)


@pytest.mark.slow
def test_in_a_column_transformer(build, images, files):
    X = pd.DataFrame({"file": files, "age": np.arange(7.0)})
    want = build().transform(images)
    for columns in ("file", ["file"]):
        both = ColumnTransformer([("image", build(), columns)], remainder="passthrough")
        assert_allclose(both.fit_transform(X), np.column_stack([want, X["age"]]), atol=1e-6)
        assert both.get_feature_names_out()[-1] == "remainder__age"


@pytest.mark.slow
def test_in_a_pipeline_under_cross_validation(build, images):
    pictures = [Image.fromarray(image) for image in images]
    y = np.array([0, 1, 0, 1, 0, 1, 0])
    model = make_pipeline(build(), LogisticRegression())
    assert cross_val_predict(model, pictures, y, cv=2).shape == (7,)


@pytest.mark.slow
def test_a_cache_survives_a_restart(tiny_clip, files, tmp_path, monkeypatch):
    """A fresh process that cannot import open_clip finds the features in the cache."""
    # joblib writes the code of a function, which validates a cache, to the first folder that a
    # process uses and to no other: earlier tests must not count.
    monkeypatch.setattr("joblib.memory._FUNCTION_HASHES", weakref.WeakKeyDictionary())
    names, y, memory = (
        [str(path) for path in files],
        [0, 1, 0, 1, 0, 1, 0],
        str(tmp_path / "memory"),
    )
    embedder = OpenClipEmbedder(tiny_clip[0], str(tiny_clip[1]), n_views=2)
    model = make_pipeline(embedder, LogisticRegression(), memory=memory).fit(names, y)
    code = f"""
        import sys
        sys.modules["open_clip"] = None
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from skcalib.embeddings import OpenClipEmbedder
        embedder = OpenClipEmbedder(**{embedder.get_params()!r})
        model = make_pipeline(embedder, LogisticRegression(), memory={memory!r})
        print(model.fit({names!r}, {y!r})[-1].coef_[0, 0], model[0].get_feature_names_out()[-1])
        model.predict({names!r})
    """
    fresh = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], check=False, capture_output=True, text=True
    )
    coefficient, name = fresh.stdout.split()
    assert float(coefficient) == pytest.approx(model[-1].coef_[0, 0])
    assert name == "openclipembedder15"
    assert "pip install 'skcalib[embeddings] @ " in fresh.stderr


@pytest.mark.slow
def test_progress(build, images, capsys):
    build(progress=True, batch_size=4).transform(images)
    assert "2/2" in capsys.readouterr().err
    build(batch_size=4).transform(images)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("n_views", [None, 2, 3, 9])
def test_views_count_as_images_of_a_batch(build, images, monkeypatch, n_views):
    embedder, sizes = build(batch_size=4, n_views=n_views), []
    encode = embedder._encode
    monkeypatch.setattr(
        embedder,
        "_encode",
        lambda model, batch: (sizes.append(len(batch)), encode(model, batch))[1],
    )
    embedder.transform(images)
    views = n_views or 1
    at_a_time = max(1, 4 // views)
    assert sizes == [views * min(at_a_time, 7 - start) for start in range(0, 7, at_a_time)]


def test_the_number_of_features_needs_no_images(build, images):
    embedder = build()
    names = embedder.get_feature_names_out()
    assert len(names) == embedder.transform(images).shape[1]
    assert_array_equal(embedder.get_feature_names_out(), names)


def test_tags(build):
    tags = get_tags(build())
    check_is_fitted(build())  # trained before: it needs no fit
    assert not tags.requires_fit
    assert tags.no_validation
    assert tags.input_tags.string
    assert not tags.input_tags.two_d_array
    assert tags.transformer_tags.preserves_dtype == []  # whatever goes in, float32 comes out


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("precision", "half"),
        ("n_views", 0),
        ("batch_size", 0),
        ("num_workers", -1),
        ("random_state", None),
        ("image_size", 0),
        ("pretrained", 3),
        ("progress", "yes"),
    ],
)
def test_bad_parameters(build, parameter, value, images):
    embedder = build().set_params(**{parameter: value})
    for method in (embedder.fit, embedder.transform):
        with pytest.raises(ValueError, match=f"The '{parameter}' parameter of"):
            method(images)
