"""The project around the kernels: versions, commands, links, stored notebooks, lint, and set-up."""

import ast
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from urllib.parse import unquote

import pytest
import yaml
from packaging.markers import default_environment
from packaging.requirements import Requirement

import readme_figures
from course_kernels.lab import cli, doctor
from stored import ROOT, edited_exercises, git, stored_files

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
REPOSITORY = PROJECT["project"]["urls"]["Repository"]
PYTHONS = ("3.10", "3.11", "3.12", "3.13")
NOTEBOOKS = {name: json.loads(text) for name, text in stored_files("notebooks/*.ipynb").items()}
PAGES = ("README.md", *(f"docs/{path.name}" for path in sorted((ROOT / "docs").glob("*.md"))))


def requirements(lines) -> list[Requirement]:
    return [Requirement(line) for line in lines if line and not line.startswith("#")]


def on_linux(python: str) -> dict:
    return {**default_environment(), "sys_platform": "linux", "python_version": python, "extra": ""}


def applies(requirement: Requirement, python: str) -> bool:
    return requirement.marker is None or requirement.marker.evaluate(on_linux(python))


def source(cell: dict) -> str:
    return "".join(cell["source"])


RANGES = requirements(
    [*PROJECT["project"]["dependencies"], *sum(PROJECT["project"]["optional-dependencies"].values(), [])]
)
PINS = requirements((ROOT / "constraints.txt").read_text().splitlines())


# Versions


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("wanted", RANGES, ids=lambda requirement: requirement.name)
def test_each_dependency_has_one_tested_version_inside_its_range(wanted, python):
    if not applies(wanted, python):
        return
    pins = [pin for pin in PINS if pin.name == wanted.name and applies(pin, python)]
    assert len(pins) == 1, f"constraints.txt names {len(pins)} versions of {wanted.name} for Python {python}"
    (specifier,) = pins[0].specifier
    assert specifier.operator == "=="
    assert wanted.specifier.contains(specifier.version), f"{pins[0]} lies outside {wanted}"


def test_every_tested_version_is_of_a_dependency():
    assert {pin.name for pin in PINS} == {wanted.name for wanted in RANGES}


def test_python_versions_agree():
    assert PROJECT["project"]["requires-python"] == ">=3.10"
    assert PROJECT["tool"]["ruff"]["target-version"] == "py310"
    assert "(3, 10)" in (ROOT / "scripts" / "setup.sh").read_text()


def test_colab_versions_are_within_the_ranges():
    colab = {pin.name: pin for pin in requirements((ROOT / "constraints-colab.txt").read_text().splitlines())}
    ranges = {wanted.name: wanted for wanted in RANGES}
    for name in ("triton", "numpy", "matplotlib", "ipywidgets", "ipykernel", "nbclient"):
        (specifier,) = colab[name].specifier
        assert ranges[name].specifier.contains(specifier.version), (
            f"Colab's {colab[name]} is outside {ranges[name]}"
        )
    assert "jupyterlab" not in colab


def test_torch_and_triton_are_paired_alike_everywhere():
    """One list in the package, a copy in the script that runs before the package can, and the tested pair."""
    (line,) = re.findall(r"^PAIRS = (\{.*\})", (ROOT / "scripts" / "colab.py").read_text(), re.MULTILINE)
    assert ast.literal_eval(line) == doctor.PAIRS
    tested = {pin.name: next(iter(pin.specifier)).version for pin in PINS if pin.name in ("torch", "triton")}
    assert doctor.PAIRS[".".join(tested["torch"].split(".")[:2])] == tested["triton"]


def test_listing_and_grading_of_stubs_import_no_torch(tmp_path):
    for folder in ("exercises", "notebooks"):
        (tmp_path / folder).mkdir()
    (tmp_path / "solutions").symlink_to(ROOT / "solutions")
    script = (
        "import sys\nfrom course_kernels.lab.cli import main\n"
        "codes = [main(words.split()) for words in "
        "('stubs', 'list', 'hint fused_softmax', 'check fused_softmax', 'grade')]\n"
        "print(codes, [name for name in ('torch', 'triton') if name in sys.modules])"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment)
    assert done.stdout.splitlines()[-1] == "[0, 0, 0, 1, 1] []", done.stdout + done.stderr


def test_conda_environment_is_pyprojects():
    environment = yaml.safe_load((ROOT / "environment.yml").read_text())
    conda = environment["dependencies"]
    (pip,) = (entry["pip"] for entry in conda if isinstance(entry, dict))
    options = [line for line in pip if line.startswith("--")]
    assert options == ["--constraint constraints.txt", "--editable ."]
    packages = {str(Requirement(line)) for line in pip if not line.startswith("--")}
    assert packages == {str(Requirement(line)) for line in PROJECT["project"]["dependencies"]}
    (python,) = (entry.removeprefix("python=") for entry in conda if str(entry).startswith("python="))
    assert python in PYTHONS


