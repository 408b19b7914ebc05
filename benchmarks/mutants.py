"""Whether the tests notice a fault: one small change at a time, and the tests that should fail.

    python -m benchmarks.mutants skcalib/losses [...] [--since REV] [--draw 200]

A mutant swaps a comparison, a sum, a minimum, a truth value or a number of a file. It is killed if
a test fails, or does not end. `--since` takes only lines that have changed since a commit. The
tests are those of the file's folder that name it or what it defines, and its examples; or those of
`--tests`. All of it happens in a copy of the repository, so that an interruption leaves nothing
behind.
"""

import argparse
import ast
import os
import random
import re
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import matplotlib.pyplot  # noqa: F401
import pytest
import scipy.stats  # noqa: F401
import sklearn.ensemble  # noqa: F401
import torch  # noqa: F401

ROOT = Path(__file__).parents[1]
SWAPS: dict[type, str] = {
    ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "==",
    ast.Is: "is not", ast.IsNot: "is", ast.In: "not in", ast.NotIn: "in",
    ast.Add: "-", ast.Sub: "+", ast.Mult: "/", ast.Div: "*", ast.And: "or", ast.Or: "and",
}  # fmt: skip
NAMES = {
    "minimum": "maximum", "maximum": "minimum", "min": "max", "max": "min", "any": "all",
    "all": "any", "argmin": "argmax", "argmax": "argmin", "logaddexp": "add", "T": "real",
}  # fmt: skip
Mutant = tuple[int, int, int, str]  # line, first and last column, what stands there instead


def _between(text: str, left: ast.AST, right: ast.AST, old: str, new: str) -> Mutant | None:
    """Replace an operator between two parts that stand on one line."""
    if left.end_lineno != right.lineno:
        return None
    start, stop = left.end_col_offset, right.col_offset
    gap = text.encode()[start:stop].decode()
    where = re.search(old, gap)
    if where is None:
        return None
    return left.end_lineno, start + where.start(), start + where.end(), new


def _of_node(node: ast.AST, line: str) -> Iterator[Mutant | None]:
    symbol = r"not in|is not|[<>=!]=|[-+*/<>]|\b(?:in|is|and|or)\b"
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        new = SWAPS[type(node.ops[0])]
        yield _between(line, node.left, node.comparators[0], symbol, new)
    elif isinstance(node, ast.BinOp) and type(node.op) in SWAPS:
        yield _between(line, node.left, node.right, symbol, SWAPS[type(node.op)])
    elif isinstance(node, ast.BoolOp) and len(node.values) == 2:
        yield _between(line, *node.values, symbol, SWAPS[type(node.op)])
    elif isinstance(node, ast.Constant) and node.lineno == node.end_lineno:
        span = node.lineno, node.col_offset, node.end_col_offset
        if isinstance(node.value, bool):
            yield *span, str(not node.value)
        elif isinstance(node.value, int | float):
            larger = node.value * 1.5 if isinstance(node.value, float) else node.value + 1
            yield *span, repr(larger or 1.0)  # 1.5 times 0.0 is no other program
    elif isinstance(node, ast.Attribute) and node.attr in NAMES:
        stop = node.end_col_offset
        if node.lineno == node.end_lineno:
            yield node.lineno, stop - len(node.attr), stop, NAMES[node.attr]
    elif isinstance(node, ast.Name) and node.id in NAMES and isinstance(node.ctx, ast.Load):
        yield node.lineno, node.col_offset, node.end_col_offset, NAMES[node.id]


def mutants(source: str) -> list[Mutant]:
    """Return the changes of a file; annotations, messages and declarations are left alone."""
    tree, lines = ast.parse(source), source.splitlines()
    silent = set()
    for node in ast.walk(tree):
        hidden = [getattr(node, name, None) for name in ("annotation", "returns")]
        if isinstance(node, ast.Raise | ast.ImportFrom | ast.JoinedStr):
            hidden.append(node)
        if isinstance(node, ast.AnnAssign) and "constraints" in ast.unparse(node.target):
            hidden.append(node)
        silent.update(id(part) for top in hidden if top for part in ast.walk(top))
    found = [
        mutant
        for node in ast.walk(tree)
        if id(node) not in silent and hasattr(node, "lineno")
        for mutant in _of_node(node, lines[(getattr(node, "left", None) or node).end_lineno - 1])
        if mutant is not None
    ]
    return sorted(set(found))


def changed(source: str, mutant: Mutant) -> str:
    """Return the source with one mutant in it; columns count bytes, as those of `ast` do."""
    number, start, stop, new = mutant
    lines = source.splitlines(keepends=True)
    line = lines[number - 1].encode()
    lines[number - 1] = (line[:start] + new.encode() + line[stop:]).decode()
    return "".join(lines)


