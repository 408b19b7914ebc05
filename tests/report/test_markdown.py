"""The report as Markdown: tables that stay tables, and text that stays text."""

import html

import numpy as np

from skcalib.datasets import make_predictions
from skcalib.report import CalibrationReport

HOSTILE = np.array(["a|b", "<script>", "$x$ *y* @user #12 [z](q) `c`\nnew line"])


def test_tables_have_rows_of_one_length():
    y, proba, _ = make_predictions(200, n_classes=3, random_state=0)
    report = CalibrationReport.from_predictions(HOSTILE[y], proba, labels=HOSTILE)
    lengths, inside = [], False
    for line in report.to_markdown().splitlines():
        if line.startswith("|"):
            n_cells = line.count("|")
            if inside:
                assert n_cells == lengths[-1]
            lengths.append(n_cells)
        inside = line.startswith("|")
    assert len(lengths) > 20


def test_labels_are_shown_letter_by_letter():
    y, proba, _ = make_predictions(200, n_classes=3, random_state=0)
    text = CalibrationReport.from_predictions(HOSTILE[y], proba, labels=HOSTILE).to_markdown()
    assert "<script>" not in text
    assert "@user" not in text
    assert "$x$" not in text
    for name in HOSTILE:
        assert " ".join(name.split()) in html.unescape(text)
