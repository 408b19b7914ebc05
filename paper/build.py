"""Write paper.md: the text of paper.md.in with the figures of the page of evidence.

python paper/build.py
"""

import csv
from collections import Counter
from pathlib import Path

HERE = Path(__file__).parent


def paper():
    """Return the text with every placeholder replaced."""
    overview = (HERE.parent / "docs/evidence/overview.inc").read_text()
    lines = [line.strip() for line in overview.splitlines() if line.startswith('   "')]
    rows = csv.reader(lines, skipinitialspace=True)
    verdicts = Counter(row[-1] for row in rows)
    figures = {
        "TOTAL": verdicts.total(),
        "HOLDS": verdicts["holds"],
        "SMALLER": verdicts["holds, smaller"],
        "PART": verdicts["holds in part"],
        "UNDECIDED": verdicts["undecided"],
        "NOT": verdicts["does not hold here"],
    }
    text = (HERE / "paper.md.in").read_text()
    for name, figure in figures.items():
        text = text.replace(f"@{name}@", str(figure))
    return text


if __name__ == "__main__":
    (HERE / "paper.md").write_text(paper())
