"""Lint: ruff over the code; the rooms' imports; ruff over the notebooks as git has them, without outputs.

A learner's working copy of a notebook holds outputs and answers, and that is as it should be; what git
stores must hold neither. So notebooks are taken from git's index: stage a notebook to have it linted.

    python scripts/lint.py [code | imports | notebooks]
"""

import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def run(*command: str, cwd: Path) -> bool:
    """Run a command that prints what it finds; whether it found nothing."""
    return subprocess.run([sys.executable, "-m", *command], cwd=cwd).returncode == 0


def ruff(folder: Path, *exclude: str) -> bool:
    concise = "--output-format=concise"
    excluded = [f"--exclude={pattern}" for pattern in exclude]
    checked = run("ruff", "check", concise, "--quiet", *excluded, ".", cwd=folder)
    return run("ruff", "format", "--check", concise, *excluded, ".", cwd=folder) and checked


def lint_code() -> bool:
    return ruff(ROOT, "*.ipynb", ".venv", ".venvs")


def lint_imports() -> bool:
    """Hold the contract in pyproject.toml: which room of the lab may import which."""
    command = "from importlinter.cli import lint_imports_command as main; main(['--no-cache', '--no-logo'])"
    done = subprocess.run([sys.executable, "-c", command], cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        print(done.stdout + done.stderr)
    return done.returncode == 0


def lint_notebooks() -> bool:
    git = ["git", "-C", str(ROOT)]
    listed = subprocess.run([*git, "ls-files", "-z", "--", "*.ipynb"], capture_output=True, text=True)
    if listed.returncode:
        print("Notebooks not linted: this folder is not a git checkout.")
        return True
    names = [name for name in listed.stdout.split("\0") if name]
    if not names:
        return True
    with tempfile.TemporaryDirectory() as folder:
        staged = [*git, "checkout-index", f"--prefix={folder}/", "--", "pyproject.toml", *names]
        subprocess.run(staged, check=True)
        # nbstripout names a notebook that stores outputs, execution counts or widget state.
        clean = run("nbstripout", "--keep-id", "--verify", *names, cwd=Path(folder))
        return ruff(Path(folder)) and clean


def main(what: str | None = None) -> int:
    parts = {"code": lint_code, "imports": lint_imports, "notebooks": lint_notebooks}
    if what is not None and what not in parts:
        print(
            f"There is no {what!r} to lint: say code, imports, notebooks, or nothing for all.",
            file=sys.stderr,
        )
        return 2
    clean = [part() for name, part in parts.items() if what in (None, name)]
    if all(clean):
        return 0
    print("The lines above say what to fix; `ruff check --fix`, `ruff format` and `nbstripout` fix most.")
    return 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:2]))
