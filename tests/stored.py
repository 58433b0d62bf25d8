"""The course as git has it staged, beside the working copy that a learner may have filled in.

A learner's answers, and the outputs of notebooks that were run, must never turn a test red. So a test that
speaks of notebooks or exercises takes them from git's index (stage your change to test it), and a test that
holds the working copy's exercises to their source asks `edited_exercises` first.
"""

import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NOT_GIT = "this folder is not a git checkout, so there is no record of what was handed out"


def git(*arguments: str, cwd: Path = ROOT) -> str:
    """What a git command prints; raises FileNotFoundError or CalledProcessError without git or a checkout."""
    # A git hook sets GIT_DIR and its kin, which would speak for another folder.
    environment = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    command = ["git", "-C", str(cwd), *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout


def is_checkout(root: Path = ROOT) -> bool:
    """True if root is the top of a git checkout."""
    try:
        return Path(git("rev-parse", "--show-toplevel", cwd=root).strip()) == root
    except (OSError, subprocess.CalledProcessError):
        return False


def stored_files(pattern: str, root: Path = ROOT) -> dict[str, str]:
    """Path → text, as staged, of the files that a git pathspec names; empty outside a checkout."""
    if not is_checkout(root):
        return {}
    names = git("ls-files", "-z", "--", pattern, cwd=root).split("\0")
    return {name: git("show", f":{name}", cwd=root) for name in names if name}


def write_stored(folder: Path, root: Path = ROOT) -> Path:
    """Write every file of the course, as staged, under folder (which must exist); returns folder."""
    git("checkout-index", "--all", f"--prefix={folder}/", cwd=root)
    return folder


def edited_exercises(root: Path = ROOT) -> str | None:
    """A sentence if exercises/ is no longer as committed (or there is nothing to tell it by), else None."""
    if not is_checkout(root):
        return NOT_GIT
    changed = [line[3:] for line in git("status", "--porcelain", "--", "exercises", cwd=root).splitlines()]
    if changed:
        return f"exercises/ holds answers or other changes ({', '.join(changed)})"
    return None
