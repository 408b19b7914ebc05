"""Read predictions from a file with pandas, and find its labels, probabilities and classes.

Columns are found by what exporters call them, see `FORMS`. Every candidate is tried: one that fits
is taken, of several none, and no name is interpreted beyond the table.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax

from ..utils._output import import_optional, warn
from ..utils._proba import TOLERANCE, are_rounded, sum_to_1
from ._files import (
    LABELS,
    OUTCOMES,
    File,
    is_one_hot,
    is_percent,
    list_names,
    read_file,
    sort_naturally,
    strip_name,
)

# How exporters call the probability of a class: pandas users, tidymodels, mlr3, h2o, JMP,
# CatBoost, PyCaret, RapidMiner. {} is the label.
FORMS = (
    *("{}", "p_{}", "prob_{}", "proba_{}", "pred_{}", "prob.{}", ".pred_{}", "P({})", "p{}"),
    *("probability_{}", "y_proba_{}", "y_prob_{}", "predict_proba_{}", "Prob[{}]"),
    *("Probability:Class={}", "prediction_score_{}", "confidence({})"),
)
FORMS_OF_LOGITS = ("logit_{}", "logits_{}", "logit.{}")
FORMS_OF_TRUTHS = ("{}", "label_{}", "true_{}", "y_true_{}", "target_{}")
# Names of one column, of the positive class.
SINGLE = (
    *("p", "prob", "proba", "probability", "y_prob", "y_proba", "p_hat", "prob_pred"),
    *("pred_prob", "pred_proba", "predicted_probability", "predict_proba"),
)
# The same, taken only where no other column has one of the names above.
UNSURE = (
    *("score", "scores", "y_score", "prediction", "predictions", "pred", "y_pred", "yhat"),
    *("y_hat", "oof", "risk"),
)
# Names of an answer and of the confidence in it.
ANSWERS = (
    *("prediction", "predicted", "pred", "y_pred", "predicted_label", "predicted_class"),
    *("answer", "response", "output"),
)
CONFIDENCES = ("confidence", "conf", "verbalized_confidence", "confidence_score")
# Whether an answer is right, as words; the second one is "right".
RIGHT_OR_WRONG = (
    *(("0", "1"), ("false", "true"), ("no", "yes"), ("n", "y"), ("incorrect", "correct")),
    *(("wrong", "right"), ("fail", "pass"), ("failed", "passed")),
)
LOGITS = ("logit", "logits", "log_odds", "log-odds")
# Pairs of labels; the second is the positive one.
PAIRS = (("0", "1"), ("-1", "1"), ("false", "true"), ("no", "yes"), ("n", "y"))
# Columns that say which samples belong together, or from which model they are.
GROUPS = re.compile(
    r"(patient|user|subject|person|customer|client|session|document|speaker|question|group)"
    r"([ _.-]?(id|number|name|key|code))?"
)
MODELS = re.compile(r"(model|classifier|algorithm|system)([ _.-]?(id|name|version))?")


def read_predictions(
    path: Path,
    label: str | None = None,
    classes: Sequence[str] | Mapping[str, str] | None = None,
    pos_label: str | None = None,
    sample_weight: str | None = None,
    by: Sequence[str] = (),
    groups: str | None = None,
    prediction: str | None = None,
    confidence: str | None = None,
    *,
    percent: bool = False,
) -> dict[str, Any]:
    """Return the arguments of a report. Labels and names of columns are compared as text.

    With `prediction`, an answer, and `confidence`, the labels are whether the answer is "right" or
    "wrong"; without `prediction`, the column of labels says that.
    """
    for name, value in (("by", by), ("classes", classes)):
        if isinstance(value, str):
            raise TypeError(f"{name} must be a sequence of names of columns, got {value!r}.")
    options = label, classes, pos_label, sample_weight, by, groups, prediction, confidence
    try:
        return _read_columns(path, percent, *options)
    except ValueError as error:
        # Names and labels of a broken file may have any length.
        text = re.sub(r"\S{100,}", lambda word: f"{word[0][:97]}...", str(error))
        if text == str(error):
            raise
        raise ValueError(text) from None


def _read_columns(
    path: Path,
    percent: bool,
    label: str | None,
    classes: Sequence[str] | Mapping[str, str] | None,
    pos_label: str | None,
    sample_weight: str | None,
    by: Sequence[str],
    groups: str | None,
    prediction: str | None,
    confidence: str | None,
) -> dict[str, Any]:
    asked = [name for name in (label, *by, groups, prediction) if name is not None]
    file = read_file(path, asked)
    file.percent = percent
    given = None if classes is None else _parse_classes(classes, file.names)
    used = [name for name in (*asked, sample_weight, confidence) if name is not None]
    for name in (*used, *(given or ())):
        file.check_name(name)
    if prediction is None and confidence is None:
        found = _find_columns(file, label, used, given, pos_label)
    elif given is None and pos_label is None:
        answers = _Answers(prediction, confidence or _find_only_confidence(file))
        found = _read_answers(file, label, answers)
    else:
        raise ValueError(
            "classes and pos_label must be None with prediction and confidence, which are about "
            "the answers."
        )
    return _make_arguments(file, found, sample_weight, by, groups)


def _find_columns(
    file: File,
    label: str | None,
    used: Sequence[str],
    given: dict[str, str | None] | None,
    pos_label: str | None,
) -> _Found:
    """Return what the columns that fit hold: probabilities, or the confidence in answers."""
    may_be_answers, errors = given is None and pos_label is None, []
    for column in [label] if label else _label_columns(file):
        if may_be_answers and _is_outcome(column) and len(_find_confidences(file)) == 1:
            return _read_answers(file, column, _Answers(None, _find_only_confidence(file)))
        try:
            table = _Table(file, column, [name for name in used if name != column])
            return table.find(given, pos_label)
        except ValueError as error:
            errors.append(error)
            named = _find_answers(file, column) if may_be_answers and column else None
            if named is not None:
                return _read_answers(file, column, named)
    raise errors[0]


def _make_arguments(
    file: File, found: _Found, sample_weight: str | None, by: Sequence[str], groups: str | None
) -> dict[str, Any]:
    """Return the arguments of a report; warn of what may be wrong with the columns."""
    proba, names, y_true = found.proba, found.labels, found.y_true
    if found.by_position:
        y_true = np.array(names)[y_true.astype(int)]
    used = {*found.label_columns, *found.columns, *by, sample_weight, groups, found.prediction}
    unused = [name for name in file.names if name not in used]
    _warn_of_unused(file, unused, groups)
    single = [names[1]] if proba.ndim == 1 else names
    shown = list_names(c if c == n else f"{c} (of {n})" for c, n in zip(found.columns, single))
    shown += found.note
    source = {
        "file": file.path.name,
        "rows": len(file.frame),
        **file.lines,
        "encoding": file.encoding,
        "column of labels": list_names(found.label_columns),
    }
    if found.of_answers:
        answered = {} if found.prediction is None else {"column of answers": found.prediction}
        source |= {**answered, "columns of confidence": shown}
    else:
        source["columns of probabilities"] = shown
    return {
        "y_true": y_true,
        "y_proba": proba,
        "labels": names,
        **({"pos_label": names[1]} if proba.ndim == 1 else {}),
        "sample_weight": file.numbers(sample_weight) if sample_weight else None,
        "groups": None if groups is None else _read_group(file.frame[groups]),
        "by": {name: _read_group(file.frame[name]) for name in by} or None,
        "of_answers": found.of_answers,
        "source": {
            **source,
            "classes": list_names(names),
            "columns not used": list_names(unused) or "-",
        },
    }


def describe(source: Mapping[str, Any]) -> str:
    """Return what was read, for the standard error of a command."""
    rows = [f"{source['rows']} rows"]
    rows += [f"{source[what]} {what}" for what in ("empty lines",) if what in source]
    if "columns of confidence" in source:
        of = f"confidence: {source['columns of confidence']}"
        if "column of answers" in source:
            of = f"answers: {source['column of answers']}; {of}"
    else:
        of = f"probabilities: {source['columns of probabilities']}"
    text = (
        f"Read {', '.join(rows)} as {source['encoding']}; labels: {source['column of labels']}; "
        f"{of}; classes: {source['classes']}\n"
    )
    unused = source["columns not used"]
    return text if unused == "-" else f"{text}Columns that were not used: {unused}\n"


# --- Names and labels ----------------------------------------------------------------------------


def _spell(label: str) -> list[str]:
    """Return a label as names of columns spell it: True is 1 there as well."""
    number = {"true": "1", "false": "0"}.get(label.lower())
    return [label] if number is None else [label, number]


def _find_positive(labels: list[str]) -> str | None:
    """Return the positive one of labels such as 0 and 1, as written; None for others."""
    for pair in PAIRS:
        if {label.lower() for label in labels} <= set(pair):
            return next((label for label in labels if label.lower() == pair[1]), pair[1])
    return None


def _complete_pair(labels: list[str]) -> list[str]:
    """Return both labels of a pair such as 0 and 1 if only one of them occurs."""
    if len(labels) == 1:
        for pair in PAIRS:
            if labels[0].lower() in pair:
                return list(pair) if labels[0] in pair else [x.title() for x in pair]
    return labels


def _find_class(name: str, labels: Iterable[str]) -> str | None:
    """Return the label that the name of a column has by one of the forms."""
    name = strip_name(name)
    for label in labels:
        for text in _spell(label):
            if any(name == form.format(text) for form in (*FORMS, *FORMS_OF_LOGITS)):
                return label
    inside = re.fullmatch(r".*\[(.*)\]", name)
    return inside[1] if inside and inside[1] in set(labels) else None


def _parse_classes(
    classes: Sequence[str] | Mapping[str, str], names: Sequence[str]
) -> dict[str, str | None]:
    """Return {column: class}; the class is None if only the column is given."""
    if isinstance(classes, Mapping):
        return {str(column): str(name) for column, name in classes.items()}
    given: dict[str, str | None] = {}
    for item in classes:
        column, equals, name = item.rpartition("=")
        # The name of a column may contain an equals sign: P(y=1).
        alone = item in names or not equals
        given[item if alone else column] = None if alone else name
    if len(given) < len(classes):
        raise ValueError(f"classes must name distinct columns, got {list_names(list(classes))}.")
    return given


def _write_example(columns: Iterable[str]) -> str:
    """Return an example of the option that assigns columns to classes."""
    return "--classes " + " ".join(f"{name}=CLASS" for name in list(columns)[:3])


def _read_group(column: Any) -> NDArray[Any]:
    codes, distinct = import_optional("pandas", extra="report").factorize(column)
    # An empty cell is a missing value.
    names = [strip_name(str(value)) or None for value in distinct]
    return np.array([*names, None], dtype=object)[codes]  # and so is -1, the last one


def _warn_of_unused(file: File, unused: list[str], groups: str | None) -> None:
    """Warn of columns that say which samples belong together, or from which model they are."""
    n = len(file.frame)
    for name in unused:
        key = name.strip().lower()
        if groups is None and GROUPS.fullmatch(key) and 1 < file.frame[name].nunique() <= n / 2:
            warn(
                f"Values of column {name!r} of {file.path} repeat, {file.frame[name].nunique()} "
                f"in {n} rows: if rows of one value belong together, say so: --groups {name}."
            )
        if MODELS.fullmatch(key) and 1 < file.frame[name].nunique() <= n / 2:
            warn(
                f"Column {name!r} of {file.path} has {file.frame[name].nunique()} values: if "
                "these are models, the numbers mix them; write a file for each, and compare them."
            )


# --- Labels --------------------------------------------------------------------------------------


def _label_columns(
    file: File, without: str | None = None, *, outcomes_first: bool = False
) -> list[str | None]:
    """Return the columns that may hold the labels; None stands for one column for each class."""
    by_name: dict[str, list[str]] = {}
    for name in file.names:
        if name == without:
            continue
        by_name.setdefault(name.strip().lower(), []).append(name)
    for words in (OUTCOMES, LABELS) if outcomes_first else (LABELS, OUTCOMES):
        if found := [name for known in words for name in by_name.get(known, [])]:
            break
    if len(found) > 1:
        found = [name for name in found if _could_be_labels(file.frame[name])] or found[:1]
    if len(found) > 1 and not _are_alike([file.frame[name] for name in found]):
        raise ValueError(
            f"label must name the column of true labels where {file.path} has several, got "
            f"{list_names(found)}: --label names one of them."
        )
    return [*found] or [None]


def _read_labels(file: File, name: str) -> NDArray[Any]:
    """Return a column of labels as text."""
    file.check_name(name)
    pandas = import_optional("pandas", extra="report")
    codes, distinct = pandas.factorize(file.frame[name])
    texts = np.array([strip_name(str(value)) for value in distinct] or [""])
    missing = (codes < 0) | (texts[codes] == "")
    if missing.any():
        line = file.frame.index[missing.argmax()]
        raise ValueError(
            f"Column {name!r} of {file.path} must hold labels, got none in line {line}."
        )
    return texts[codes]


def _could_be_labels(cells: Any) -> bool:
    """Tell whether a column has a few values, at least two, and no fractions."""
    distinct = [strip_name(str(value)) for value in cells.dropna().unique()]
    if not 2 <= len(distinct) <= max(8, len(cells) / 2):
        return False
    return not any(re.fullmatch(r"-?\d*\.\d+(e-?\d+)?", value) for value in distinct)


def _are_alike(columns: list[Any]) -> bool:
    """Tell whether columns are one another's labels by other names."""
    pandas = import_optional("pandas", extra="report")
    codes = [pandas.factorize(cells)[0] for cells in columns]
    return all(np.array_equal(codes[0], other) for other in codes[1:])


