"""What the package says and shows: errors, warnings, docstrings, tables, samples and files."""

from __future__ import annotations

import inspect
import math
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from shutil import copymode
from textwrap import indent
from types import ModuleType
from typing import TYPE_CHECKING, Any, BinaryIO
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

if TYPE_CHECKING:
    import pandas as pd


# Warnings of the package, which point at the line of the user's code.

# Frames of these stand between a warning and the line that has to change.
_LIBRARIES = {"skcalib", "sklearn", "joblib", "skorch", "contextlib", "numpy"}


class SkcalibWarning(UserWarning):
    """Base of every warning of skcalib itself.

    Examples
    --------
    >>> import warnings
    >>> from skcalib.utils import SkcalibWarning
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", SkcalibWarning)
    """


# Where warnings of the package go within `collecting`.
_collected: ContextVar[list[str] | None] = ContextVar("collected", default=None)


def warn(message: str, category: type[Warning] = SkcalibWarning) -> None:
    """Warn at the first line outside of skcalib and of the libraries that call it."""
    notes = _collected.get()
    if notes is not None:
        notes.append(message)
        return
    level, frame = 1, sys._getframe()
    while frame.f_globals.get("__name__", "").partition(".")[0] in _LIBRARIES and frame.f_back:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


def format_count(count: float) -> str:
    """Return a number of samples, which may be a sum of weights, without an exponent."""
    return f"{count:.0f}" if count >= 100 else f"{count:.3g}"


@contextmanager
def collecting() -> Iterator[list[str]]:
    """Collect the messages of the package's warnings in a list, instead of warning.

    Only those of this thread: ``warnings.catch_warnings`` changes the state of the process, and
    two threads that use it at once may leave the filters wrong for good.
    """
    notes: list[str] = []
    token = _collected.set(notes)
    try:
        yield notes
    finally:
        _collected.reset(token)


