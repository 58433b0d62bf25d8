"""Grade a checkout: every exercise, in parallel, one line each, with a total; JUnit XML for a CI server."""

import os
import re
import secrets
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from xml.etree import ElementTree

from course_kernels.lab import exercises
from course_kernels.lab.checking import Verdict, judge
from course_kernels.lab.core.files import exercise_file, trouble

NOT_XML = re.compile(r"[^\t\n\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # characters XML forbids


def grade(report=lambda verdict: None, seed: int | None = None) -> list[Verdict]:
    """A verdict for every exercise in the checkout, in the course's order; `report` is called with each, in
    that order too.

    Every file is judged in processes of its own, so none can stop the run or change another's verdict.
    """
    # All answers are read before the first of them runs.
    folder = tempfile.TemporaryDirectory(prefix="course-grade-")
    for name in exercises.names():
        if exercise_file(name).exists() and not trouble(exercise_file(name)):
            (Path(folder.name) / f"{name}.py").write_bytes(exercise_file(name).read_bytes())

    def one(name: str) -> Verdict:
        copy = Path(folder.name) / f"{name}.py"
        path = copy if copy.exists() else exercise_file(name)
        return judge(name, str(path), secrets.randbits(32) if seed is None else seed)

    verdicts, pool = [], ThreadPoolExecutor(max(2, os.cpu_count() or 2))
    with folder:
        try:
            for verdict in pool.map(one, exercises.names()):
                report(verdict)
                verdicts.append(verdict)
        finally:
            pool.shutdown(cancel_futures=True)  # after Ctrl-C no further one begins
    return verdicts


def junit(verdicts: list[Verdict]) -> str:
    """The verdicts as JUnit XML: a test case an exercise."""
    failed = sum(v.status in ("fail", "todo") for v in verdicts)
    errors = sum(v.status == "error" for v in verdicts)
    seconds = sum(v.seconds for v in verdicts)
    suite = ElementTree.Element(
        "testsuite",
        name="one-load-one-store",
        tests=str(len(verdicts)),
        failures=str(failed),
        errors=str(errors),
        time=f"{seconds:.3f}",
        timestamp=time.strftime("%Y-%m-%dT%H:%M:%S"),
    )
    for v in verdicts:
        case = ElementTree.SubElement(
            suite, "testcase", classname="exercises", name=v.exercise, time=f"{v.seconds:.3f}"
        )
        if v.status != "pass":
            tag = "error" if v.status == "error" else "failure"
            text = NOT_XML.sub("", v.message)
            ElementTree.SubElement(
                case, tag, type=v.mistake or v.status, message=text.split("\n")[0]
            ).text = text
    ElementTree.indent(suite)
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"
