"""Whether the tests notice a fault: one small change at a time, and the tests that should fail.

    python -m benchmarks.mutants skcalib/losses [...] [--since REV] [--draw 200] [--map FILE]

A mutant swaps a comparison, a sum, a minimum, a truth value or a number of a file. It is killed if
a test fails that passes without it, or does not end. `--since` takes only lines that have changed
since a commit. The tests are those of the file's folder that name it or what it defines, and its
examples; or those of `--tests`. With `--map`, they are those of `--tests`, or of all, that run the
line, the nearest first: the file of the map is written where there is none, by running them.
All of it happens in a copy of the repository, so that an interruption leaves nothing behind.

Two kinds of numbers are left alone. Those of named constants are choices: ablations measure them,
or they are sizes of blocks and tolerances of iterations, and a test that pinned one would hold
whatever the number is. Those of messages and annotations compute nothing.
"""

import argparse
import ast
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from hashlib import sha256
from itertools import chain, count, zip_longest
from pathlib import Path

import matplotlib.pyplot  # noqa: F401
import pytest
import scipy.stats  # noqa: F401
import sklearn.ensemble  # noqa: F401
import torch  # noqa: F401
from coverage import CoverageData

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
# A number as small guards against rounding, and does so as well where it is half as large again.
SMALL = 1e-5
# Of tests that run a line, so many of the nearest; and seconds of the processor for all of them.
MOST_TESTS, SECONDS = 150, 300
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
        elif isinstance(node.value, int | float) and not 0 < abs(node.value) < SMALL:
            larger = node.value * 1.5 if isinstance(node.value, float) else node.value + 1
            yield *span, repr(larger or 1.0)  # 1.5 times 0.0 is no other program
    elif isinstance(node, ast.Attribute) and node.attr in NAMES:
        stop = node.end_col_offset
        if node.lineno == node.end_lineno:
            yield node.lineno, stop - len(node.attr), stop, NAMES[node.attr]
    elif isinstance(node, ast.Name) and node.id in NAMES and isinstance(node.ctx, ast.Load):
        yield node.lineno, node.col_offset, node.end_col_offset, NAMES[node.id]


def _is_choice(node: ast.AST) -> bool:
    """Return whether a statement names a number that is computed from nothing."""
    if not isinstance(node, ast.Assign):
        return False
    names = [n.id for target in node.targets for n in ast.walk(target) if isinstance(n, ast.Name)]
    parts = list(ast.walk(node.value))
    return all(map(str.isupper, names)) and not any(isinstance(n, ast.Name) for n in parts)


def mutants(source: str) -> list[Mutant]:
    """Return the changes of a file; annotations, messages and declarations are left alone."""
    tree, lines = ast.parse(source), source.splitlines()
    silent = set()
    for node in ast.walk(tree):
        hidden = [getattr(node, name, None) for name in ("annotation", "returns")]
        if isinstance(node, ast.Raise | ast.ImportFrom | ast.JoinedStr) or _is_choice(node):
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


class Map:
    """Which tests run a line, as `coverage` has written it with a context for each test."""

    def __init__(self, file: Path) -> None:
        self.data = CoverageData(str(file))
        self.data.read()
        self.paths = {path.rpartition("/skcalib/")[2]: path for path in self.data.measured_files()}

    def tests(self, file: Path, line: int) -> list[str]:
        """Return the tests that run a line, those of the file and of its folder first.

        A line that is run when the file is imported belongs to all tests that run the file.
        """
        relative = file.relative_to(ROOT / "skcalib")
        if str(relative) not in self.paths:
            return []
        contexts = self.data.contexts_by_lineno(self.paths[str(relative)])
        lines = _statement(file, line)
        found = {name for n in lines for name in contexts.get(n, ()) if name}
        found = found or {name for names in contexts.values() for name in names if name}
        # What a fixture runs is for more tests than the first one: the file.
        nodes = {
            name.rpartition("|")[0] if name.endswith("|run") else name.partition("::")[0]
            for name in found
        }
        nodes = {
            node for node in nodes if "::" not in node or node.partition("::")[0] not in nodes
        }
        of_file = defaultdict(list)
        for node in sorted(nodes):
            of_file[node.partition("::")[0]].append(node)
        own = f"test{file.stem}.py"
        folder = str(Path("tests", relative.parent))
        near = sorted(of_file, key=lambda p: (Path(p).name != own, not p.startswith(folder), p))
        first = [node for path in near if Path(path).name == own for node in of_file.pop(path)]
        turns = chain.from_iterable(zip_longest(*(of_file[p] for p in near if p in of_file)))
        return [*first, *(node for node in turns if node is not None)][:MOST_TESTS]


def _statement(file: Path, line: int) -> range:
    """Return the lines of the least statement, or head of one, that a line is of."""
    least = range(line, line + 1)
    for node in ast.walk(ast.parse(file.read_text())):
        if not isinstance(node, ast.stmt):
            continue
        body = getattr(node, "body", None)
        stop = body[0].lineno if isinstance(body, list) else node.end_lineno + 1
        if node.lineno <= line < stop:
            least = range(node.lineno, stop)
    return least