def lines_since(revision: str, file: Path) -> set[int]:
    """Return the lines of a file that a commit did not have."""
    command = ["git", "diff", "-U0", revision, "--", str(file)]
    diff = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    parts = re.findall(r"^@@ .*\+(\d+)(?:,(\d+))? @@", diff, re.MULTILINE)
    return {int(a) + k for a, n in parts for k in range(int(n or 1))}


def _defined(file: Path) -> set[str]:
    kinds = ast.FunctionDef | ast.ClassDef
    return {node.name for node in ast.parse(file.read_text()).body if isinstance(node, kinds)}


def tests_of(file: Path) -> list[str]:
    """Return the test files of the same folder that name a file or what it defines.

    Where there are none: those of the files of the room that import it. The examples of the file
    itself are tests as well.
    """
    parts = file.relative_to(ROOT / "skcalib").parts
    folder, own = ROOT.joinpath("tests", *parts[:-1]), f"test{file.stem}.py"
    users, seen = {file}, {file}
    while users:
        defined = set().union(*map(_defined, users), {user.stem for user in users})
        words = re.compile(rf"\b({'|'.join(sorted(defined))})\b")
        named = {p: len(words.findall(p.read_text())) for p in folder.rglob("test_*.py")}
        found = [path for path, times in named.items() if times or path.name == own]
        if found:
            found.sort(key=lambda path: (path.name != own, -named[path], path))
            return [str(path.relative_to(ROOT)) for path in (*found[:1], file, *found[1:])]
        imports = re.compile(rf"from \.+({'|'.join(user.stem for user in users)}) import")
        of_room = (ROOT / "skcalib" / parts[0]).rglob("*.py")
        users = {path for path in of_room if imports.search(path.read_text())} - seen
        seen |= users
    return []


def fails(tests: list[str], folder: Path) -> bool:
    """Return whether a test fails, or has not ended after ten minutes of the processor.

    The process is a fork of this one, which has imported the libraries already.
    """
    child = os.fork()
    if not child:
        os.chdir(folder)
        os.environ["PYTHONPATH"] = str(folder)
        sys.path[:] = [str(folder), *(path for path in sys.path if path not in ("", str(ROOT)))]
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            os.dup2(nothing, stream)
        resource.setrlimit(resource.RLIMIT_CPU, (600, 600))
        os._exit(pytest.main(["-xq", "-p", "no:cacheprovider", *tests]))
    return os.waitpid(child, 0)[1] != 0


def copy_repository(target: Path) -> None:
    """Copy what tests read: also the guide, the changelog and the results of benchmarks."""
    ignored = shutil.ignore_patterns("_build", "auto_examples", "__pycache__")
    for part in ("skcalib", "tests", "docs", "benchmarks", "examples"):
        shutil.copytree(ROOT / part, target / part, ignore=ignored)
    for part in ("conftest.py", "pyproject.toml", "README.md", "CHANGELOG.md"):
        shutil.copy(ROOT / part, target / part)


def drawn_of(files: list[Path], since: str | None, number: int, seed: int) -> dict[Path, list]:
    """Draw mutants of all files together, each as likely as any other."""
    found = []
    for file in files:
        lines = lines_since(since, file) if since else None
        of_file = mutants(file.read_text())
        found += [(file, one) for one in of_file if lines is None or one[0] in lines]
    drawn: dict[Path, list] = {}
    for file, mutant in random.Random(seed).sample(found, min(number, len(found))):
        drawn.setdefault(file, []).append(mutant)
    return drawn


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("files", nargs="+", type=Path, help="files, or folders of files")
    parser.add_argument("--since", help="a commit: only lines that changed since")
    parser.add_argument(
        "--draw", type=int, default=40, help="mutants drawn, of all files together"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--tests", nargs="+", help="instead of those found by name")
    arguments = parser.parse_args()
    files = []
    for path in map(Path.resolve, arguments.files):
        files += sorted(path.rglob("*.py")) if path.is_dir() else [path]
    drawn = drawn_of(files, arguments.since, arguments.draw, arguments.seed)
    n_killed = n_all = 0
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        copy_repository(copy)
        tests = {file: arguments.tests or tests_of(file) for file in drawn}
        if fails(sorted(set().union(*tests.values())), copy):
            raise SystemExit("The tests must pass without a fault, and they fail.")
        for file, chosen in drawn.items():
            source, target = file.read_text(), copy / file.relative_to(ROOT)
            for mutant in chosen:
                target.write_text(changed(source, mutant))
                killed = bool(tests[file]) and fails(tests[file], copy)
                n_all, n_killed = n_all + 1, n_killed + killed
                if not killed:
                    line = changed(source, mutant).splitlines()[mutant[0] - 1].strip()
                    print(f"survived: {file.relative_to(ROOT)}:{mutant[0]}: {line}", flush=True)
            target.write_text(source)
            print(f"{n_killed} of {n_all} killed after {file.name}", flush=True)
    print(f"{n_killed} of {n_all} killed")


if __name__ == "__main__":
    main()