# --- Answers and the confidence in them ----------------------------------------------------------


class _Answers(NamedTuple):
    """The column of the answers, None if the labels say which are right, and of the confidence."""

    prediction: str | None
    confidence: str


def _find_answers(file: File, label: str) -> _Answers | None:
    """Return the only columns that are named as an answer and the confidence in it, if any.

    With two classes they are taken only where the confidence is never below 1/2: otherwise it may
    be the probability of the positive class.
    """
    names = {name.strip().lower(): name for name in reversed(file.names) if name != label}
    answers = [names[word] for word in ANSWERS if word in names]
    confidences = _find_confidences(file)
    if len(answers) != 1 or len(confidences) != 1:
        return None
    [prediction], [confidence] = answers, confidences
    values, numbers = (file.as_numbers(name) for name in (confidence, prediction))
    whole = 0.01 if file.percent else 1.0
    if not np.isfinite(values).all() or not _are_multiples(numbers, whole):  # a score, no answer
        return None
    if file.frame[label].nunique() <= 2 and values.min() < 0.5:
        raise ValueError(
            f"prediction must say whether column {confidence!r} of {file.path} is the confidence "
            f"in {prediction!r}: --prediction {prediction} --confidence {confidence}; if it is "
            f"the probability of a class, --classes {confidence}=CLASS says of which."
        )
    return _Answers(prediction, confidence)


