"""compile_report("fused_row", (4, 1024)): what the real compiler makes of a kernel, for GPUs that are not
here.
"""

from course_kernels.lab import exercises
from course_kernels.lab.core.files import KERNELS, exercise_file
from course_kernels.lab.run import forkserver
from course_kernels.lab.show.picture import Display, Table
from course_kernels.lab.show.widgets import OccupancyExplorer

SECONDS = 90


class CompileReport(Display):
    """Registers, spills, shared memory and occupancy of each kernel that was launched, on each architecture.

    rows: dicts with kernel, gpu, architecture, registers (32-bit, a thread), stack (bytes a thread; above 0
    it spilled), shared (bytes a program), num_warps, occupancy (0 to 1), programs_per_sm, limited_by, error.
    """

    def __init__(self, rows: list[dict], caption: str, error: str = ""):
        self.rows, self.caption, self.error = rows, caption, error

    def row(self, gpu: str, kernel: str | None = None) -> dict:
        """The row of one GPU. KeyError, naming those there are, if it is not in the report."""
        for row in self.rows:
            if row["gpu"] == gpu and kernel in (None, row["kernel"]):
                return row
        raise KeyError(
            f"No {gpu} in this report; there are {', '.join(sorted({r['gpu'] for r in self.rows}))}."
        )

    def table(self) -> Table:
        return compiled_table(self.rows, self.caption)

    def html(self) -> str:
        return self.table().html() + (f"<p>{self.error}</p>" if self.error else "")

    def plain(self) -> str:
        return self.table().plain() + (f"\n{self.error}" if self.error else "")


def compile_report(
    target: str, x_shape=(4, 1024), dtype: str = "float32", architectures=None, **options
) -> CompileReport:
    """Compile what `target` launches on an x of this shape, for five GPUs or the architectures named.

    Args:
        target: a kernel module ("fused_row", …) or an exercise (the learner's file).
        x_shape: (rows, columns). dtype: of x.
        architectures: compute capabilities without the point, such as (75, 90).
        options: block=… and num_warps=… choose those of "fused_row" by hand, past the limits it sets itself.

    Raises:
        ValueError: an unknown target, or options that it does not take.
    """
    entry = "softmax"
    if target in exercises.names():
        exercise = exercises.get(target)
        path, entry = str(exercise_file(target)), exercise.entry
    elif target in KERNELS:
        path = f"course_kernels.{target}"
    else:
        raise ValueError(
            f"Nothing to compile is called {target!r}. There are {', '.join(KERNELS + exercises.names())}."
        )
    if options:
        if target != "fused_row" or options.keys() - {"block", "num_warps"}:
            raise ValueError("Only fused_row takes options here: block=… and num_warps=….")
        path, entry = "course_kernels.lab.exercises.broken.blocks", "fused_row"
    call = {"shape": list(x_shape), "dtype": dtype, "options": options}
    answer = forkserver.submit(
        "compile", "course_kernels.lab.run.compiler:compile_file", path=path, entry=entry, calls=[call],
        architectures=list(architectures) if architectures else None,
    ).result(SECONDS)  # fmt: skip
    rows, columns = x_shape
    return CompileReport(answer["compiled"], f"{target} on {rows} × {columns} {dtype}", answer["error"])


def compiled_table(rows: list[dict], caption: str) -> Table:
    """The table of a compile report; the kernel's name only where there are several."""
    several = len({r["kernel"] for r in rows}) > 1
    names = ["kernel"] if several else []
    headers = [
        *names,
        "GPU",
        "warps",
        "registers a thread",
        "spilled bytes",
        "shared bytes",
        "occupancy",
        "limit",
    ]
    table = []
    for r in rows:
        cells = [r["kernel"]] if several else []
        if r["registers"]:
            share = f"{r['occupancy']:.0%}"
            cells += [
                r["gpu"],
                r["num_warps"],
                r["registers"],
                r["stack"],
                r["shared"],
                share,
                r["limited_by"],
            ]
        else:
            cells += [r["gpu"], "–", "–", "–", "–", "–", r["error"]]
        table.append(cells)
    return Table(table, headers, caption)


def occupancy_explorer(
    block: int = 4096, warps: int = 4, gpu: str = "H200", compiled=None
) -> OccupancyExplorer:
    """Choose BLOCK and the number of warps; the real compiler says what the fused kernel then needs.

    Compiled for each architecture by Triton's own compiler, with or without a GPU; each choice takes one to
    ten seconds the first time. compiled: another source of results, (block, warps) → {GPU: {"registers",
    "spilled", "shared"} or {"error"}}.
    """
    return OccupancyExplorer(compiled or _compiled_fused_row, block=block, warps=warps, gpu=gpu)


def _compiled_fused_row(block: int, warps: int) -> dict[str, dict]:
    report = compile_report("fused_row", x_shape=(4, block), block=block, num_warps=warps)
    if not report.rows:
        raise ValueError(report.error or "The compiler gave no result.")
    return {
        row["gpu"]: {"registers": row["registers"], "spilled": row["stack"], "shared": row["shared"]}
        if row["registers"]
        else {"error": row["error"]}
        for row in report.rows
    }
