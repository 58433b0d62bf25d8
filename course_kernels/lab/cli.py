"""`python -m course_kernels.lab …`: the checker and the measurements from a shell.

Exit status: 0 passed; 1 not passed; 2 misused, or a file could not be written; 130 stopped with Ctrl-C;
141 if nobody read to the end, as in `… | head -1`.

With COURSE_LAB_DEBUG=1 in the environment a fault of the checker itself shows its traceback, as it always
does under `check --file`.
"""

import argparse
import json
import os
import sys
from pathlib import Path

MISUSED = 2
STOPPED, NOBODY_READS = 130, 141  # what a shell reports of a program that Ctrl-C, or a closed pipe, ended


def main(arguments: list[str] | None = None) -> int:
    try:
        status = _main(arguments)
        sys.stdout.flush()
        return status
    except KeyboardInterrupt:
        print("Stopped.", file=sys.stderr)
        return STOPPED
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is left goes there, at exit
        if isinstance(error, BrokenPipeError):  # `… | head` has seen enough
            return NOBODY_READS
        print(f"It could not be written: {error.strerror or error}.", file=sys.stderr)
        return MISUSED


def _main(arguments: list[str] | None) -> int:
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="replace")  # a terminal that cannot show −∞ gets a question mark
    parser = _parser()
    options, rest = parser.parse_known_args(arguments)
    if rest and options.command != "bench":
        parser.error(f"unknown arguments: {' '.join(rest)}")
    try:
        return options.run(options, rest)
    except (KeyError, ValueError, FileNotFoundError) as error:
        text = error.args[0] if isinstance(error, KeyError) and error.args else str(error)
        print(text, file=sys.stderr)
        return MISUSED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m course_kernels.lab", description="One Load, One Store.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def command(name, run, help):
        made = commands.add_parser(name, help=help, add_help=name != "bench")
        made.set_defaults(run=run)
        return made

    one = command("check", _check, "check one exercise")
    one.add_argument("name", metavar="NAME")
    one.add_argument(
        "--file", metavar="PATH", help="judge this file; a fault of the checker shows its traceback"
    )
    one.add_argument("--seed", type=int, help="for the random inputs (default: fresh ones)")
    one.add_argument("--json", action="store_true")
    command("list", _list, "the exercises, and how far you are").add_argument("--json", action="store_true")
    for name, run, text in (("hint", _hint, "the next hint"), ("solution", _solution, "the solution")):
        made = command(name, run, f"{text} for an exercise")
        made.add_argument("name", metavar="NAME")
        if name == "solution":
            made.add_argument("--anyway", action="store_true", help="also before a pass or three attempts")
    count = command("traffic", _traffic, "count what a kernel loads and stores")
    count.add_argument("name", metavar="NAME", help="a kernel module, an exercise, torch or eager")
    count.add_argument("--rows", type=int, required=True, metavar="M")
    count.add_argument("--cols", type=int, required=True, metavar="N")
    count.add_argument("--dtype", default="float32")
    count.add_argument("--json", action="store_true")
    every = command("grade", _grade, "check every exercise of this checkout")
    every.add_argument("--junit", metavar="FILE", help="write the result as JUnit XML")
    every.add_argument("--seed", type=int)
    every.add_argument("--json", action="store_true")
    command("bench", _bench, "measure the kernels on a GPU (bench --help)")
    command("stubs", _stubs, "write the stubs that are missing in exercises/")
    new = command("new", _new, "write the files of a new exercise")
    new.add_argument("name", metavar="NAME")
    new.add_argument("--notebook", default="", help="whose end its cells are added to (default: the last)")
    new.add_argument("--after", default="", metavar="EXERCISE", help="that it follows (default: the last)")
    command("doctor", _doctor, "is everything here that the course needs?").add_argument(
        "--json", action="store_true"
    )
    return parser


