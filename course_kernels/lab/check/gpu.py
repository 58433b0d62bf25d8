"""The verdict on a kernel that ran compiled, on the GPU that is here."""

import numpy as np

from course_kernels.lab.run.cases import Case, decode
from course_kernels.lab.run.on_gpu import run_shapes


def judged_on_gpu(exercise, path: str, seed: int) -> dict:
    """{"status", "mistake", "parts", "earned", "gpu"} of an answer, on this machine's GPU; compile mode."""
    facts = run_shapes(path, exercise.entry, exercise.gpu_shapes, seed)
    gpu, earned = facts["gpu"], []
    if facts["stopped"]:
        why = "The interpreter ran it without trouble."
        return _failed(gpu, "gpu_run", f"On the GPU the kernel {facts['stopped']}.", "", why, "error")
    for run in facts["runs"]:
        if run["error"]:
            what = f"On the {gpu} the kernel raised {run['error']}"
            return _failed(gpu, "gpu_run", what, f"The case: {run['case']}.")
        row = _wrong_row(exercise, run)
        if row is not None:
            return _failed(
                gpu,
                "gpu_values",
                f"The interpreter's values are right, and those of the {gpu} are not.",
                f"The case: {run['case']}, random numbers; row {row} is wrong.",
                "Programs and lanes run side by side on a GPU: one may read what another has not written "
                "yet.",
            )
        share = run["rate"] / run["copy"]
        earned.append(
            f"On this {gpu}, {run['case']}: {run['rate']:,.0f} GB/s, {share:.0%} of a copy "
            f"({run['copy']:,.0f} GB/s)."
        )
    return {"status": "pass", "mistake": None, "parts": {}, "earned": earned, "gpu": gpu}


def _wrong_row(exercise, run: dict) -> int | None:
    """The number of the first sampled row that is wrong; None if all are right."""
    case = Case("gpu", "random numbers", decode(run["x"]))
    wanted = as_tuple(exercise.oracle(case.x))
    for got, want, most in zip(
        run["outputs"], wanted, as_tuple(exercise.tolerance(case, wanted)), strict=True
    ):
        bad = ~(np.abs(decode(got).astype(np.float64) - want) <= most)
        if bad.any():
            rows = bad.reshape(len(bad), -1).any(axis=1)
            return run["rows"][int(np.flatnonzero(rows)[0])]
    return None


def as_tuple(arrays) -> tuple:
    return arrays if isinstance(arrays, tuple) else (arrays,)


def _failed(gpu: str, mistake: str, what: str, case: str = "", why: str = "", status: str = "fail") -> dict:
    parts = {"what": what, "case": case, "why": why, "next": ""}
    return {"status": status, "mistake": mistake, "parts": parts, "earned": [], "gpu": gpu}
