"""What a release consists of says the same everywhere."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from runpy import run_path

import pytest

import skcalib


@pytest.fixture
def project(repository):
    return tomllib.loads((repository / "pyproject.toml").read_text())["project"]


def test_one_version(repository):
    for file, line in [("CITATION.cff", "version: {}"), ("conda/recipe.yaml", '  version: "{}"')]:
        assert line.format(skcalib.__version__) in (repository / file).read_text().splitlines()
    assert f"## {skcalib.__version__} (" in (repository / "CHANGELOG.md").read_text()


def test_the_recipe_for_conda_has_the_same_requirements(repository, project):
    run = (repository / "conda/recipe.yaml").read_text().partition("  run:\n")[2]
    listed = re.findall(r"^    - (.*)$", run.partition("\n\n")[0], re.MULTILINE)
    wanted = [f"python {project['requires-python']}"]
    wanted += [requirement.replace(">=", " >=") for requirement in project["dependencies"]]
    assert listed == wanted


def test_builds_and_readers_start_from_the_same_versions(repository):
    settings = tomllib.loads((repository / "pyproject.toml").read_text())
    oldest = settings["project"]["requires-python"].removeprefix(">=")
    assert settings["tool"]["mypy"]["python_version"] == oldest
    recipe = (repository / "conda/recipe.yaml").read_text()
    builder = settings["build-system"]["requires"][0].replace(">=", " >=")
    assert f"  host:\n    - python {oldest}.*\n    - pip\n    - {builder}\n" in recipe
    for page in ("README.md", "docs/getting_started.rst"):
        assert f"Python {oldest} or later" in (repository / page).read_text()
    jobs = (repository / ".github/workflows/ci.yml").read_text()
    tested = set(re.findall(r'python: "([\d.]+)", resolution', jobs))
    classified = re.findall(r"Python :: (3\.\d+)", " ".join(settings["project"]["classifiers"]))
    assert tested == set(classified)
    assert f'python: "{oldest}", resolution: lowest-direct' in jobs


def test_the_paper_has_the_figures_of_the_page_of_evidence(repository):
    paper = run_path(str(repository / "paper/build.py"))["paper"]()
    judged = re.search(
        r"judges (\d+) main.*Of these, (\d+) hold; hold with a smaller\seffect than published: "
        r"(\d+); hold in part: (\d+); are undecided: (\d+); do not hold in this setting: (\d+)",
        paper,
        re.DOTALL,
    )
    total, *parts = map(int, judged.groups())
    assert total == sum(parts) > 0
    assert not re.search("@[A-Z]+@", paper)
    cited = set(re.findall(r"@([a-z][\w-]*)", paper.partition("# Summary")[2]))
    assert cited == set(
        re.findall(r"^@\w+\{([\w-]+),", (repository / "paper/paper.bib").read_text(), re.M)
    )


def test_pictures_of_the_readme_are_shown_on_pypi(repository):
    pictures = re.findall(r"!\[[^]]*\]\(([^)]*)\)", (repository / "README.md").read_text())
    assert pictures
    assert all(picture.startswith("https://") for picture in pictures)


def test_errors_name_extras_that_exist(repository, project):
    text = "".join(path.read_text() for path in (repository / "skcalib").rglob("*.py"))
    extras = set(re.findall(r'import_optional\([^()]*extra="([^"]+)"', text))
    assert extras
    assert extras <= set(project["optional-dependencies"])


@pytest.mark.long
@pytest.mark.slow
def test_a_file_of_tests_that_cannot_be_imported_is_an_error(repository, tmp_path):
    """The search for examples imports it first, and pytest would go on with half a module."""
    for name in ("conftest.py", "pyproject.toml"):
        shutil.copy(repository / name, tmp_path)
    (tmp_path / "tests").mkdir()
    test = "\n\n\ndef test_it():\n    assert True\n"
    (tmp_path / "tests" / "test_good.py").write_text(f"import skcalib{test}")
    (tmp_path / "tests" / "test_bad.py").write_text(f"from skcalib.utils import _not_there{test}")
    options = ["-q", "-p", "no:cacheprovider", "--continue-on-collection-errors", "tests"]
    command = [sys.executable, "-m", "pytest", *options]
    environment = os.environ | {"PYTHONPATH": str(repository)}
    run = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    output = run.stdout + run.stderr
    assert run.returncode == pytest.ExitCode.TESTS_FAILED, output
    assert "ERROR tests/test_bad.py" in output
    assert "1 passed, 1 error" in output
