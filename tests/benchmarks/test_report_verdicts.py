"""What the guide says of the verdicts of the report is what the simulation has found."""

import json
import re


def test_verdicts_hold_what_the_guide_says(repository):
    path = repository / "benchmarks" / "report_verdicts_results.json"
    results = json.loads(path.read_text(encoding="utf-8"))
    calibrated = {name: found for name, found in results.items() if name.startswith("calibrated")}
    n_draws = n_flagged = n_clear = n_faults = 0
    for name, found in results.items():
        if name in calibrated:
            n_draws += sum(found.values())
            n_clear += found.get("calibrated", 0)
            n_flagged += sum(found.values()) - found.get("calibrated", 0)
            n_flagged -= found.get("undecided", 0)
        else:
            n_faults += sum(found.values())
            assert "calibrated" not in found, name
    assert n_flagged <= 0.05 * n_draws
    page = repository / "docs" / "understand" / "report.rst"
    guide = " ".join(page.read_text(encoding="utf-8").split())
    found = re.search(
        r"none of (\d+) draws of (\d+) faults got an all-clear, and (\d+) of (\d+) calibrated "
        r"models? (?:was|were) flagged; (\d+)",
        guide,
    )
    numbers = n_faults, len(results) - len(calibrated), n_flagged, n_draws, n_clear
    assert tuple(map(int, found.groups())) == numbers