# Commands


def make_targets() -> set[str]:
    return set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


def test_every_make_command_that_is_written_somewhere_exists():
    written = [*PAGES, ".ci/run", ".github/workflows/test.yml", ".pre-commit-config.yaml", "environment.yml"]
    named = {
        page: set(re.findall(r"\bmake ([a-z]+(?:-[a-z]+)*)\b(?=[ `\n\"])", code(page))) for page in written
    }
    assert {"lab", "test"} <= named["README.md"]
    assert named[".ci/run"] == {"test"}
    for page, targets in named.items():
        assert targets <= make_targets(), f"{page} names {targets - make_targets()}"


def code(page: str) -> str:
    """The parts of a page that are code: the whole file, or Markdown's code spans and blocks."""
    text = (ROOT / page).read_text()
    if not page.endswith(".md"):
        return re.sub(r"(?m)^\s*#.*", "", text)
    return "\n".join(re.findall(r"```.*?```|`[^`\n]+`", text, re.DOTALL))


def test_every_lab_command_that_is_written_somewhere_is_understood():
    parser = cli._parser()
    written = re.findall(
        r"python -m course_kernels\.lab (\w[^#`\n]*)", "\n".join(map(code, [*PAGES, "Makefile"]))
    )
    assert len(written) >= 8
    for command in written:
        options, rest = parser.parse_known_args(shlex.split(command))
        assert not rest or options.command == "bench", command


def test_continuous_integration_and_hooks_run_files_that_exist():
    workflow = yaml.safe_load((ROOT / ".github/workflows/test.yml").read_text())
    steps = [step.get("run", "") for job in workflow["jobs"].values() for step in job["steps"]]
    assert "bash .ci/run" in steps
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"][0]["hooks"]
    assert [hook["entry"].split()[1:] for hook in hooks] == [
        ["scripts/lint.py", "code"],
        ["scripts/lint.py", "imports"],
        ["scripts/lint.py", "notebooks"],
    ]


def test_licence_is_mit():
    licence = (ROOT / "LICENSE").read_text()
    assert licence.startswith("MIT License") and "One Load, One Store contributors" in licence
    assert PROJECT["project"]["license"] == "MIT"


def test_readme_figures_are_the_recorded_ones():
    readme = readme_figures.README.read_text()
    assert readme_figures.with_figures(readme) == readme, "run python scripts/readme_figures.py"


# Links


def links(text: str) -> list[str]:
    text = re.sub(r"```.*?```|`[^`\n]*`", "", text, flags=re.DOTALL)
    inline = re.findall(r"\]\(<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\)", text)
    reference = re.findall(r"^\[[^\]]+\]:\s*(\S+)", text, re.MULTILINE)
    return inline + reference + re.findall(r"(?:src|href)=\"([^\"]+)\"", text)


def anchors(text: str) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ +(.+?)\s*$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken_links(page: Path, text: str) -> list[str]:
    """The links of a page that lead nowhere in this repository; links elsewhere are not followed."""
    ours = re.compile(
        r"https://(?:github\.com|colab\.research\.google\.com/github)/" + address() + r"(?:/blob/main/(.+))?$"
    )
    broken = []
    for link in links(text):
        place, _, anchor = link.partition("#")
        if re.match(r"[a-z]+:", place):
            match = ours.match(place)
            if address() in place and not match:
                broken.append(link)
            if match and match[1] and not (ROOT / match[1]).exists():
                broken.append(link)
            continue
        target = page.parent / unquote(place) if place else page
        if not target.exists():
            broken.append(link)
        elif anchor and target.suffix == ".md" and anchor not in anchors(target.read_text()):
            broken.append(link)
    return broken


def address() -> str:
    return REPOSITORY.removeprefix("https://github.com/")


def test_broken_links_are_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        f"# One Two\n[a](page.md) [b](#one-two) [c](gone.md) [d](#three) ![e](gone.png) `[f](code.md)`\n"
        f"[g]({REPOSITORY}/blob/main/README.md) [h]({REPOSITORY}/blob/main/gone.md) [i](https://example.org/x)\n"
        f"[j]: gone.txt\n"
    )
    expected = ["gone.md", "#three", "gone.png", f"{REPOSITORY}/blob/main/gone.md", "gone.txt"]
    assert broken_links(page, page.read_text()) == expected


@pytest.mark.parametrize("page", PAGES)
def test_links_of_a_page_lead_somewhere(page):
    assert broken_links(ROOT / page, (ROOT / page).read_text()) == []


