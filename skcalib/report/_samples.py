"""The hardest samples, and those whose label is probably wrong."""

from __future__ import annotations

import io
from base64 import b64encode
from collections.abc import Callable
from pathlib import PurePath
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from ..difficulty import RelativeMahalanobisScorer, score_difficulty
from ..labels import LabelIssueFinder
from ..utils._compat import _safe_indexing
from ..utils._estimators import get_last_step
from ..utils._output import (
    collecting,
    get_row_index,
    import_optional,
    open_image,
    scale_pixels,
    take_sample,
    warn,
)
from ._constants import FEWEST_OF_PART, MANY_FEATURES
from ._data import ReportData
from ._document import (
    Samples,
    Section,
    Text,
    count,
    format_number,
    format_percent,
    format_probability,
    in_sentence,
)

N_SHOWN = 12
# Longest edge of a picture in pixels; smaller images are kept, and the browser enlarges them.
# Pictures are PNG (sharp), or JPEG if the PNG has more bytes than this.
EDGE = 96
MANY_BYTES = 4000
MANY_LETTERS = 160
MANY_COLUMNS = 5


def find_hardest(data: ReportData) -> dict[str, Any]:
    """Return the hardest samples, hardest first, and the source of the difficulty."""
    difficulty, source = _compute_difficulty(data)
    # Stable: ties stay in the order of the samples. NaN comes last.
    order = np.argsort(-difficulty, kind="stable")[:N_SHOWN]
    table = [{**_describe_sample(data, i), "difficulty": float(difficulty[i])} for i in order]
    return {"source": source, "table": table}


def _compute_difficulty(data: ReportData) -> tuple[NDArray[np.float64], str]:
    """Return the difficulty of the samples with their labels, and its source."""
    if data.scorer is not None:
        X = _safe_indexing(data.features, data.numbers)
        difficulty = score_difficulty(data.scorer, X, data.classes[data.codes])
        return np.asarray(difficulty, dtype=np.float64), type(
            get_last_step(data.scorer)[0]
        ).__name__
    return data.log_loss(data.proba), "log-loss"


def _describe_sample(data: ReportData, i: int) -> dict[str, Any]:
    """Return number, label, prediction and a picture or text of a sample."""
    return {
        "sample": int(data.numbers[i]),
        "label": data.label(data.codes[i]),
        "soft_label": None if data.soft_labels is None else float(data.soft_labels[i].max()),
        "predicted": data.label(data.predicted[i]),
        "confidence": float(data.confidence[i]),
        **_show_sample(data.shown, int(data.numbers[i])),
    }


def find_issues(data: ReportData) -> dict[str, Any]:
    """Return probably wrong labels, the most suspicious first, and the noise rate.

    A LabelIssueFinder scores them by the features or the scorer. If it warns, the labels are not
    assessed, and the warning is the reason.
    """
    if data.soft_labels is not None:
        reason = "these are soft labels; LabelIssueFinder.fit(X, votes=...) takes votes"
        return {"table": None, "reason": reason}
    count = np.bincount(data.codes)
    present = np.flatnonzero(count)
    finder, X, source = _make_finder(data)
    if finder is None:
        return {"table": None, "reason": "that takes features or a scorer"}
    if len(present) < 2 or count[present].min() < FEWEST_OF_PART:
        reason = f"every class must have {FEWEST_OF_PART} samples or more"
        return {"table": None, "reason": reason}
    with collecting() as messages:
        finder.fit(X, np.searchsorted(present, data.codes), sample_weight=data.weight)
    if messages:
        return {"table": None, "reason": messages[0][0].lower() + messages[0][1:].rstrip(".")}
    found = finder.issues_
    worst = np.lexsort([-found["margin"], found["p_label_correct"]])
    worst = worst[found["is_issue"][worst]]
    table = [
        {
            **_describe_sample(data, i),
            "suggested_label": data.label(present[found["suggested_label"][i]]),
            "p_label_correct": float(found["p_label_correct"][i]),
        }
        for i in worst[:N_SHOWN]
    ]
    return {
        "table": table,
        "reason": None,
        "source": source,
        "n_issues": len(worst),
        "noise_rate": finder.noise_rate_,
        "noise_rate_interval": finder.noise_rate_interval_,
    }


def _make_finder(data: ReportData) -> tuple[LabelIssueFinder | None, Any, str]:
    """Return a finder, its X, and a name for what scores the labels."""
    if isinstance(get_last_step(data.scorer)[0], RelativeMahalanobisScorer):
        X = _safe_indexing(data.features, data.numbers)
        name = type(get_last_step(data.scorer)[0]).__name__
        return LabelIssueFinder(clone(data.scorer)), X, f"the scorer, {name}"
    features = _find_numeric_features(data)
    return None if features is None else LabelIssueFinder(), features, "the features"


def _find_numeric_features(data: ReportData) -> NDArray[Any] | None:
    """Return numeric features; None for images, texts, missing values and too many features."""
    if data.features is None or hasattr(data.features, "tocsr"):
        return None
    features = np.asarray(data.features)
    if features.ndim != 2 or features.dtype.kind not in "biuf":
        return None
    if features.shape[1] > MANY_FEATURES or not np.isfinite(features).all():
        return None
    return features[data.numbers]