@contextmanager
def ignoring(category: type[Warning], pattern: str = "") -> Iterator[None]:
    """Ignore warnings of other packages that begin with a pattern."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", pattern, category)
        yield


# Parameters that several docstrings share: described once, copied where they are referred to.
#
# An entry such as ``y_true, labels : of :func:`expected_calibration_error``` in the section
# "Parameters" stands for those entries of that docstring. When a package is imported,
# :func:`fill_docstrings` puts them in its place, so that ``help()`` shows every parameter whole.

_REFERENCE = re.compile(
    r"^(?P<margin> *)(?P<names>\*{0,2}\w+(?:, \*{0,2}\w+)*) : "
    r"of :(?:class|func|meth):`~?(?P<source>[\w.]+)`$",
    re.MULTILINE,
)
_PACKAGE = "skcalib."


def fill_docstrings(namespace: Mapping[str, Any]) -> None:
    """Fill in the shared descriptions of the public names of a package and of their methods."""
    for name in namespace["__all__"]:
        value, names = namespace[name], dict(namespace)
        if inspect.isclass(value):  # a method refers to another one by its name alone
            names = dict(inspect.getmembers(value)) | names
        for described in _iter_described(value):
            _fill(described, names)


def _iter_described(value: Any) -> Iterator[Any]:
    """Yield a function, or a class, its bases and their methods: those of this package."""
    if inspect.isfunction(value):
        yield value
    if not inspect.isclass(value):
        return
    for base in value.__mro__:
        if base.__module__.startswith(_PACKAGE):
            yield base
            for member in vars(base).values():
                function = getattr(member, "__func__", member)
                if inspect.isfunction(function) and function.__module__.startswith(_PACKAGE):
                    yield function


def _fill(described: Any, namespace: Mapping[str, Any]) -> None:
    """Replace the references in one docstring; one without any is left as it is."""
    described = getattr(described, "__func__", described)  # a class method
    doc = described.__doc__
    if not doc or not _REFERENCE.search(doc):  # `python -OO` leaves none
        return
    own = inspect.signature(described).parameters

    def entries(found: re.Match[str]) -> str:
        source = _resolve(found["source"], namespace)
        _fill(source, namespace)
        names = found["names"].split(", ")
        parts = [
            _add_default(_get_entry(source, name), own.get(name.lstrip("*"))) for name in names
        ]
        return indent("\n".join(parts), found["margin"])

    described.__doc__ = _in_order(_REFERENCE.sub(entries, doc), own)


def _in_order(doc: str, own: Mapping[str, inspect.Parameter]) -> str:
    """Return a docstring whose parameters come in the order of the signature."""
    found = re.search(r"^( *)Parameters\n +-+\n((?:\1.*\n|\n(?=\1 ))+)", doc, re.MULTILINE)
    if found is None:
        return doc
    margin, section = found.groups()
    entries = re.split(rf"^(?={margin}\S)", section, flags=re.MULTILINE)[1:]
    order = {name: place for place, name in enumerate(own)}
    names = [re.match(r" *\*{0,2}(\w+)", entry) for entry in entries]
    places = [order.get(name[1], len(order)) for name in names if name]
    ordered = "".join(entry for _, entry in sorted(zip(places, entries), key=lambda pair: pair[0]))
    return doc[: found.start(2)] + ordered + doc[found.end(2) :]


def _resolve(path: str, namespace: Mapping[str, Any]) -> Any:
    """Return the object of a dotted name: of this package or, after ``skcalib.``, of another."""
    if path.startswith(_PACKAGE):
        _, package, path = path.split(".", 2)
        namespace = vars(import_module(_PACKAGE + package))
    first, *rest = path.split(".")
    value = namespace[first]
    for name in rest:
        value = getattr(value, name)
    return value


def _get_entry(source: Callable[..., Any], name: str) -> str:
    """Return the entry of one parameter of a docstring, without margin."""
    doc = inspect.cleandoc(source.__doc__ or "")
    escaped = re.escape(name)
    head = rf"^(?:\*{{0,2}}\w+, )*?{escaped}(?:, \*{{0,2}}\w+)*( : .*)?$"
    found = re.search(head + r"(?P<body>(?:\n(?: +.*)?)*)", doc, re.MULTILINE)
    if found is None:
        raise ValueError(f"{source.__qualname__} must describe {name!r}, got no entry of it.")
    entry = f"{name}{found[1] or ''}{found['body']}".rstrip()
    # Keys of citations belong to the references of the source.
    return re.sub(r"\[(\d+)\]_", rf"[\1] of `{source.__qualname__}`", entry)


def _add_default(entry: str, parameter: inspect.Parameter | None) -> str:
    """Return the entry with the default of the parameter that it is copied for."""
    head, _, body = entry.partition("\n")
    if parameter is None or parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
        return entry
    head = re.sub(r",\s+default=.*", "", head)
    if parameter.default is not parameter.empty:
        value = parameter.default
        shown = getattr(value, "__name__", None) or repr(value).replace("'", '"')
        head += f", default={shown}"
    return f"{head}\n{body}"


# Tables: results of several columns as a DataFrame or an array, and the index of their rows.


def get_row_index(*containers: Any) -> pd.Index | None:
    """Return the index of the first DataFrame or Series among the arguments, None without one."""
    for container in containers:
        # A list has a *method* of that name.
        index = getattr(container, "index", None)
        if index is not None and not callable(index):
            return index
    return None


def as_table(
    columns: Mapping[str, NDArray[Any]], *, as_frame: bool, index: Any = None
) -> pd.DataFrame | NDArray[Any]:
    """Return columns of equal length as a structured array or, with `as_frame`, a DataFrame.

    In the structured array, text has a fixed width, so that it can be stored without pickle;
    columns of mixed types stay objects. `index` is that of the DataFrame.
    """
    if as_frame:
        pd = import_optional("pandas", extra="report")
        return pd.DataFrame(dict(columns), index=index)
    arrays = {name: np.asarray(column) for name, column in columns.items()}
    for name, array in arrays.items():
        if array.dtype == object and all(isinstance(value, str) for value in array):
            arrays[name] = array.astype(str)
    dtypes = [(name, array.dtype) for name, array in arrays.items()]
    table = np.empty(len(next(iter(arrays.values()))), dtype=dtypes)
    for name, array in arrays.items():
        table[name] = array
    return table


# Import an optional dependency, or say how to install it.


def import_optional(module: str, *, extra: str) -> ModuleType:
    """Import `module`, a dotted name, or raise an error that names the extra that installs it."""
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise ImportError(
            f"{package} is required here and could not be imported ({error}); "
            f"the extra [{extra}] brings it: pip install 'skcalib[{extra}] @ "
            "git+https://github.com/skcalib/skcalib'"
        ) from error


# Files that are complete or do not exist.


@contextmanager
def write_atomically(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file that gets its name when it is complete.

    After a full disk, an error or a kill in between, the former file is still there.
    """
    # A symbolic link stays, and the file that it points to is replaced.
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file() and not target.is_dir():
        # A device or a pipe is written to: a file must not take its place.
        with target.open("wb") as file:
            yield file
        return
    # An unpredictable name, and mode "x", which does not follow symbolic links.
    unfinished = target.with_name(f".{uuid4().hex}.tmp")
    try:
        with unfinished.open("xb") as file:
            if target.exists():  # before there is anything to read
                _copy_owner(target, unfinished)
                copymode(target, unfinished)
            yield file
            file.flush()
            # On the disk before it gets its name, or a power cut could leave an empty file.
            os.fsync(file.fileno())
        unfinished.replace(target)
    except OSError as error:
        if error.filename in (None, str(unfinished)):
            # The name that the caller has passed; the error of a full disk has none.
            error.filename, error.filename2 = str(path), None
        raise
    finally:
        unfinished.unlink(missing_ok=True)