def _are_multiples(numbers: NDArray[np.float64], of: float) -> bool:
    """Tell whether finite numbers are whole multiples."""
    ratio = numbers[np.isfinite(numbers)] / of
    return bool((np.abs(ratio - ratio.round()) < TOLERANCE).all())


def _is_outcome(label: str | None) -> bool:
    return label is not None and label.strip().lower() in OUTCOMES


def _find_confidences(file: File) -> list[str]:
    return [name for name in file.names if name.strip().lower() in CONFIDENCES]


def _find_only_confidence(file: File) -> str:
    """Return the column that is called as the confidence in an answer."""
    found = _find_confidences(file)
    if len(found) != 1:
        raise ValueError(
            f"confidence must name the column of {file.path} that holds the confidence in the "
            f"answers, got None and columns {list_names(file.names)}."
        )
    return found[0]


def _read_answers(file: File, label: str | None, answers: _Answers) -> _Found:
    """Return which answers are right, and the confidence in them."""
    prediction, confidence = answers
    if label is None:
        columns = _label_columns(file, prediction, outcomes_first=prediction is None)
        if columns[0] is None:
            raise ValueError(
                f"{file.path} must have a column 'label', one of right and wrong called "
                f"'correct', or one that --label names, got {list_names(file.names)}."
            )
        label = columns[0]
    truth = _read_labels(file, label)
    if prediction is None:
        is_right = _as_outcomes(file, label, truth)
    else:
        answered = _read_labels(file, prediction)
        is_right = answered == truth
        if not is_right.any():
            raise ValueError(
                f"Columns {prediction!r} and {label!r} of {file.path} must name the same classes, "
                f"got {str(answered[0])!r} beside {str(truth[0])!r} and no answer that equals its "
                "label."
            )
    names = np.array(["wrong", "right"])
    return _Found(
        names[is_right.astype(int)],
        [label],
        file.probabilities(confidence),
        names.tolist(),
        [confidence],
        note=_describe_percent(file, [confidence]),
        of_answers=True,
        prediction=prediction,
    )