class _FirstFailure:
    def __init__(self) -> None:
        self.name = ""

    def _keep(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        if report.failed and not self.name:
            self.name = report.nodeid

    pytest_runtest_logreport = pytest_collectreport = _keep


def failure(tests: list[str], folder: Path) -> str | None:
    """Return the name of a test that fails, or that they did not end in their time.

    The process is a fork of this one, which has imported the libraries already.
    """
    read, write = os.pipe()
    child = os.fork()
    if not child:
        os.chdir(folder)
        os.environ["PYTHONPATH"] = str(folder)
        sys.path[:] = [str(folder), *(path for path in sys.path if path not in ("", str(ROOT)))]
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            os.dup2(nothing, stream)
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
        first = _FirstFailure()
        # A file with examples is read for tests as well: `tested_table` is none.
        options = ["-xq", "-p", "no:cacheprovider", "-o", "python_functions=test_*"]
        status = pytest.main([*options, *tests], plugins=[first])
        os.write(write, (first.name or f"status {int(status)}" if status else "").encode()[:4000])
        os._exit(int(status))
    os.close(write)
    with os.fdopen(read) as answer:
        name = answer.read()
    if os.waitpid(child, 0)[1]:
        return name or "no end"
    return None


_TIMES = count(2**30)


def _write(target: Path, text: str) -> None:
    """Write a file with a time of its own: compiled code of another mutant is not taken for it."""
    target.write_text(text)
    os.utime(target, (now := next(_TIMES), now))


_passing: set[str] = set()


def killer(tests: list[str], folder: Path, target: Path, source: str, other: str) -> str | None:
    """Return what notices a mutant, and does not fail without it."""
    tests = list(tests)
    while tests:
        _write(target, other)
        name = failure(tests, folder)
        _write(target, source)
        if name is None or name in _passing or "." not in name or not failure([name], folder):
            _passing.add(name or "")
            return name
        print(f"left out, since it fails by itself: {name}", flush=True)
        if name not in tests:
            raise SystemExit(f"The tests must pass without a fault, and {name} fails.")
        tests.remove(name)
    return None


def copy_repository(target: Path) -> None:
    """Copy what tests read: also the guide, the changelog and the results of benchmarks."""
    ignored = shutil.ignore_patterns("_build", "auto_examples", "__pycache__")
    for part in ("skcalib", "tests", "docs", "benchmarks", "examples"):
        shutil.copytree(ROOT / part, target / part, ignore=ignored)
    for part in ("conftest.py", "pyproject.toml", "README.md", "CHANGELOG.md"):
        shutil.copy(ROOT / part, target / part)


def drawn_of(files: list[Path], since: str | None, number: int, seed: int) -> dict[Path, dict]:
    """Draw mutants of all files together, each as likely as any other; name and mutant of a file.

    Whether a mutant is drawn depends on its line alone: a change elsewhere draws no others.
    """
    found = []
    for file in files:
        lines = lines_since(since, file) if since else None
        source, seen = file.read_text(), Counter()
        for mutant in mutants(source):
            number_of_line = mutant[0] - 1
            before = source.splitlines()[number_of_line].strip()
            after = changed(source, mutant).splitlines()[number_of_line].strip()
            name = f"{file.relative_to(ROOT)}: {before}  ->  {after}"
            seen[name] += 1
            name += f" ({seen[name]})" if seen[name] > 1 else ""
            if lines is None or mutant[0] in lines:
                place = sha256(f"{seed} {name}".encode()).digest()
                found.append((place, file, name, mutant))
    drawn: dict[Path, dict] = {}
    for _, file, name, mutant in sorted(found)[:number]:
        drawn.setdefault(file, {})[name] = mutant
    return drawn


def write_map(file: Path, folder: Path, tests: list[str]) -> None:
    """Run tests of a copy of the repository, each as a context of its own."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests]
    command += ["-n", str(os.cpu_count()), "--dist", "worksteal"]
    command += ["--cov=skcalib", "--cov-context=test", "--cov-report="]
    environment = {
        "COVERAGE_FILE": str(file),
        "COVERAGE_CORE": "ctrace",
        "PYTHONPATH": str(folder),
    }
    subprocess.run(command, cwd=folder, env=os.environ | environment)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("files", nargs="+", type=Path, help="files, or folders of files")
    parser.add_argument("--since", help="a commit: only lines that changed since")
    parser.add_argument(
        "--draw", type=int, default=40, help="mutants drawn, of all files together"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--tests", nargs="+", help="instead of those found by name, or of all for the map"
    )
    parser.add_argument("--map", type=Path, help="which tests run a line; written if not there")
    parser.add_argument(
        "--results", type=Path, help="file; what it has as killed is not run again"
    )
    arguments = parser.parse_args()
    known = {}
    if arguments.results and arguments.results.exists():
        rows = arguments.results.read_text().splitlines()
        known = {name: by for by, name, *_ in (row.split("\t") for row in rows) if by}
    files = []
    for path in map(Path.resolve, arguments.files):
        files += sorted(path.rglob("*.py")) if path.is_dir() else [path]
    drawn = drawn_of(files, arguments.since, arguments.draw, arguments.seed)
    n_killed = n_all = 0
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        copy_repository(copy)
        if arguments.map and not arguments.map.exists():
            write_map(arguments.map.resolve(), copy, arguments.tests or ["tests", "skcalib"])
        where = Map(arguments.map) if arguments.map else None
        for file, chosen in drawn.items():
            source, target = file.read_text(), copy / file.relative_to(ROOT)
            for name, mutant in chosen.items():
                tests = where.tests(file, mutant[0]) if where else arguments.tests
                tests = tests or tests_of(file)
                other = changed(source, mutant)
                by = known.get(name) or killer(tests, copy, target, source, other)
                n_all, n_killed = n_all + 1, n_killed + (by is not None)
                if by is None:
                    print(f"survived, line {mutant[0]} of {name}", flush=True)
                if arguments.results and name not in known:
                    with arguments.results.open("a") as rows:
                        rows.write(f"{by or ''}\t{name}\n")
            print(f"{n_killed} of {n_all} killed after {file.name}", flush=True)
    print(f"{n_killed} of {n_all} killed")


if __name__ == "__main__":
    main()
