"""One opener of images and one way to take a sample, for embedders, reports and displays."""

import numpy as np
import pytest

from skcalib.utils._output import open_image, scale_pixels, take_sample

Image = pytest.importorskip("PIL.Image")
pd = pytest.importorskip("pandas")
# Private, because four packages show samples by these two functions.


class Frame:
    """The methods of a polars table that are used."""

    def __init__(self, columns):
        self._columns = columns

    def slice(self, offset, length):
        return Frame({k: v[offset : offset + length] for k, v in self._columns.items()})

    def to_dict(self, as_series=True):
        assert not as_series
        return self._columns

    def __getitem__(self, name):
        raise AssertionError("a number in brackets is a column")


class Column(Frame):
    """The methods of a polars column that are used."""

    def __init__(self, values):
        self._values = values
        self.to_list = lambda: values

    to_dict = property()

    def slice(self, offset, length):
        return Column(self._values[offset : offset + length])


COLUMNS = {"a": [1.5, 2.5, 3.5], "b": ["x", "y", "z"]}


def _tables():
    yield pd.DataFrame(COLUMNS, index=[7, 8, 9])
    yield Frame(COLUMNS)
    arrow = pytest.importorskip("pyarrow")
    yield arrow.table(COLUMNS)
    yield arrow.RecordBatch.from_pydict(COLUMNS)


def test_a_row_of_any_table_has_the_names_of_its_columns():
    for table in _tables():
        row = take_sample(table, 1)
        assert row.to_dict() == {"a": 2.5, "b": "y"}


def test_an_entry_of_any_column():
    arrow = pytest.importorskip("pyarrow")
    texts = COLUMNS["b"]
    for column in (
        texts,
        np.array(texts),
        pd.Series(texts, index=[7, 8, 9]),
        Column(texts),
        arrow.array(texts),
        arrow.chunked_array([texts[:1], texts[1:]]),
    ):
        assert take_sample(column, 1) == "y"
    np.testing.assert_array_equal(take_sample(np.eye(3), 1), [0, 1, 0])


GRAY = np.add.outer(np.arange(64), np.arange(64))


@pytest.mark.parametrize(
    ("pixels", "name"),
    [
        (GRAY.astype(np.uint16) * 500, "a.png"),  # I;16
        (GRAY.astype(np.uint16) * 30, "a.tif"),  # of 12 bits
        (GRAY.astype(np.int32) * 1000 - 5, "a.tif"),  # I
        ((GRAY / 126).astype(np.float32), "a.tif"),  # F
    ],
)
def test_deep_images_are_scaled_by_path_and_by_object(tmp_path, pixels, name):
    Image.fromarray(pixels).save(tmp_path / name)
    expected = np.rint(GRAY / 126 * 255)
    for given in (tmp_path / name, str(tmp_path / name), Image.open(tmp_path / name)):
        found = np.asarray(open_image(given, extra="report").convert("RGB"))
        assert found.shape == (64, 64, 3)
        np.testing.assert_allclose(found[..., 0], expected, atol=1)


def test_a_photo_is_turned_upright_by_path_and_by_object(tmp_path):
    pixels = np.zeros((40, 60, 3), np.uint8)
    pixels[:, :20] = 255
    exif = Image.Exif()
    exif[0x112] = 6
    path = tmp_path / "photo.png"
    Image.fromarray(pixels).transpose(Image.Transpose.ROTATE_90).save(path, exif=exif)
    for given in (path, Image.open(path)):
        np.testing.assert_array_equal(open_image(given, extra="report"), pixels)


def test_pixels_that_are_not_finite():
    found = scale_pixels(np.array([[0.0, 1.0, np.nan, np.inf, -np.inf]]))
    assert found.tolist() == [[0, 255, 0, 255, 0]]
    assert not scale_pixels(np.full((2, 2), np.inf)).any()
