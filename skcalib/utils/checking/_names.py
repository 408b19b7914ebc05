"""Find the class of a column of probabilities by its name: p_cat, prob.0, P(y=1), not_spam.

A name is a prefix, a label and a suffix. Whatever the tool, the words around the label are those
of probabilities. A name with other words beside a label is not guessed at.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence

# Words that stand beside a label in a name of its probability.
_WORDS = frozenset(
    re.findall(
        r"\w+",
        """p pr prob probs proba probas probability probabilities predict predicts predicted
        prediction predictions pred preds score scores scored confidence conf likelihood posterior
        softmax class cls label target y yhat hat true x for of is the given calibrated cal raw
        mean output response event outcome level category value distribution chance risk est
        estimate estimated c k xp""",
    )
)
_NEGATIONS = frozenset({"not", "non", "no", "isnt", "complement", "minus", "inverse"})
_NEGATIVE = frozenset({"0", "-1", "false", "no", "n", "neg", "negative", "f"})
_POSITIVE = frozenset({"1", "true", "yes", "y", "pos", "positive", "t"})
# In a name that begins like this, y is the column of labels and not a class.
_OF_Y = re.compile(
    r"^y[ _.\-]?(pred|proba|prob|score|hat)(icted|ability|abilities)?(?=[ _.\-\d]|$)"
)


def plain_label(name: str) -> str:
    """Return a label as columns name it: "1.0", as pandas reads a 1 beside a gap, becomes "1"."""
    name = unicodedata.normalize("NFC", name).strip()
    return name.split(".")[0] if re.fullmatch(r"-?\d+\.0+", name) else name


def natural_order(names: Iterable[str]) -> list[str]:
    """Return names sorted as people do: class_2 before class_10."""
    return sorted(
        names,
        key=lambda name: [
            (0, int(part), "") if part.isdecimal() else (1, 0, part)
            for part in re.split(r"(\d+)", name)
            if part
        ],
    )


def _tokens(name: str, *, signed: bool = False) -> list[str]:
    """Return the words and numbers of a name in lower case; `signed` numbers may be negative."""
    name = unicodedata.normalize("NFKC", name)
    name = re.sub(r"(\d)\.0+(?!\d)", r"\1", name)  # class_1.0
    name = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)  # probYes
    found = re.findall(r"-?\d+|[^\W\d_]+" if signed else r"\d+|[^\W\d_]+", name)
    return [token.lower() for token in found]


def polarity(label: str) -> int:
    """Return 1 for labels such as "1" or "yes", -1 for "0" or "no", else 0."""
    word = plain_label(label).lower()
    return 1 if word in _POSITIVE else -1 if word in _NEGATIVE else 0


def label_of(name: str, labels: Sequence[str], about: str = "") -> tuple[str | None, bool]:
    """Return the label that the name of a column means, and whether that is sure.

    (None, True) if the name is about no label, (None, False) if it may be about several. `about`
    is the name of the column of labels, whose words may stand there as well: "churn_yes_score".
    """
    if plain_label(name) in labels:
        return plain_label(name), True
    signed = any(label.startswith("-") for label in labels)
    if signed and re.search(r"[^\W_]-\d", name):
        return None, False  # XP-1 may be of 1 and of -1
    words = _tokens(_OF_Y.sub("", name.strip()) or name, signed=signed)
    parts = {label: _tokens(label, signed=signed) for label in labels}
    known = _WORDS | set(_tokens(about))
    spans = _spans(words, parts) or _spans_of_signs(words, labels)
    spans = spans or [
        # P_churnno, Xno: a known word and the label in one.
        (label, i, i + 1)
        for label, part in parts.items()
        for i, word in enumerate(words)
        if len(part) == 1 and word.endswith(part[0]) and word[: -len(part[0])] in known
    ]
    inside = {i for _, start, stop in spans for i in range(start, stop)}
    rest = [word for i, word in enumerate(words) if i not in inside]
    negated = bool(_NEGATIONS & set(rest)) or bool(re.match(r"1 ?[-\u2212]", name.strip()))
    meant = {label for label, *_ in spans}
    if len(meant) != 1:
        return None, not meant and not negated
    [label] = meant
    if negated:
        others = [other for other in labels if other != label]
        return (others[0], True) if len(labels) == 2 else (None, False)
    return label, set(rest) <= known


def _spans_of_signs(words: list[str], labels: Sequence[str]) -> list[tuple[str, int, int]]:
    """Return (label, start, stop) of words for yes or no, where the labels use other ones."""
    signs = [polarity(label) for label in labels]
    if sorted(signs) != [-1, 1]:
        return []
    by_sign = dict(zip(signs, labels))
    found = []
    for i, word in enumerate(words):
        # "no" before another word negates that word.
        sign = 0 if word in _NEGATIONS and i + 1 < len(words) else polarity(word)
        if sign and word not in ("y", "n", "t", "f"):
            found.append((by_sign[sign], i, i + 1))
    return found


def _spans(words: list[str], labels: dict[str, list[str]]) -> list[tuple[str, int, int]]:
    """Return (label, start, stop) of the labels in a name; a longer label hides those within."""
    spans = [
        (label, i, i + len(parts))
        for label, parts in labels.items()
        if parts
        for i in range(len(words) - len(parts) + 1)
        if words[i : i + len(parts)] == parts
    ]
    return [
        span
        for span in spans
        if not any(
            other is not span
            and other[1] <= span[1]
            and span[2] <= other[2]
            and other[2] - other[1] > span[2] - span[1]
            for other in spans
        )
    ]


def sets_of_columns(
    names: Sequence[str], labels: Sequence[str], about: str = ""
) -> list[dict[str, str]]:
    """Return every way to name all labels by columns that are called alike, {label: column}.

    Such as "p_cat" and "p_dog" for "cat" and "dog". Other columns of the same form are further
    classes, named by what they have in the label's place.
    """
    first = labels[0]
    forms: dict[tuple[str, str], None] = {}
    for name in names:
        start = name.find(first)
        while start >= 0:
            forms[name[:start], name[start + len(first) :]] = None
            start = name.find(first, start + 1)
    found = []
    for before, after in forms:
        named = {label: before + label + after for label in labels}
        if set(named.values()) <= set(names):
            found.append(named | _further(names, before, after, named))
    return found or _by_words(names, labels, about)


def _further(
    names: Sequence[str], before: str, after: str, named: dict[str, str]
) -> dict[str, str]:
    """Return further classes {label: column}, of other columns with this text around a label."""
    if not before and not after:
        return {}
    more = {}
    for name in names:
        inside = name[len(before) : len(name) - len(after)]
        alike = name.startswith(before) and name.endswith(after) and inside
        if alike and name not in named.values():
            more[inside] = name
    return more


def _by_words(names: Sequence[str], labels: Sequence[str], about: str) -> list[dict[str, str]]:
    """Return the columns whose words surely name one label each, if every label has one."""
    found: dict[str, str] = {}
    for name in names:
        label, sure = label_of(name, labels, about)
        if label is not None and sure:
            if label in found:
                return []
            found[label] = name
    return [found] if len(found) == len(labels) else []