def _as_outcomes(file: File, name: str, truth: NDArray[Any]) -> NDArray[np.bool_]:
    """Return whether answers are right, from 0 and 1, yes and no and others."""
    words = np.char.lower(truth)
    for pair in RIGHT_OR_WRONG:
        if set(words.tolist()) <= set(pair):
            return words == pair[1]
    raise ValueError(
        f"prediction must name the column of answers, or column {name!r} of {file.path} say "
        "which are right (0 and 1, yes and no, correct and incorrect), got the labels "
        f"{list_names(sort_naturally(set(truth.tolist())))}: --prediction names it."
    )


# --- Probabilities -------------------------------------------------------------------------------


@dataclass
class _Found:
    """Labels, and probabilities of the second of two classes, or of every class.

    If they are ``of_answers``, the classes are "wrong" and "right".
    """

    y_true: NDArray[Any]
    label_columns: list[str]
    proba: NDArray[np.float64]
    labels: list[str]
    columns: list[str]
    by_position: bool = False
    note: str = ""
    of_answers: bool = False
    prediction: str | None = None


@dataclass
class _Candidate:
    """Columns that may hold the probabilities, and their classes; None for the positive one."""

    columns: list[str]
    classes: list[str | None]
    logits: bool = False
    further: dict[str, str] = field(default_factory=dict)