def test_the_repositorys_address_is_the_same_everywhere():
    for page in PAGES:
        for found in re.findall(r"github(?:\.com)?/([\w.-]+/course)\b", (ROOT / page).read_text()):
            assert found == address(), page


# Notebooks, as git stores them

notebooks = pytest.mark.parametrize("name", NOTEBOOKS)


@notebooks
def test_notebook_is_stored_without_outputs_or_widget_state(name):
    notebook = NOTEBOOKS[name]
    # The last two ask Colab for a GPU.
    assert set(notebook["metadata"]) <= {"kernelspec", "language_info", "accelerator", "colab"}
    for cell in notebook["cells"]:
        assert not cell.get("outputs") and not cell.get("execution_count"), source(cell)


@notebooks
def test_notebook_has_stable_cell_ids(name):
    notebook = NOTEBOOKS[name]
    assert (notebook["nbformat"], notebook["nbformat_minor"]) >= (4, 5)
    ids = [cell["id"] for cell in notebook["cells"]]
    assert len(set(ids)) == len(ids)


@notebooks
def test_notebook_names_no_path_of_a_machine(name):
    text = json.dumps(NOTEBOOKS[name])
    assert re.findall(r"(?<![\w.])/(?:home|root|Users|tmp|work)/\w+|[A-Z]:\\\\+\w+", text) == []


@notebooks
def test_pictures_in_a_notebooks_text_have_alt_text(name):
    for cell in NOTEBOOKS[name]["cells"]:
        if cell["cell_type"] == "markdown":
            assert not re.search(r"!\[\s*\]\(", source(cell)), source(cell)
            assert not re.search(r"<img(?![^>]*\balt=\"[^\"]+\")", source(cell)), source(cell)


@notebooks
def test_links_of_a_notebook_lead_somewhere(name):
    text = "\n".join(source(cell) for cell in NOTEBOOKS[name]["cells"] if cell["cell_type"] == "markdown")
    assert broken_links(ROOT / name, text) == []


def test_set_up_cell_is_the_same_in_all_notebooks():
    cells = {
        name: next(source(cell) for cell in notebook["cells"] if cell["cell_type"] == "code")
        for name, notebook in NOTEBOOKS.items()
    }
    assert len(set(cells.values())) <= 1, sorted(cells)
    for cell in cells.values():
        assert REPOSITORY in cell
        assert not re.search(r"ipywidgets|ipython|numpy|--upgrade|-U\b", cell, re.IGNORECASE)


def test_readme_names_every_notebook():
    for name in NOTEBOOKS:
        assert f"`{Path(name).stem}`" in (ROOT / "README.md").read_text()


# Lint and set-up


@pytest.fixture
def copy(tmp_path) -> Path:
    """A small git repository with the project's set-up and lint, one notebook and one exercise."""
    folder = tmp_path / "a course"  # a path with a space, as people have
    folder.mkdir()
    for name in ("scripts", "notebooks", "exercises"):
        (folder / name).mkdir()
    versions = ("pyproject.toml", "constraints.txt", "constraints-colab.txt")
    for name in (*versions, "scripts/setup.sh", "scripts/lint.py"):
        shutil.copy(ROOT / name, folder / name)
    (folder / "exercises" / "one.py").write_text("...\n")
    write_notebook(folder, "x = 1", outputs=[])
    git("init", "-q", cwd=folder)
    git("add", ".", cwd=folder)
    git("-c", "user.name=a", "-c", "user.email=a@b.c", "commit", "-q", "-m", "handed out", cwd=folder)
    return folder


def write_notebook(folder: Path, code: str, outputs: list) -> None:
    cell = {"cell_type": "code", "id": "one", "metadata": {}, "source": [code], "outputs": outputs}
    cell["execution_count"] = 1 if outputs else None
    notebook = {"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    (folder / "notebooks" / "one.ipynb").write_text(json.dumps(notebook, indent=1) + "\n")


def lint(folder: Path, what: str) -> subprocess.CompletedProcess:
    command = [sys.executable, "scripts/lint.py", what]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


OUTPUT = [{"output_type": "stream", "name": "stdout", "text": ["1\n"]}]


def test_lint_of_notebooks_ignores_what_a_learner_ran_and_sees_what_is_staged(copy):
    assert lint(copy, "notebooks").returncode == 0
    write_notebook(copy, "x=1", OUTPUT)
    assert lint(copy, "notebooks").returncode == 0
    git("add", ".", cwd=copy)
    assert lint(copy, "notebooks").returncode == 1
    write_notebook(copy, "import os", [])
    git("add", ".", cwd=copy)
    unused = lint(copy, "notebooks")
    assert unused.returncode == 1 and "F401" in unused.stdout


def test_lint_of_code_leaves_the_learners_files_alone(copy):
    (copy / "exercises" / "one.py").write_text("import os;x =1\n")
    assert lint(copy, "code").returncode == 0
    (copy / "scripts" / "new.py").write_text("import os;x =1\n")
    assert lint(copy, "code").returncode == 1


def test_edited_exercises_are_noticed(copy):
    assert edited_exercises(copy) is None
    (copy / "exercises" / "one.py").write_text("answer\n")
    assert "exercises/one.py" in edited_exercises(copy)
    assert edited_exercises(copy / "exercises") is not None  # not the top of a checkout: nothing to tell by


def set_up(folder: Path, commands: dict[str, str]) -> subprocess.CompletedProcess:
    """Run set-up where the given commands stand in for the real ones."""
    fakes = folder / "fakes"
    fakes.mkdir(exist_ok=True)
    for name, body in commands.items():
        (fakes / name).write_text(f"#!/bin/sh\n{body}\n")
        (fakes / name).chmod(0o755)
    environment = {"PATH": f"{fakes}{os.pathsep}{os.environ['PATH']}", "HOME": str(folder)}
    command = ["/bin/sh", "scripts/setup.sh", ".venv", "-c", "constraints.txt", "-e", "."]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=60)