def _check(options, rest) -> int:
    if options.file:
        os.environ["COURSE_LAB_DEBUG"] = "1"  # whoever names a file works on the course
    from course_kernels.lab.run import forkserver

    if options.file or not _as_handed_out(options.name):
        forkserver.start(*forkserver.MODES)  # it imports torch while this process imports the rest
    from course_kernels.lab.checking import check

    verdict = check(options.name, options.file, options.seed)
    print(json.dumps(verdict.json()) if options.json else verdict.plain())
    return 0 if verdict.status == "pass" else 1


def _as_handed_out(name: str) -> bool:
    """True for an exercise that there is, and whose file is a stub or is not there."""
    from course_kernels.lab import exercises
    from course_kernels.lab.core.files import exercise_file
    from course_kernels.lab.exercises import stubs

    path = exercise_file(name)
    return name not in exercises.names() or stubs.standing(exercises.get(name), str(path)) is not None


def _list(options, rest) -> int:
    from course_kernels.lab import checking, exercises
    from course_kernels.lab.core import progress

    if options.json:
        every = [exercises.get(name) for name in exercises.names()]
        rows = [
            {"exercise": e.name, "notebook": e.notebook, "brief": e.brief} | progress.of(e.name)
            for e in every
        ]
        print(json.dumps(rows))
    else:
        print(checking.progress().plain())
    return 0


def _hint(options, rest) -> int:
    from course_kernels.lab.checking import hint

    print(hint(options.name).plain())
    return 0


def _solution(options, rest) -> int:
    from course_kernels.lab.checking import solution

    print(solution(options.name, options.anyway).plain())
    return 0


def _traffic(options, rest) -> int:
    from course_kernels.lab.counting import traffic

    counted = traffic(options.name, options.rows, options.cols, options.dtype)
    if options.json:
        print(json.dumps({"loads": counted.loads, "stores": counted.stores, "bytes": counted.bytes}))
    else:
        print(counted.plain())
    return 0


def _grade(options, rest) -> int:
    from course_kernels.lab.grading import grade, junit

    def line(verdict):
        if not options.json:
            first = verdict.parts.get("what") or verdict.message.split("\n")[0]
            print(f"{verdict.status:5} {verdict.exercise:15} {verdict.seconds:5.1f} s  {first}", flush=True)

    if options.junit and (Path(options.junit).is_dir() or not Path(options.junit).absolute().parent.is_dir()):
        raise ValueError(
            f"--junit names a file to write, in a folder that is there; {options.junit} is none."
        )
    verdicts = grade(line, options.seed)
    passed = sum(v.status == "pass" for v in verdicts)
    if options.junit:
        Path(options.junit).write_text(junit(verdicts), encoding="utf-8")
    if options.json:
        everything = {"passed": passed, "total": len(verdicts), "exercises": [v.json() for v in verdicts]}
        print(json.dumps(everything))
    else:
        print(f"{passed} of {len(verdicts)} passed")
    return 0 if passed == len(verdicts) else 1


def _bench(options, rest) -> int:
    from course_kernels.lab.bench import measure

    return measure.main(rest) or 0


def _stubs(options, rest) -> int:
    from course_kernels.lab.exercises import stubs

    written = stubs.write_all()
    print(
        f"Written: {', '.join(written)}." if written else "Every exercise has its file; nothing was changed."
    )
    return 0


def _new(options, rest) -> int:
    from course_kernels.lab.exercises import skeleton

    print(*skeleton.write(options.name, options.notebook, options.after), sep="\n")
    return 0


def _doctor(options, rest) -> int:
    from course_kernels.lab.doctor import examine

    findings = examine()
    if options.json:
        print(json.dumps(findings))
    else:
        for f in findings:
            print(f"{'ok ' if f['ok'] else 'BAD'} {f['what']}: {f['found']}")
            if not f["ok"]:
                print(f"    {f['advice']}")
    return 0 if all(f["ok"] for f in findings) else 1