class _Table:
    """The labels of a file, and the columns that may hold the probabilities."""

    def __init__(self, file: File, label: str | None, others: Iterable[str]) -> None:
        self.file, self.path = file, file.path
        self.label_columns, self.y_true = (
            self._read_one_hot() if label is None else ([label], _read_labels(file, label))
        )
        self.label = label or list_names(self.label_columns)
        taken = {*others, *self.label_columns}
        self.names = [name for name in file.names if name not in taken]
        self.by_plain = {strip_name(name): name for name in reversed(self.names)}
        self.labels: list[str] = np.unique(self.y_true).tolist()
        self.of_outcomes = _is_outcome(label)
        self._graded: list[str] | None = None

    def _make_found(self, *found: Any, **more: Any) -> _Found:
        return _Found(self.y_true, self.label_columns, *found, **more)

    def _read_one_hot(self) -> tuple[list[str], NDArray[Any]]:
        """Return columns of 0 and 1, one for each class, beside those of the probabilities."""
        names = set(self.file.names)
        for form in (*FORMS[1:], *FORMS_OF_LOGITS):
            inside = [label for label, _ in _in_form(form, self.file.names)]
            for truth in FORMS_OF_TRUTHS:
                columns = [truth.format(label) for label in inside]
                if form == truth or len(inside) < 2 or not set(columns) <= names:
                    continue
                values = np.column_stack([self.file.as_numbers(name) for name in columns])
                if is_one_hot(values):
                    return columns, np.array(inside)[values.argmax(axis=1)]
                if np.isin(values, (0, 1)).all():
                    raise ValueError(
                        f"{self.path} must have one label for each sample, got several or none in "
                        f"columns {list_names(columns)}: write a file for each label."
                    )
        raise ValueError(
            f"{self.path} must have a column 'label' in its header, or --label must name the "
            f"column of labels, got {list_names(self.file.names)}."
        )

    def find(self, given: dict[str, str | None] | None, pos_label: str | None) -> _Found:
        """Return the probabilities: those given, or the only candidate that fits."""
        if given is not None:
            return self._read_given(given, pos_label)
        if pos_label is not None and pos_label not in self.labels and len(self.labels) == 2:
            raise ValueError(
                f"pos_label must be one of the labels of {self.path}, "
                f"{list_names(self.labels)}, got {pos_label!r}."
            )
        found, faults = [], []
        for candidate in self._find_candidates():
            try:
                found.append((candidate, self._read_values(candidate)))
            except ValueError as error:
                faults.append((candidate, error))
        found = [pair for pair in found if not _is_0_or_1(pair[1])] or found
        # Beside probabilities, logits are what these were computed from.
        found = [pair for pair in found if not pair[0].logits] or found
        distinct = self._merged(found)
        if len(distinct) > 1:
            several = "; ".join(list_names(pair[0].columns[:3]) for pair in distinct[:4])
            raise ValueError(
                f"classes must say which columns of {self.path} to use, where several could "
                f"be the probabilities: {several}; {self._write_example_of(distinct[0][0])}."
            )
        if distinct:
            return self._make_result(*distinct[0], pos_label)
        single = self._find_only(pos_label, faults)
        return self._make_result(single, self._read_values(single), pos_label)

    def _write_example_of(self, candidate: _Candidate) -> str:
        named = zip(candidate.columns, candidate.classes)
        return "--classes " + " ".join(c if k is None else f"{c}={k}" for c, k in islice(named, 3))

    def _find_candidates(self) -> Iterator[_Candidate]:
        """Yield the columns that are named as exporters name probabilities."""
        for forms, logits in ((FORMS, False), (FORMS_OF_LOGITS, True)):
            for form in forms:
                yield from self._find_of_form(form, logits)
        for name, columns in self.file.lists.items():
            inside = [column[len(name) + 1 : -1] for column in columns]
            spelled = {text: label for label in self.labels for text in _spell(label)}
            if set(self.labels) <= {spelled.get(key, key) for key in inside}:
                yield _Candidate(
                    columns, [spelled.get(key, key) for key in inside], _are_logits(name)
                )
        if len(self.labels) > 2:
            return
        words = CONFIDENCES if self.of_outcomes else ()
        for name in self.names:
            word = name.strip().lower()
            if word in SINGLE or word in LOGITS or word in words:
                yield _Candidate([name], [None], word in LOGITS)

    def _find_of_form(self, form: str, logits: bool) -> Iterator[_Candidate]:
        """Yield the columns of one form: of every label, or of one of two."""
        named: dict[str, str] = {}
        for label in self.labels:
            for text in _spell(label):
                if (column := self.by_plain.get(form.format(text))) is not None:
                    named.setdefault(label, column)
        if not named:
            return
        place = {name: k for k, name in enumerate(self.names)}
        if len(named) == len(self.labels):
            further = {
                text: name
                for text, name in (_in_form(form, self.names) if form != "{}" else ())
                if name not in named.values()
            }
            if len(named) > 1 or further or form == "{}":
                ordered = sorted(named, key=lambda label: place[named[label]])
                yield _Candidate([named[k] for k in ordered], [*ordered], logits, further)
                if len(named) > 1:
                    return
        if len(self.labels) <= 2 and len(named) == 1:
            [(label, column)] = named.items()
            yield _Candidate([column], [label], logits)

    def _read_values(self, candidate: _Candidate) -> NDArray[np.float64]:
        """Return the probabilities of a candidate, whose classes may be completed; or raise."""
        for name in candidate.columns:
            self.file.check_name(name)
        if candidate.logits:
            return self._read_logits(candidate)
        if len(candidate.columns) == 1 and not (
            candidate.further or self._may_complete(candidate)
        ):
            return self.file.probabilities(candidate.columns[0])
        own = [self.file.probabilities(name) for name in candidate.columns]
        if (rows := _divide_rounded(own)) is not None:
            return rows
        further = candidate.further
        if not further and self._may_complete(candidate):
            further = {strip_name(name): name for name in self._find_others(candidate)}
        if further:
            rest = [self.file.as_numbers(name) for name in further.values()]
            inside = all(((values >= 0) & (values <= 1)).all() for values in rest)
            if inside and (rows := _divide_rounded([*own, *rest])) is not None:
                classes = dict(zip(candidate.columns, candidate.classes))
                classes |= {name: text for text, name in further.items()}
                candidate.columns = [name for name in self.names if name in classes]
                candidate.classes = [classes[name] for name in candidate.columns]
                places = {name: k for k, name in enumerate(classes)}
                return rows[:, [places[name] for name in candidate.columns]]
        raise self._explain_sums(candidate.columns, own)

    def _explain_sums(self, names: list[str], columns: list[NDArray[np.float64]]) -> ValueError:
        sums = np.sum(columns, axis=0)
        row = int(np.abs(sums - 1).argmax())
        return ValueError(
            f"{self.path} must have probabilities that sum to 1 in columns {list_names(names)}, "
            f"got {sums[row]:g} in line {self.file.frame.index[row]}, which rounding does not "
            "explain."
        )

    def _may_complete(self, candidate: _Candidate) -> bool:
        """Tell whether other columns may be classes without samples: names are exact labels."""
        exact = set(candidate.columns) == {self.by_plain.get(k or "") for k in candidate.classes}
        return exact and len(candidate.columns) == len(self.labels) and bool(self.graded)

    def _find_others(self, candidate: _Candidate) -> list[str]:
        return [name for name in self.graded if name not in candidate.columns]

    def _read_logits(self, candidate: _Candidate) -> NDArray[np.float64]:
        if self.file.percent:
            raise ValueError(
                f"percent must be False for logits, as in columns {list_names(candidate.columns)} "
                f"of {self.path}."
            )
        values = [self.file.numbers(name, "finite logits") for name in candidate.columns]
        if not all(np.isfinite(value).all() for value in values):
            raise ValueError(
                f"{self.path} must hold finite logits in columns {list_names(candidate.columns)}."
            )
        if len(values) == 1:
            return expit(values[0])
        lists = self.file.lists.values()
        mirrored = len(values) == 2 and np.allclose(values[0], -values[1], atol=1e-6)
        if mirrored and not any(candidate.columns[0] in list_ for list_ in lists):
            raise ValueError(
                f"Columns {list_names(candidate.columns)} of {self.path} must be logits of a "
                "softmax, got one that is minus the other, as log-odds are: write probabilities."
            )
        return softmax(np.column_stack(values), axis=1)

    @property
    def graded(self) -> list[str]:
        """The columns of numbers in [0, 1] that are not all 0."""
        if self._graded is None:
            self._graded = [name for name in self.names if self._could_be(name)]
        return self._graded

    def _could_be(self, name: str) -> bool:
        cells = self.file.frame[name]
        if cells.dtype.kind not in "fi" and not is_percent(cells):
            return False
        values = self.file.as_numbers(name)
        return bool(values.min() >= 0 and 0 < values.max() <= 1)

    def _merged(
        self, found: list[tuple[_Candidate, NDArray[np.float64]]]
    ) -> list[tuple[_Candidate, NDArray[np.float64]]]:
        """Return candidates that differ; those of more columns are kept."""
        kept: list[tuple[_Candidate, NDArray[np.float64]]] = []
        for candidate, values in sorted(found, key=lambda pair: -len(pair[0].columns)):
            for other, before in kept:
                if set(candidate.columns) <= set(other.columns):
                    break
                if _says_the_same(values, candidate.classes, before, other.classes):
                    break
            else:
                kept.append((candidate, values))
        return kept

    def _find_only(
        self, pos_label: str | None, faults: list[tuple[_Candidate, ValueError]]
    ) -> _Candidate:
        """Return the only column of probabilities, whatever its name; or raise what is wrong."""
        graded = [name for name in self.graded if not self._is_0_or_1(name)]
        if faults and (len(graded) != 1 or not self._are_far_off(faults[0][0].columns)):
            raise faults[0][1]
        if len(self.labels) > 2 or (self.file.lists and not graded):
            raise self._explain_refusal()
        graded = [name for name in graded if name.strip().lower() in UNSURE] or graded
        named = [name for name in self.names if not name.startswith("(column ")]
        graded = graded or [name for name in named if self._are_nearly_inside([name])] or named
        if len(graded) != 1:
            raise self._explain_refusal()
        [column] = graded
        sure = column.strip().lower() in UNSURE or pos_label is not None
        self.file.probabilities(column)
        if not sure:
            raise self._explain_unclear(column)
        return _Candidate(graded, [None])

    def _explain_unclear(self, column: str, why: str = "") -> ValueError:
        labels = _complete_pair(self.labels)
        example = _find_positive(self.labels) or labels[-1]
        return ValueError(
            f"pos_label must say of which class column {column!r} of {self.path} has the "
            f"probability, {' or '.join(labels)}, got None{why}; if it is {example}, add "
            f"--classes {column}={example}. (If the labels are not in {self.label!r}, --label "
            "names their column.)"
        )

    def _are_far_off(self, names: list[str]) -> bool:
        """Tell whether most numbers of the columns lie outside [0, 1]."""
        values = np.concatenate([self.file.as_numbers(name) for name in names])
        return bool((~((values >= 0) & (values <= 1))).mean() > 0.5)

    def _is_0_or_1(self, name: str) -> bool:
        return bool(np.isin(self.file.as_numbers(name), (0, 1)).all())

    def _are_nearly_inside(self, names: list[str]) -> bool:
        """Tell whether most numbers of the columns lie within (0, 1)."""
        for name in names:
            values = self.file.as_numbers(name)
            if ((values > 0) & (values < 1)).mean() <= 0.5:
                return False
        return True

    def _explain_refusal(self) -> ValueError:
        fits = sort_naturally(self.graded)
        models = [name for name in fits if not self._is_0_or_1(name)]
        values = [self.file.as_numbers(name) for name in models]
        if (
            len(self.labels) == 2
            and len(models) > 1
            and not np.allclose(sum(values), 1, atol=1e-2)
        ):
            labels = sort_naturally(self.labels)
            return ValueError(
                f"classes must name the one column of {self.path} to take, as the probability of "
                f"one of the labels {list_names(labels)}, got several columns of probabilities: "
                f"{list_names(models)}; --classes {models[0]}={labels[-1]} takes the first, "
                "and python -m skcalib compare with --models compares them."
            )
        lists = [name for name in self.file.lists if set(self.file.lists[name]) <= set(fits)]
        if lists:
            columns = self.file.lists[lists[0]]
            return ValueError(
                f"classes must name the class of every place of the lists in column {lists[0]!r} "
                f"of {self.path}, whose labels are {list_names(self.labels)}: "
                f"{_write_example(columns)}."
            )
        example = f" or one by one ({_write_example(fits)})" if len(fits) > 1 else ""
        nearly = ""
        for name in self.names:
            if name not in self.graded and self._are_nearly_inside([name]):
                try:
                    self.file.probabilities(name)
                except ValueError as error:
                    nearly = f". {str(error)[:-1]}"
                    break
        return ValueError(
            f"{self.path} must have a column of probabilities for every class, called like its "
            f"label ({list_names(sort_naturally(self.labels))}), or the option classes must name "
            f"them in the order of the classes{example}, got columns {list_names(self.names)} and "
            f"labels {self.label!r} (or --label names them); columns of numbers in [0, 1]: "
            f"{list_names(fits) or 'none'}{nearly}."
        )

    def _make_result(
        self, candidate: _Candidate, values: NDArray[np.float64], pos_label: str | None
    ) -> _Found:
        note = ""
        if candidate.logits:
            note = f", by the {'logistic function' if values.ndim == 1 else 'softmax'} of logits"
        else:
            note = self._describe_changes(candidate.columns)
        if values.ndim == 1:
            column = candidate.columns[0]
            return self._make_positive(
                column, values, self._find_class(candidate, values, pos_label), note
            )
        classes = [str(name) for name in candidate.classes]
        if pos_label is not None and len(classes) == 2 and pos_label in classes:
            k = classes.index(pos_label)
            return self._make_positive(candidate.columns[k], values[:, k], pos_label, note)
        return self._make_found(values, classes, list(candidate.columns), note=note)

    def _describe_changes(self, columns: list[str]) -> str:
        """Return what was done with the numbers of the columns."""
        note = _describe_percent(self.file, columns)
        if len(columns) > 1 and not sum_to_1(
            np.sum([*map(self.file.as_numbers, columns)], axis=0)
        ):
            note += ", rounded rows divided by their sums"
        return note

    def _find_class(
        self, candidate: _Candidate, values: NDArray[np.float64], pos_label: str | None
    ) -> str:
        """Return the class of the only column of probabilities."""
        [column], [named] = candidate.columns, candidate.classes
        if named is not None and pos_label not in (None, named):
            raise ValueError(
                f"pos_label must be the class that column {column!r} of {self.path} is called "
                f"after, {named}, got {pos_label!r}; if it is of that class, say so: --classes "
                f"{column}={pos_label}."
            )
        positive = _find_positive(self.labels)
        # It could be the confidence of the predicted class, which is never below 1/2.
        unclear = values.min() >= 0.5 and not self.of_outcomes
        if named or pos_label or not (positive is None or unclear):
            return str(named or pos_label or positive)
        why = "; it is never below 0.5, as the confidence in an answer" if unclear else ""
        for name in [n for n in self.names if n not in (column, self.label)] if unclear else ():
            if set(self.file.frame[name].astype(str)) <= set(self.labels):
                why += f" (--prediction {name} --confidence {column})"
                break
        raise self._explain_unclear(column, why)

    def _make_positive(
        self, column: str, values: NDArray[np.float64], positive: str, note: str = ""
    ) -> _Found:
        others = sorted(set(self.labels) - {positive})
        if len(others) > 1:
            raise ValueError(
                f"{self.path} must have a column for every class, or two classes of which one is "
                f"{positive!r}; got the other labels {others}."
            )
        if np.isin(values, (0, 1)).all():
            warn(
                f"Column {column!r} of {self.path} holds 0 and 1 alone: if these are predicted "
                "labels, the errors are error rates; write predict_proba in place of predict."
            )
        negative = others[0] if others else f"not {positive}"
        return self._make_found(values, [negative, positive], [column], note=note)

    def _read_given(self, given: dict[str, str | None], pos_label: str | None) -> _Found:
        """Return the probabilities of the columns that the option names."""
        labels, columns = self.labels, list(given)
        logits = all(_are_logits(name) for name in columns)
        candidate = _Candidate(columns, [*given.values()], logits)
        if len(given) == 1:
            [(column, name)] = given.items()
            values = self._read_logits(candidate) if logits else self.file.probabilities(column)
            meant = name or _find_class(column, _complete_pair(labels))
            positive = pos_label or meant or _find_positive(labels) or column
            return self._make_positive(
                column, values, positive, _describe_percent(self.file, columns)
            )
        named = [
            name or _find_class(column, labels) or strip_name(column)
            for column, name in given.items()
        ]
        if len(set(named)) < len(named):
            raise ValueError(f"classes must name distinct classes, got {list_names(named)}.")
        if logits:
            values = self._read_logits(candidate)
        else:
            own = [self.file.probabilities(name) for name in columns]
        unknown = set(labels) - set(named)
        numbers = {str(k) for k in range(len(given))}
        by_position = bool(unknown) and not any(given.values()) and set(labels) <= numbers
        if unknown and not (by_position and unknown == set(labels)):
            raise ValueError(
                f"The labels of {self.path} must be among the classes {list_names(named)}, or 0, "
                f"1, ... for them in this order, got {list_names(sort_naturally(unknown))}; "
                f"name them one by one: {_write_example(given)}."
            )
        if logits:
            return self._make_found(values, named, columns, by_position)
        if (rows := _divide_rounded(own)) is None:
            raise self._explain_sums(columns, own)
        return self._make_found(
            rows, named, columns, by_position, note=self._describe_changes(columns)
        )