OLD = {
    name: "[ $1 = --version ] && echo Python 3.9.2; exit 1"
    for name in ("python3", "python3.10", "python3.11")
}
OLD |= {name: OLD["python3"] for name in ("python3.12", "python3.13")}


@pytest.mark.parametrize(
    ("commands", "said"),
    [
        ({"uname": "echo Darwin"}, ("macOS", "colab.research.google.com/github/")),
        ({"uname": "echo MINGW64_NT-10.0"}, ("Windows", "WSL", "colab.research.google.com/github/")),
        ({"uname": "echo FreeBSD"}, ("FreeBSD", "colab.research.google.com/github/")),
        (OLD, ("Python 3.10 or newer", "Python 3.9.2")),
        ({"python3": '[ "$2" = "import ensurepip, venv" ] && exit 1; exit 0'}, ("python3-venv",)),
    ],
    ids=["macos", "windows", "other", "old-python", "no-venv"],
)
def test_set_up_says_what_is_missing_before_it_changes_anything(copy, commands, said):
    result = set_up(copy, commands)
    assert result.returncode == 1
    assert result.stdout == "" and len(result.stderr.splitlines()) == 1
    for words in said:
        assert words in result.stderr
    assert not (copy / ".venv").exists()


# A Python whose environments hold a Python that notes what pip was asked for, and does what pip.sh says.
FAKE_PYTHON = """
case "$*" in
    --version) echo Python 3.12.1 ;;
    "-m venv"*)
        mkdir -p .venv/bin
        echo "$PWD/.venv" >.venv/bin/activate
        cp pip.sh .venv/bin/python
        chmod +x .venv/bin/python ;;
esac"""
FAKE_PIP = '#!/bin/sh\ncase "$*" in *"pip install"*) echo "$*" >>pip.log; exit {status} ;; esac\n'


def test_set_up_installs_once_and_again_when_versions_change(copy):
    (copy / "pip.sh").write_text(FAKE_PIP.format(status=0))
    log = copy / "pip.log"
    assert set_up(copy, {"python3": FAKE_PYTHON}).returncode == 0
    assert log.read_text().splitlines() == [
        "-m pip install --disable-pip-version-check -c constraints.txt -e ."
    ]
    again = set_up(copy, {"python3": FAKE_PYTHON})
    assert (again.returncode, again.stdout) == (0, "")
    assert len(log.read_text().splitlines()) == 1
    with open(copy / "constraints.txt", "a") as constraints:
        constraints.write("# changed\n")
    assert set_up(copy, {"python3": FAKE_PYTHON}).returncode == 0
    assert len(log.read_text().splitlines()) == 2


def test_set_up_that_was_interrupted_goes_on(copy):
    (copy / "pip.sh").write_text(FAKE_PIP.format(status=1))
    failed = set_up(copy, {"python3": FAKE_PYTHON})
    assert failed.returncode == 1 and "run the same command again" in failed.stderr
    (copy / ".venv" / "bin" / "python").unlink()  # as after an interrupt
    (copy / "pip.sh").write_text(FAKE_PIP.format(status=0))
    assert set_up(copy, {"python3": FAKE_PYTHON}).returncode == 0


def test_the_tested_versions_are_what_make_test_runs_on():
    if Path(sys.prefix) != ROOT / ".venv":
        pytest.skip("not run in the environment that make test makes")
    python = "{}.{}".format(*sys.version_info)
    for pin in PINS:
        if pin.name in ("torch", "triton", "numpy", "ipywidgets", "jupyterlab") and applies(pin, python):
            assert pin.specifier.contains(version(pin.name)), f"{pin}, and {version(pin.name)} is installed"
