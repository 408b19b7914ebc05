"""The claims of the overview again, on fresh seeds: ``python -m benchmarks.papers replicate``.

The claims, the effects, the rules of the verdicts and the options of every method are those of the
pages, fixed before these seeds were run. Each claim is tested in the setting of the overview.
"""

from __future__ import annotations

from argparse import Namespace

from . import page
from .results import collected, settings_of, write
from .runner import Records

FIRST_SEED = 200


def fresh(options):
    """Yield the part of a study, the records of its fresh seeds, and its settings."""
    of_part = {}
    for _, claim, _ in page.headlines():
        of_part.setdefault(claim.part, []).append(claim)
    for name, claims in of_part.items():
        if options.only in ("", name):
            only = {(c.headline, method) for c in claims for method in (c.method, *c.rivals)}
            part = next(s.parts[name] for s in page.STUDIES.values() if name in s.parts)
            path = options.out / f"fresh_{name}.jsonl"
            records = Records(path, options.minutes, settings=settings_of(name), only=only)
            yield part, records, sorted({claim.headline for claim in claims})


def run(options):
    seeds = range(FIRST_SEED, FIRST_SEED + len(options.seeds))
    for part, records, noise in fresh(options):
        part.run(Namespace(**vars(options) | {"seeds": seeds, "noise": noise}), records)


def summarize(options):
    """Write the JSON of every part whose fresh runs are in the folder."""
    for part, records, _ in fresh(options):
        if records.rows:
            write(records.path.stem, records, collected(records, part))
