"""Whether the search finds the recipes by the words that people type.

    python docs/search_words.py docs/_build/html

Every main entry of an ``index`` directive is searched for as the site does it: by entries of the
index, by titles and by names of the API, ordered by the site's scorer. The first result has to be
the page of the entry. Words in the text score a tenth of an entry at most, and are left out.
"""

import json
import re
import sys
from pathlib import Path

HERE = Path(__file__).parent
FOLDERS = [
    (re.compile(pattern.replace("\\/", "/")), int(points))
    for pattern, points in re.findall(
        r"\[/(.*)/, (-?\d+)\]", (HERE / "search_scorer.js").read_text()
    )
]


def results(index: dict, query: str) -> list[str]:
    """Return the pages found, best first."""
    found = []
    for entry, places in index["indexentries"].items():
        if query in entry and 2 * len(query) >= len(entry):
            score = round(100 * len(query) / len(entry))
            found += [(score, place[0]) for place in places if place[2]]
    for title, places in index["alltitles"].items():
        if query in title.lower() and 2 * len(query) >= len(title):
            score = round(15 * len(query) / len(title))
            found += [(score + (index["titles"][place[0]] == title), place[0]) for place in places]
    for members in index["objects"].values():
        for page, _, _, _, name in members:
            found += [(11, page)] if query == name.lower() else []
    pages = index["docnames"]
    ranked = {}
    for score, page in found:
        bonus = next((b for pattern, b in FOLDERS if pattern.match(pages[page])), 0)
        ranked[pages[page]] = max(ranked.get(pages[page], -99), score + bonus)
    return sorted(ranked, key=lambda page: (-ranked[page], page))


def main(folder: Path) -> None:
    text = (folder / "searchindex.js").read_text()
    index = json.loads(text[text.index("{") : text.rindex("}") + 1])
    asked, lost = 0, []
    for path in sorted(HERE.glob("*/*.rst")):
        page = path.relative_to(HERE).with_suffix("").as_posix()
        for word in re.findall(r"^   ! single: (.*)$", path.read_text(), re.MULTILINE):
            asked += 1
            # The index and the query are lowercase on the site.
            found = results(index, word.lower())
            if found[:1] != [page]:
                lost.append(f"{word}: {found[:3]} before {page}")
    print(f"{asked - len(lost)} of {asked} words find their page first")
    sys.exit("\n".join(lost) or (0 if asked else "no words"))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