def make_section(results: dict[str, Any]) -> Section:
    """Return the hardest samples, and the labels that are probably wrong."""
    hardest, issues = results["hardest"], results["issues"]
    entries = []
    for entry in hardest["table"]:
        predicted = f"{in_sentence(entry['predicted'])} ({format_percent(entry['confidence'])})"
        chosen = (
            "" if entry["soft_label"] is None else f" ({format_percent(entry['soft_label'], 0)})"
        )
        answer = f"label {in_sentence(entry['label'])}{chosen}, predicted {predicted}"
        if results["overview"].get("of_answers"):
            answer = f"{entry['label']}{chosen}, confidence {format_percent(entry['confidence'])}"
        lines = [answer, f"difficulty {format_number(entry['difficulty'], 2)}"]
        entries.append({**entry, "lines": lines})
    blocks = [Samples(f"Hardest, by {hardest['source']}", entries), *_make_issue_blocks(issues)]
    return Section("Which samples, which labels?", blocks)


def _make_issue_blocks(issues: dict[str, Any]) -> list[Any]:
    if issues["table"] is None:
        return [Text(f"Labels were not assessed: {issues['reason']}.", note=True)]
    low, high = issues["noise_rate_interval"]
    rate = Text(
        f"By {issues['source']}, {format_percent(issues['noise_rate'])} of the labels are wrong "
        f"({100 * low:.1f} to {100 * high:.1f}). Labels that people got wrong on hard samples are "
        "not all among them."
    )
    if not issues["table"]:
        return [Text("No label is suspected to be wrong."), rate]
    suspects = [
        {
            **entry,
            "lines": [
                f"label {in_sentence(entry['label'])}, "
                f"suggested {in_sentence(entry['suggested_label'])}",
                "probability that the label is right: "
                + format_probability(entry["p_label_correct"]),
            ],
        }
        for entry in issues["table"]
    ]
    return [Samples(f"Suspected labels: {count(issues['n_issues'])}", suspects), rate]


def _show_sample(samples: Any, number: int) -> dict[str, str]:
    """Return {"image": data URI}, {"text": text}, or an empty dict."""
    if samples is None:
        return {}
    sample = take_sample(samples, number)
    if hasattr(sample, "toarray"):
        sample = sample.toarray()[0]
    if isinstance(sample, str):
        return {"text": _shorten(sample)}
    if is_picture(sample):
        return show_image(sample, number, encode_uri)
    return (
        {"text": _shorten(_format_row(sample))} if np.ndim(sample) == 1 else {"text": str(sample)}
    )


def _shorten(text: str) -> str:
    return text if len(text) <= MANY_LETTERS else text[: MANY_LETTERS - 3] + "..."


def _format_row(sample: Any) -> str:
    """Return the first values of a row, with names of columns if it has any."""
    values = [f"{x:.3g}" if isinstance(x, float | np.floating) else str(x) for x in sample]
    index = get_row_index(sample)
    if index is not None:
        values = [f"{name} = {value}" for name, value in zip(index, values)]
    return ", ".join(values[:MANY_COLUMNS]) + (", ..." if len(values) > MANY_COLUMNS else "")


def is_picture(sample: Any) -> bool:
    """Return whether a sample is an image: a path, a PIL image or an array of pixels."""
    is_image = isinstance(sample, PurePath) or hasattr(sample, "thumbnail")
    return is_image or np.ndim(sample) >= 2


def show_image(image: Any, position: int, encode: Callable[[Any], str]) -> dict[str, str]:
    """Return {"image": data URI}, or a text in its place, with a warning, if it cannot be read."""
    try:
        return {"image": encode(image)}
    except OSError as error:
        reason = f"The image of sample {position} cannot be shown: {error}"
        warn(reason)
        return {"text": reason}


def encode_uri(image: Any, edge: int = EDGE) -> str:
    """Return an image, an array (height, width[, channels]), a PIL image or a path, as a data URI.

    It is scaled down to at most `edge` pixels.
    """
    pil = import_optional("PIL.Image", extra="report")
    if isinstance(image, str | PurePath) or hasattr(image, "thumbnail"):
        picture = open_image(image, extra="report")
    else:
        picture = pil.fromarray(_scale_pixels(np.asarray(image)))
    picture = picture.convert("L" if picture.mode in ("1", "L") else "RGB")
    picture.thumbnail((edge, edge))  # never enlarges
    small = max(picture.size) <= EDGE
    data, kind = _encode_image(picture, "PNG", optimize=True) if small else b"", "png"
    if not small or len(data) > MANY_BYTES:
        data, kind = _encode_image(picture, "JPEG", quality=80), "jpeg"
    return f"data:image/{kind};base64,{b64encode(data).decode()}"


def _encode_image(picture: Any, form: str, **options: Any) -> bytes:
    buffer = io.BytesIO()
    picture.save(buffer, format=form, **options)
    return buffer.getvalue()


def _scale_pixels(array: NDArray[Any]) -> NDArray[np.uint8]:
    """Return the array as bytes; other numbers are scaled from black to white."""
    if array.ndim == 3 and array.shape[2] == 1:
        array = array[..., 0]
    if array.ndim not in (2, 3) or (array.ndim == 3 and array.shape[2] not in (3, 4)):
        raise ValueError(
            "images must hold images of shape (height, width) or (height, width, channels) with "
            f"1, 3 or 4 channels, got one of shape {array.shape}."
        )
    if array.size == 0 or array.dtype.kind not in "biuf":
        raise ValueError(
            f"images must hold images of numbers, got one of {array.dtype} of shape {array.shape}."
        )
    return scale_pixels(array)