def _describe_percent(file: File, columns: list[str]) -> str:
    """Return what was done with percentages."""
    if any(is_percent(file.frame[name]) for name in columns):
        return ", percent signs divided by 100"
    return ", percentages divided by 100" if file.percent else ""


def _are_logits(name: str) -> bool:
    return re.match(r"logits?(?![a-z])", name.strip().lower()) is not None


def _in_form(form: str, names: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield the (text in the label's place, name) of columns of a form."""
    before, after = form.split("{}")
    for name in names:
        inside = name[len(before) : len(name) - len(after)]
        if inside and name.startswith(before) and name.endswith(after):
            yield inside, name


def _is_0_or_1(values: NDArray[np.float64]) -> bool:
    return bool(np.isin(values, (0, 1)).all())


def _divide_rounded(columns: list[NDArray[np.float64]]) -> NDArray[np.float64] | None:
    """Return rows that sum to 1, rounded ones divided by their sums; None if there are none."""
    rows = np.column_stack(columns)
    sums = rows.sum(axis=1)
    if not sum_to_1(sums):
        if not are_rounded(rows, sums):
            return None
        rows /= sums[:, np.newaxis]
    return rows


def _says_the_same(
    values: NDArray[np.float64],
    classes: list[str | None],
    others: NDArray[np.float64],
    other_classes: list[str | None],
) -> bool:
    """Tell whether candidates hold the same probabilities, or one the largest of the other."""
    alike = lambda a, b: bool(np.allclose(a, b, rtol=0, atol=TOLERANCE))
    if values.ndim == others.ndim:
        order = [other_classes.index(k) if k in other_classes else -1 for k in classes]
        if values.ndim == 1:
            return classes == other_classes and alike(values, others)
        return values.shape == others.shape and -1 not in order and alike(values, others[:, order])
    if classes[0] in other_classes:
        return alike(values, others[:, other_classes.index(classes[0])])
    return any(alike(values, column) for column in (*others.T, others.max(axis=1)))