def _copy_owner(source: Path, target: Path) -> None:
    """Give a file the owner and group of another one, as far as this user may."""
    if not hasattr(os, "chown"):  # on Windows
        return
    wanted, own = source.stat(), target.stat()
    if wanted.st_gid != own.st_gid:
        with suppress(PermissionError):
            os.chown(target, -1, wanted.st_gid)
    if wanted.st_uid != own.st_uid:
        with suppress(PermissionError):
            os.chown(target, wanted.st_uid, -1)


_LENGTHS = re.compile(r"inconsistent numbers of samples: \[([\d, ]+)\]")


@contextmanager
def name_argument(*names: str) -> Iterator[None]:
    """Make errors raised inside name the arguments `names`.

    The message of numpy or scikit-learn follows the name: "could not convert string to float: 'a'"
    alone does not say which argument to look at.
    """
    try:
        yield
    except (TypeError, ValueError) as error:
        text = str(error)
        # The error names the argument already.
        if any(re.search(rf"\b{name}\b", text) for name in names):
            raise
        # Not type(error): subclasses such as UnicodeDecodeError take other arguments.
        kind = TypeError if isinstance(error, TypeError) else ValueError
        lengths = _LENGTHS.search(text)
        if lengths and len(names) > 1:
            raise kind(
                f"{_list_words(names)} must have the same number of samples, "
                f"got {_list_words(lengths[1].split(', '))}."
            ) from error
        raise kind(f"{names[0]} cannot be used: {text}") from error


@contextmanager
def rename_argument(name: str, given: str) -> Iterator[None]:
    """Replace `name` in errors raised inside by `given`, the name of the user's argument."""
    try:
        yield
    except (TypeError, ValueError) as error:
        text = re.sub(rf"\b{name}\b", given, str(error))
        if text == str(error):
            raise
        raise (TypeError if isinstance(error, TypeError) else ValueError)(text) from error


def _list_words(words: Sequence[str]) -> str:
    return f"{', '.join(words[:-1])} and {words[-1]}"


# One sample of any container, and images as people have them.

# Modes of 16 bits, of integers and of floats, which PIL cuts off at 255 rather than scale.
_DEEP_MODES = ("I;16", "I;16B", "I;16L", "I;16N", "I", "F")


