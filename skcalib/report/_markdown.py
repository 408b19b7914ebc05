"""The report as Markdown, for a pull request: text and tables, no pictures."""

from __future__ import annotations

from typing import Any

from ._document import Code, Samples, Section, Table, Text
from ._sections import document

# Characters that mean something to Markdown, to HTML or to a site that shows Markdown: formulas
# between dollars, people and issues by @ and #.
SPECIAL = "\\`*_[]<>#|&$~@"


def escape(text: str) -> str:
    """Return text that is shown letter by letter, on one line."""
    line = " ".join(text.split())
    return "".join(f"&#{ord(letter)};" if letter in SPECIAL else letter for letter in line)


def as_markdown(results: dict[str, Any]) -> str:
    """Return the report as Markdown."""
    report = document(results)
    parts = [
        f"# {escape(report.title)}",
        escape(report.subtitle),
        f"**{escape(report.verdict)}**",
        "\n".join(f"- **{escape(value)}** {escape(what)}" for value, what in report.tiles),
    ]
    for section in report.sections:
        parts += [f"## {escape(section.title)}", *_blocks(section)]
    return "\n\n".join(parts) + "\n"


def _blocks(section: Section) -> list[str]:
    parts = []
    for block in section.blocks:
        if isinstance(block, Table):
            parts.append(_table(block))
        elif isinstance(block, Text):
            parts.append(escape(block.text))
        elif isinstance(block, Samples):
            parts += [f"### {escape(block.caption)}", _samples(block)]
        elif isinstance(block, Code):
            parts.append(f"```python\n{block.text}\n```")
    return parts


def _table(table: Table) -> str:
    rule = ["---", *["---:"] * (len(table.header) - 1)]
    lines = [[escape(cell) or " " for cell in row] for row in (table.header, *table.rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in (lines[0], rule, *lines[1:]))


def _samples(samples: Samples) -> str:
    lines = []
    for entry in samples.entries:
        text = f"{escape(entry['text'])}; " if "text" in entry else ""
        what = escape("; ".join(entry["lines"]))
        lines.append(f"- **{escape('#' + str(entry['sample']))}** {text}{what}")
    return "\n".join(lines)
