"""Run a learner's kernel compiled, on the GPU that is here: real shapes, right values, and its bandwidth."""

import torch

from course_kernels.lab.isolation import isolate

SECONDS = 60


def run_file(name: str, path: str, seed: int) -> dict:
    """A job for the compiling server: {"status", "mistake", "parts", "earned", "gpu"}."""
    outcome = isolate(lambda: _run(name, path, seed), seconds=SECONDS, memory_bytes=1 << 42)
    if outcome.kind == "ok":
        return outcome.value
    what = {"timeout": f"did not end within {SECONDS} seconds"}.get(
        outcome.kind, f"ended early: {outcome.value or outcome.code}"
    )
    return _failed(
        "gpu_run", f"On the GPU the kernel {what}.", "", "The interpreter ran it without trouble.", "error"
    )


def _run(name: str, path: str, seed: int) -> dict:
    import numpy as np

    from course_kernels.lab import compiling, sandbox, specs

    compiling.real_gpu()
    exercise = specs.get(name)
    # What the file tries while it is imported, it tries on tensors of the CPU, as everywhere in the course.
    # Compiled kernels refuse those; a statement that raises is left out.
    function = sandbox.load_entry(path, exercise.entry, compiling=True)
    gpu = torch.cuda.get_device_name()
    generator = torch.Generator(device="cuda").manual_seed(seed)
    earned = []
    for rows, columns, dtype in exercise.gpu_shapes:
        x = torch.randn(rows, columns, device="cuda", generator=generator, dtype=torch.float32)
        x = (x * 3 - 20).to(getattr(torch, dtype))
        torch.cuda.synchronize()
        _poison(x)
        try:
            y = function(x)
            torch.cuda.synchronize()
        except Exception as error:
            return _failed(
                "gpu_run",
                f"On the {gpu} the kernel raised {type(error).__name__}: {str(error)[:300]}",
                f"The case: {rows} × {columns} {dtype}.",
            )
        sample = np.unique(np.linspace(0, rows - 1, 64).astype(int))
        taken = torch.from_numpy(sample).cuda()
        case = sandbox.Case("gpu", "random numbers", x[taken].cpu().numpy())
        wanted = exercise.expected(case.x)
        allowed = exercise.tolerance(case, wanted)
        outputs = y if isinstance(y, tuple) else (y,)
        for output, want, most in zip(outputs, wanted, allowed, strict=True):
            got = output[taken].cpu().numpy().astype(np.float64)
            bad = ~(np.abs(got - want) <= most)
            if bad.any():
                row = int(sample[np.flatnonzero(bad.reshape(len(sample), -1).any(axis=1))[0]])
                return _failed(
                    "gpu_values",
                    f"The interpreter's values are right, and those of the {gpu} are not.",
                    f"The case: {rows} × {columns} {dtype}, random numbers; row {row} is wrong.",
                    "Programs and lanes run side by side on a GPU: one may read what another has not "
                    "written yet.",
                )
        earned.append(_bandwidth(exercise, function, x, outputs, gpu))
    return {"status": "pass", "mistake": None, "parts": {}, "earned": earned, "gpu": gpu}


def _poison(x) -> None:
    """Leave NaN in the memory that the allocator hands out next."""
    for _ in range(2):
        torch.full_like(x, float("nan"))


def _bandwidth(exercise, function, x, outputs, gpu: str) -> str:
    from triton.testing import do_bench

    y = torch.empty_like(x)
    moved = x.nbytes + sum(
        o.nbytes for o in outputs
    )  # each byte counted once, whatever the kernel reads again
    mine = do_bench(lambda: function(x), return_mode="median")
    copy = do_bench(lambda: y.copy_(x), return_mode="median")
    rate, roof = moved / mine / 1e6, 2 * x.nbytes / copy / 1e6
    dtype = str(x.dtype).removeprefix("torch.")
    return (
        f"On this {gpu}, {x.shape[0]} × {x.shape[1]} {dtype}: {rate:,.0f} GB/s, {rate / roof:.0%} of a copy "
        f"({roof:,.0f} GB/s)."
    )


def _failed(mistake: str, what: str, case: str = "", why: str = "", status: str = "fail") -> dict:
    parts = {"what": what, "case": case, "why": why, "next": ""}
    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else "GPU"
    return {"status": status, "mistake": mistake, "parts": parts, "earned": [], "gpu": gpu}
