"""Run a learner's kernel compiled, on the GPU that is here: the values of some rows, and its bandwidth."""

import numpy as np
import torch
from triton import knobs

from course_kernels.lab.run import driver
from course_kernels.lab.run.cases import encode
from course_kernels.lab.run.limits import isolate
from course_kernels.lab.run.loading import load_entry

SECONDS = 60
SAMPLE = 64  # rows of each matrix whose values are reported


def run_shapes(path: str, entry: str, shapes, seed: int) -> dict:
    """Call the entry on a random matrix of each (rows, columns, dtype), in a child process.

    Returns {"stopped": "" or why no answer came, "gpu": its name, "runs": a dict a shape}: "case" (the shape
    and dtype as text), "error" ("" or what was raised; then nothing follows), "rows" (the numbers of the
    sampled rows), "x" and "outputs" (their values), and "rate" and "copy" (GB/s: each byte of the input and
    the outputs counted once, and a copy of the input).
    """
    outcome = isolate(lambda: _run(path, entry, shapes, seed), seconds=SECONDS, memory_bytes=1 << 42)
    if outcome.kind == "ok":
        return {"stopped": ""} | outcome.value
    why = f"did not end within {SECONDS} seconds" if outcome.kind == "timeout" else None
    why = why or f"ended early: {outcome.value or outcome.code}"
    return {"stopped": why, "gpu": "GPU", "runs": []}  # CUDA must not start in the process that forked


def _run(path: str, entry: str, shapes, seed: int) -> dict:
    driver.real_gpu()
    knobs.runtime.interpret = False  # whatever the file sets in the environment
    # What the file tries while it is imported, it tries on tensors of the CPU, as everywhere in the course.
    # Compiled kernels refuse those; a statement that raises is left out.
    function = load_entry(path, entry, compiling=True)
    generator = torch.Generator(device="cuda").manual_seed(seed)
    runs = []
    for rows, columns, dtype in shapes:
        x = torch.randn(rows, columns, device="cuda", generator=generator, dtype=torch.float32)
        x = (x * 3 - 20).to(getattr(torch, dtype))
        run = {"case": f"{rows} × {columns} {dtype}", "error": ""}
        runs.append(run)
        torch.cuda.synchronize()
        for _ in range(2):  # NaN in the memory that the allocator hands out next
            torch.full_like(x, float("nan"))
        try:
            returned = function(x)
            torch.cuda.synchronize()
        except Exception as error:
            run["error"] = f"{type(error).__name__}: {str(error)[:300]}"
            break
        sample = np.unique(np.linspace(0, rows - 1, SAMPLE).astype(int))
        taken = torch.from_numpy(sample).cuda()
        outputs = returned if isinstance(returned, tuple) else (returned,)
        run["rows"] = sample.tolist()
        run["x"] = encode(x[taken].cpu().numpy())
        run["outputs"] = [encode(output[taken].cpu().numpy()) for output in outputs]
        run["rate"], run["copy"] = _bandwidth(function, x, outputs)
    return {"gpu": torch.cuda.get_device_name(), "runs": runs}


def _bandwidth(function, x, outputs) -> tuple[float, float]:
    """GB/s of the function, and of a copy of its input."""
    from triton.testing import do_bench

    y = torch.empty_like(x)
    moved = x.nbytes + sum(output.nbytes for output in outputs)  # once, whatever the kernel reads again
    mine = do_bench(lambda: function(x), return_mode="median")
    copy = do_bench(lambda: y.copy_(x), return_mode="median")
    return moved / mine / 1e6, 2 * x.nbytes / copy / 1e6
