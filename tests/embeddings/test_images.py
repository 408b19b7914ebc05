"""Images in every form are the same pixels; what is no image is named."""

import re
import struct

import numpy as np
import pandas as pd
import pytest
import torch
from numpy.testing import assert_array_equal
from PIL import Image, ImageOps

from skcalib.embeddings._images import ImageDataset, as_items, collate, draw_view, open_image


def _pixels(items):
    return np.stack([np.asarray(open_image(item)) for item in items])


def test_every_form_gives_the_same_pixels(images, files):
    names = [str(path) for path in files]
    forms = [
        images,
        list(images),
        tuple(Image.fromarray(image) for image in images),
        files,
        names,
        np.array(names),
        np.array(names, dtype=object)[:, None],
        pd.Series(names),
        pd.Series(files),
        pd.DataFrame({"file": names}),
        pd.DataFrame({"image": [Image.fromarray(image) for image in images]}),
    ]
    for form in forms:
        assert_array_equal(_pixels(as_items(form)), images)


def test_grey_and_transparent_images():
    gray = np.arange(12, dtype=np.uint8).reshape(1, 3, 4)
    for form in (gray, gray[..., None]):
        assert_array_equal(_pixels(as_items(form))[..., 1], gray)
    clear = np.zeros((1, 3, 4, 4), dtype=np.uint8)
    clear[..., 0] = 200
    assert_array_equal(_pixels(as_items(clear))[0], np.full((3, 4, 3), [200, 0, 0]))


def test_photos_are_turned_upright(tmp_path):
    image = Image.fromarray(np.arange(6, dtype=np.uint8).reshape(2, 3) * 40)
    exif = Image.Exif()
    exif[0x0112] = 6  # The camera was turned: show it rotated by 90 degrees clockwise.
    image.save(tmp_path / "photo.png", exif=exif)
    got = np.asarray(open_image(tmp_path / "photo.png"))[..., 0]
    assert_array_equal(got, np.rot90(np.asarray(image), k=-1))


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        ("a.png", TypeError, "X must be a list of image files.* got str"),
        (5, TypeError, "got int"),
        (np.zeros((2, 4, 4, 3)), TypeError, "dtype uint8 .* got dtype float64"),
        (
            np.zeros((2, 4, 4, 2), np.uint8),
            ValueError,
            r"1, 3 or 4 .* got shape \(2, 4, 4, 2\)",
        ),
        (np.zeros((2, 4), np.uint8), ValueError, r"got shape \(2, 4\)"),
        (np.array([["a", "b"]]), TypeError, "dtype uint8"),
        ([], ValueError, "at least one image"),
        (np.zeros((0, 4, 4, 3), np.uint8), ValueError, "at least one image"),
        (np.zeros((4, 4, 3), np.uint8), ValueError, r"got shape \(4, 4, 3\)"),
        (pd.DataFrame({"a": ["x"], "b": ["y"]}), ValueError, "one column.* got 2 columns"),
    ],
)
def test_what_is_no_set_of_images(X, error, message):
    with pytest.raises(error, match=message):
        as_items(X)


def test_unreadable_images_are_named(tmp_path, files):
    broken = tmp_path / "broken.png"
    broken.write_bytes(files[0].read_bytes()[:60])
    text = tmp_path / "text.jpg"
    text.write_text("no image")
    empty = tmp_path / "empty.png"
    empty.write_bytes(b"")
    for path in (broken, text, empty, tmp_path / "missing.png", tmp_path):
        with pytest.raises(OSError, match=f"cannot read the image '{path}'"):
            open_image(path)


@pytest.mark.parametrize("kind", [RuntimeError, struct.error, NotImplementedError, IndexError])
@pytest.mark.parametrize("named", [True, False])
def test_any_error_of_a_reader_is_one_sentence(kind, named, files, monkeypatch):
    """PIL's readers raise these for broken AVIF, EXIF and DDS."""

    def fail(image):
        raise kind("line\n" * 200)

    image = Image.open(files[0])
    monkeypatch.setattr(ImageOps, "exif_transpose", fail)
    with pytest.raises(OSError, match=r"^cannot read the image.*: line line") as caught:
        open_image(files[0] if named else image)
    assert len(str(caught.value).replace(str(files[0]), "")) < 300
    assert "\n" not in str(caught.value)
    image.close()


def test_a_header_of_dds_with_unknown_flags(tmp_path):
    path = tmp_path / "x.png"
    Image.new("RGB", (4, 4)).save(path, "DDS")
    data = bytearray(path.read_bytes())
    data[80:84] = b"\0\0\0\xff"
    path.write_bytes(data)
    message = r"cannot read the image '.*x\.png': (Unknown|Unimplemented) pixel format"
    with pytest.raises(OSError, match=message):
        open_image(path)


