"""Images made worse by degrees: more with every severity, as published."""

import numpy as np
import pytest
from scipy.stats import norm

from benchmarks.papers.corruptions import corrupt_images

KINDS = (
    "gaussian_noise", "shot_noise", "impulse_noise", "gaussian_blur", "brightness", "contrast"
)  # fmt: skip


@pytest.fixture(scope="module")
def images():
    return np.random.default_rng(0).integers(40, 200, (10, 32, 32, 3), dtype=np.uint8)


@pytest.mark.parametrize("kind", KINDS)
def test_images_get_worse_with_every_severity_and_keep_shape_and_dtype(kind, images):
    changes = []
    for severity in range(6):
        found = corrupt_images(images, kind, severity=severity, random_state=0)
        assert found.shape == images.shape
        assert found.dtype == np.uint8
        changes.append(np.abs(found.astype(float) - images).mean())
    assert changes[0] == 0
    assert (np.diff(changes) > 0).all()


@pytest.mark.parametrize("kind", KINDS)
def test_bytes_and_floats_are_treated_alike_and_gray_images_too(kind, images):
    in_bytes = corrupt_images(images, kind, random_state=0)
    in_floats = corrupt_images(images / 255, kind, random_state=0)
    np.testing.assert_allclose(in_floats, in_bytes / 255, atol=0.5001 / 255)
    single = corrupt_images((images / 255).astype(np.float32), kind, random_state=0)
    assert single.dtype == np.float32
    gray = corrupt_images(images[..., 0], kind, random_state=0)
    assert gray.shape == images.shape[:3]


def test_noise_has_the_distribution_that_is_published():
    gray = np.full((200, 32, 32), 0.5)
    noise = corrupt_images(gray, "gaussian_noise", severity=5, random_state=0) - 0.5
    assert noise.std() == pytest.approx(0.10, rel=0.01)
    shots = corrupt_images(gray, "shot_noise", severity=5, random_state=0)
    assert shots.mean() == pytest.approx(0.5, abs=1e-3)
    assert shots.var() == pytest.approx(0.5 / 50, rel=0.02)
    hit = corrupt_images(gray, "impulse_noise", severity=5, random_state=0)
    assert (hit != 0.5).mean() == pytest.approx(0.07, abs=0.003)
    assert (hit == 1).sum() == pytest.approx((hit == 0).sum(), rel=0.05)


def test_blur_spreads_a_point_as_a_gaussian_and_grows_with_the_image():
    for size in (33, 65):
        point = np.zeros((1, size, size))
        point[0, size // 2, size // 2] = 1.0
        blurred = corrupt_images(point, "gaussian_blur", severity=5)[0]
        across = blurred.sum(axis=0)
        offsets = np.arange(size) - size // 2
        assert np.sqrt((across * offsets**2).sum()) == pytest.approx(size / 32, rel=0.02)
        expected = norm.pdf(offsets, scale=size / 32)
        assert np.abs(across - expected).max() < 0.02


def test_contrast_draws_pixels_to_the_mean_and_brightness_keeps_the_hue():
    color = np.random.default_rng(0).uniform(0.2, 0.6, (3, 8, 8, 3))
    mean = color.mean(axis=(1, 2), keepdims=True)
    found = corrupt_images(color, "contrast", severity=2)
    np.testing.assert_allclose(found - mean, 0.5 * (color - mean), atol=1e-12)
    bright = corrupt_images(color, "brightness", severity=5)
    np.testing.assert_allclose(bright.max(axis=3), color.max(axis=3) + 0.3)
    ratio = bright / color
    np.testing.assert_allclose(ratio, ratio[..., :1].repeat(3, axis=3))
    black = corrupt_images(np.zeros((1, 2, 2, 3)), "brightness", severity=1)
    np.testing.assert_allclose(black, 0.05)


def test_a_seed_repeats_and_the_input_is_left_alone(images):
    before = images.copy()
    first, again, other = (corrupt_images(images, random_state=seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()
    np.testing.assert_array_equal(images, before)
    corrupt_images(images, severity=0)[:] = 0
    np.testing.assert_array_equal(images, before)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (np.zeros((3, 3)), r"images must be of shape .*, got \(3, 3\)\."),
        (np.zeros((0, 4, 4)), r"images must be of shape"),
        (np.array([[[0.5, 2]]]), r"images must be uint8 or floats in \[0, 1\], got other values"),
        (np.array([[[0.5, -1]]]), "got other values"),
        (np.full((1, 2, 2), np.nan), "got other values"),
        (np.zeros((1, 2, 2), dtype=int), "images must be uint8 or floats .*, got int64"),
    ],
)
def test_other_input_gets_one_clear_sentence(bad, message):
    with pytest.raises(ValueError, match=message):
        corrupt_images(bad)


def test_the_ends_of_the_range():
    ends = np.array([[[0.0, 1.0], [1.0, 0.0]]])
    assert corrupt_images(ends, severity=0).tolist() == ends.tolist()
    for beyond in (ends + 1e-9, ends - 1e-9, ends * np.nan):
        with pytest.raises(ValueError, match=r"floats in \[0, 1\], got other values"):
            corrupt_images(beyond, severity=0)
    # Black has no hue to keep: it becomes gray; what is bright already becomes white.
    black = corrupt_images(np.zeros((1, 2, 2, 3)), "brightness", severity=4)
    np.testing.assert_allclose(black, 0.2)
    bright = corrupt_images(np.full((1, 2, 2, 3), [0.9, 0.45, 0.0]), "brightness", severity=5)
    np.testing.assert_allclose(bright[0, 0, 0], [1.0, 0.5, 0.0])
    gray = corrupt_images(np.full((1, 2, 2), 0.9), "brightness", severity=5)
    np.testing.assert_allclose(gray, 1.0)


def test_the_blur_goes_by_the_smaller_side_and_mixes_no_channels():
    image = np.zeros((2, 65, 33, 3))
    image[0, 32, 16, 1] = 1.0
    blurred = corrupt_images(image, "gaussian_blur", severity=5)
    assert np.flatnonzero(blurred.sum(axis=(1, 2)).ravel()).tolist() == [1]
    square = np.zeros((1, 33, 33))
    square[0, 16, 16] = 1.0
    expected = corrupt_images(square, "gaussian_blur", severity=5)[0]
    np.testing.assert_allclose(blurred[0, 16:49, :, 1], expected, atol=1e-12)
