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
    """Yield the part of a study, the records of its fresh seeds, and its claims."""
    of_part = {}
    for _, claim, _ in page.repeated():
        of_part.setdefault(claim.part, []).append(claim)
    for name, claims in of_part.items():
        if options.only in ("", name):
            only = {(c.headline, method) for c in claims for method in (c.method, *c.rivals)}
            part = next(s.parts[name] for s in page.STUDIES.values() if name in s.parts)
            path = options.out / f"fresh_{name}.jsonl"
            records = Records(path, options.minutes, settings=settings_of(name), only=only)
            yield part, records, claims


def run(options):
    seeds = range(FIRST_SEED, FIRST_SEED + len(options.seeds))
    for part, records, claims in fresh(options):
        noise = sorted({claim.headline for claim in claims})
        part.run(Namespace(**vars(options) | {"seeds": seeds, "noise": noise}), records)


def summarize(options):
    """Write the JSON of every part whose fresh runs are in the folder: what its claims read."""
    for part, records, claims in fresh(options):
        if records.rows:
            kept = {"options", *(claim.metric for claim in claims)}
            points = {claim.point for claim in claims}
            settings = {
                setting: {
                    method: {
                        point: {name: v for name, v in values.items() if name in kept}
                        for point, values in found.items() if point in points
                    }
                    for method, found in methods.items() if (setting, method) in records.only
                }
                for setting, methods in collected(records, part).items()
            }  # fmt: skip
            write(records.path.stem, records, settings)