def take_sample(samples: Any, position: int) -> Any:
    """Return a sample by its position: a row with the names of its columns, or an entry.

    Tables and columns of pandas, polars and pyarrow are containers, and so is any sequence. A
    sparse row has the shape (1, n_features).
    """
    if issparse(samples):  # not every format has rows, and an integer takes none in scipy 1.12
        return samples.tocsr()[[position]]
    if hasattr(samples, "iloc"):  # indexing a DataFrame itself looks for a column
        return samples.iloc[position]
    if not hasattr(samples, "slice"):
        return samples[position]
    part = samples.slice(position, 1)  # of polars or pyarrow
    for read in ("to_pydict", "to_dict"):
        if hasattr(part, read):
            columns = part.to_pydict() if read == "to_pydict" else part.to_dict(as_series=False)
            row = {name: values[0] for name, values in columns.items()}
            return import_optional("pandas", extra="report").Series(row, name=position)
    return part.to_pylist()[0] if hasattr(part, "to_pylist") else part.to_list()[0]


def shorten_error(error: Exception) -> str:
    """Return the text of an error in one line, of moderate length and without a full stop."""
    text = " ".join(str(error).split()).rstrip(".") or type(error).__name__
    return text if len(text) <= 200 else f"{text[:197]}..."


def open_image(image: Any, *, extra: str) -> Any:
    """Return a file or a PIL image as a PIL image of 8 bits, upright as its EXIF data say.

    Images of 16 bits, of integers or of floats are scaled from their least to their largest value.
    """
    pil = import_optional("PIL.Image", extra=extra)
    from_file = isinstance(image, str | os.PathLike)
    named = f"cannot read the image {os.fspath(image)!r}" if from_file else "cannot read the image"
    try:
        if not from_file:
            return _make_8_bit(image, pil)
        # PIL warns of an image beyond its limit, and refuses one of twice as many pixels.
        with ignoring(pil.DecompressionBombWarning), pil.open(image) as opened:
            if math.prod(opened.size) > (pil.MAX_IMAGE_PIXELS or math.inf):
                raise pil.DecompressionBombError
            return _make_8_bit(opened, pil)
    except pil.DecompressionBombError as error:
        raise OSError(
            f"{named}: it has more than {pil.MAX_IMAGE_PIXELS} "
            "pixels; if it can be trusted, raise that limit, PIL.Image.MAX_IMAGE_PIXELS."
        ) from error
    except MemoryError:
        raise
    except Exception as error:  # of a broken file PIL's readers raise any kind
        raise OSError(f"{named}: {shorten_error(error)}.") from error


def _make_8_bit(image: Any, pil: Any) -> Any:
    """Return a PIL image upright, and scaled to 8 bits where it has more."""
    if image.format == "EPS":
        raise ValueError("EPS is a program, which Ghostscript would run; write it as PNG")
    if image.mode == "LAB":
        raise ValueError("PIL has no RGB of its colors, CIELAB; write it as RGB")
    image = import_optional("PIL.ImageOps", extra="report").exif_transpose(image)
    if image.mode not in _DEEP_MODES or 0 in image.size:
        return image
    return pil.fromarray(scale_pixels(np.asarray(image)))


def scale_pixels(pixels: NDArray[Any]) -> NDArray[np.uint8]:
    """Return numbers of any type as bytes, scaled from black to white; bytes as they are."""
    if pixels.dtype == np.uint8:
        return pixels
    values = pixels.astype(np.float64)
    finite = values[np.isfinite(values)]
    low, high = (finite.min(), finite.max()) if finite.size else (0.0, 0.0)
    # A constant image becomes black.
    spread = (values - low) / (high - low) if high > low else np.zeros_like(values)
    return np.clip(np.nan_to_num(255 * spread, posinf=255, neginf=0), 0, 255).astype(np.uint8)


# Names in errors.

# Least similarity of two names, of difflib, with which one may be meant by the other.
_LEAST_SIMILARITY = 0.5


def sort_by_similarity(names: Iterable[str], given: Any) -> list[str]:
    """Return names with those first that are most like `given`; the others keep their order."""
    by_lower = {name.lower(): name for name in names}
    near = get_close_matches(str(given).lower(), list(by_lower), cutoff=_LEAST_SIMILARITY)
    first = [by_lower[name] for name in near]
    return first + [name for name in by_lower.values() if name not in first]