def test_programs_and_colors_without_rgb_are_refused(tmp_path):
    path = tmp_path / "x.png"
    Image.new("RGB", (4, 4)).save(path, "EPS")
    with pytest.raises(OSError, match="EPS is a program, which Ghostscript would run"):
        open_image(path)
    Image.new("LAB", (4, 4)).save(path, "TIFF")
    with pytest.raises(OSError, match="PIL has no RGB of its colors, CIELAB; write it as RGB"):
        open_image(path)


@pytest.mark.parametrize("side", [40, 200])
def test_an_image_of_too_many_pixels_is_refused_with_its_row(side, files, tmp_path, monkeypatch):
    """PIL itself warns up to twice its limit, and raises an error of its own beyond."""
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 1599)
    path = tmp_path / "bomb.png"
    Image.new("L", (side, side)).save(path)
    data = ImageDataset([path, path], lambda image: torch.tensor(np.asarray(image)), None, 0)
    assert isinstance(data[1], OSError)
    message = rf"X\[1\]: cannot read the image '{path}': it has more than 1599 pixels; if"
    assert re.match(message, str(data[1]))
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", side**2)
    assert data[1].shape == (1, side, side, 3)
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", None)
    assert open_image(path).size == (side, side)


@pytest.mark.parametrize("shape", [(0, 0, 3), (0, 4, 3), (4, 0), None])
@pytest.mark.parametrize("n_views", [None, 2])
def test_an_image_without_pixels_is_refused_with_its_row(shape, n_views):
    image = np.zeros(shape, np.uint8) if shape else Image.new("L", (0, 4))
    data = ImageDataset([image], torch.tensor, n_views, 0)
    assert isinstance(data[0], ValueError)
    assert str(data[0]).startswith("X[0]: an image must have at least one pixel, got size")
    assert open_image(Image.new("L", (1, 4))).size == (1, 4)


@pytest.mark.parametrize("item", [None, 3, np.zeros((4, 4, 3)), np.zeros(4, np.uint8)])
def test_what_is_no_image(item):
    with pytest.raises((TypeError, ValueError)):
        open_image(item)


def test_the_dataset_hands_errors_over(images, files, tmp_path):
    items = [files[0], tmp_path / "missing.png", 3]
    data = ImageDataset(items, lambda image: torch.tensor(np.asarray(image)), None, 0)
    assert len(data) == 3
    assert_array_equal(data[0][0], images[0])
    error = collate([data[0], data[1], data[2]])
    assert isinstance(error, OSError)
    assert str(error).startswith(f"X[1]: cannot read the image '{tmp_path / 'missing.png'}'")
    assert str(data[2]).startswith("X[2]: an image must be a path")
    assert collate([data[0], data[0]]).shape == (2, 1, 40, 48, 3)


def test_random_views_are_crops_of_the_image(images):
    image = Image.fromarray(images[0])
    for view in range(20):
        crop = draw_view(image, 0, view)
        assert 0.55 < crop.width * crop.height / (48 * 40) <= 1
        assert abs(crop.width / crop.height - 48 / 40) < 0.05
        pixels = np.asarray(crop)
        candidates = [
            images[0][top : top + crop.height, left : left + crop.width]
            for top in range(40 - crop.height + 1)
            for left in range(48 - crop.width + 1)
        ]
        assert any(
            np.array_equal(pixels, c) or np.array_equal(pixels, c[:, ::-1]) for c in candidates
        )


def test_random_views_are_drawn_from_seed_view_and_pixels(images):
    first, second = (Image.fromarray(image) for image in images[:2])
    same = np.asarray(draw_view(first, 0, 0))
    assert_array_equal(np.asarray(draw_view(first.copy(), 0, 0)), same)
    others = [draw_view(first, 1, 0), draw_view(first, 0, 1), draw_view(second, 0, 0)]
    assert not any(np.array_equal(np.asarray(other), same) for other in others)
    mirrored = [draw_view(first, 0, view).size for view in range(200)]
    assert len(set(mirrored)) > 3


def test_half_of_the_views_are_mirrored():
    ramp = np.tile(np.arange(200, dtype=np.uint8), (200, 1))
    image = Image.fromarray(ramp).convert("RGB")
    views = (np.asarray(draw_view(image, 0, view)) for view in range(200))
    mirrored = sum(int(view[0, 0, 0] > view[0, -1, 0]) for view in views)
    assert 70 < mirrored < 130


def test_smallest_image():
    assert draw_view(Image.new("RGB", (1, 1)), 0, 0).size == (1, 1)
