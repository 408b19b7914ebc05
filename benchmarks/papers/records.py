"""Finished runs, one JSON line each: a second call skips what is there."""

from __future__ import annotations

import json
import time
from copy import copy
from pathlib import Path


class Records:
    """The runs of one study, kept in a file that only grows."""

    def __init__(self, path: Path):
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self.rows = {}
        if path.exists():
            for line in path.read_text().splitlines():
                row = json.loads(line)
                self.rows[_text(row["key"])] = row

    def __contains__(self, key):
        return _text(key) in self.rows

    def get(self, key, compute):
        """Return the row of a run; compute and append it if it is not there."""
        if key not in self:
            start = time.process_time()
            row = {"key": key, **compute()}
            row["seconds"] = round(time.process_time() - start, 2)
            with self.path.open("a") as file:
                file.write(json.dumps(row, default=float) + "\n")
            self.rows[_text(key)] = row
        return self.rows[_text(key)]

    def only(self, keep):
        """Return the runs whose key `keep` is true for, to be read."""
        part = copy(self)
        part.rows = {text: row for text, row in self.rows.items() if keep(row["key"])}
        return part

    def where(self, **fixed):
        """Yield the rows whose key has these entries."""
        for row in self.rows.values():
            if all(row["key"].get(name) == value for name, value in fixed.items()):
                yield row


def _text(key):
    return json.dumps(key, sort_keys=True)
