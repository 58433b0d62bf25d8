"""Loads and stores outside of every tensor: which row, which column, which mask."""

import ast
import re
from functools import cached_property

import numpy as np

from course_kernels.lab.check import strides
from course_kernels.lab.check.finding import Counted, Likely
from course_kernels.lab.check.mistakes import Mistake, Probe
from course_kernels.lab.check.running import program_name
from course_kernels.lab.check.trial import Trial
from course_kernels.lab.core.wording import count, grid, grids


class Fault(Trial):
    """A trial with accesses outside of every tensor; the first of them is the one that is looked at."""

    def __init__(self, trial: Trial):
        self.__dict__.update(trial.__dict__)
        self.__dict__.pop("words", None)
        fault = trial.facts.faults[0]
        self.operation, self.kernel, self.lanes = fault["operation"], fault["kernel"], fault["lanes"]
        self.row, self.column, self.program = fault["row"], fault["column"], fault["program"]
        self.shape = tuple(fault["shape"])
        self.foreign = self.shape != trial.case.x.shape  # neither x nor shaped like it
        self.store = self.operation == "store"
        self.operations = {other["operation"] for other in trial.facts.faults}
        self.grid = trial.facts.launches[0]["grid"] if trial.facts.launches else (0, 0, 0)
        names = {
            output.get("region"): name for name, output in zip(self.names, trial.facts.outputs, strict=False)
        }
        inputs = {name: name for name in trial.case.arrays()}
        self.name = (inputs | names).get(fault["tensor"]) or called(trial, fault["tensor"], self.kernel)

    @property
    def rows_past(self) -> bool:
        """True for whole rows past the end; what lies past the last row alone is seldom a multiple of one."""
        whole = self.columns & (self.columns - 1) and self.lanes // self.columns * self.columns == self.lanes
        return bool(whole) and (self.row, self.column) == (self.rows - 1, self.columns)

    @property
    def beyond(self) -> bool:
        """True if the tensor has no such row, though the grid has one program for each row."""
        return not 0 <= self.row < self.rows and self.grid[0] == self.rows

    @cached_property
    def words(self) -> dict:
        x = f"x is {self.case.shape} {self.dtype}, {self.case.about}"
        loads, loaded = ("stores", "stored") if self.store else ("loads", "loaded")
        lanes, program = count(self.lanes, "lane"), program_name(self.program)
        if self.foreign:
            flat = (
                f"element {self.column}" if len(self.shape) == 1 else f"row {self.row}, column {self.column}"
            )
            where = (
                f"of {self.kernel} {loads} elements that {self.name}, of shape {self.shape}, does not have: "
            )
            at = f"The case: {x}. Program {program} {where}{flat} ({lanes})."
        else:
            place = (self.rows, 0) if self.rows_past else (self.row, self.column)
            where = f"row {place[0]}, column {place[1]}".replace("-", "−")
            size = f"{count(self.rows, 'row')} and {count(self.columns, 'column')}"
            at = f"The case: {x}. Program {program} {loads} {where} ({lanes}); x has {size}, counted from 0."
        both = "store" in self.operations and not self.store
        return self.named(self.kernel) | {
            "case": at, "loads": loads, "loaded": loaded, "load_": self.operation, "name": self.name,
            "grid": grid(self.facts.launches[0]), "grids": grids(self.facts.launches),
            "rows": count(self.rows, "row"), "last": self.columns - 1, "columns_": self.columns,
            "both": " (the store does it too)" if both else "", "row_": self.row,
            "programs0": count(self.grid[0], "program"), "programs1": count(self.grid[1], "program"),
        }  # fmt: skip


def called(trial: Trial, region: str, kernel: str) -> str:
    """What to call a tensor that is neither an input nor a result: by the kernel's own name for it."""
    for launch in trial.facts.launches:
        for name, given in launch["tensors"].items():
            if launch["kernel"] == kernel and given == region:
                return f"the tensor given as {name}"
    return "a tensor of your own"


# Tensors of the learner's own


def unmasked(f: Fault) -> bool:
    """True if a tl.load, or tl.store, of the kernel has no mask."""
    own = f.source.own(f.source.functions.get(f.kernel))
    calls, before = (own.stores, 2) if f.store else (own.loads, 1)
    return not calls or any(
        len(c.args) <= before and "mask" not in {k.arg for k in c.keywords} for c in calls
    )


MASKED = "The mask is there, so the address does not fit ‹name›, or the grid does not. "
LAYOUTS = (
    (unmasked, "Compare the addresses with how ‹name› is laid out, and mask the lanes that have no element "
               "there."),
    (lambda f: len({launch["grid"][1] for launch in f.facts.launches}) > 1,
     MASKED + "The grids differ: a kernel that takes its number of chunks from its own grid needs the number "
              "that the first launch had."),
    (lambda f: f.row and f.row == f.program[1] != f.program[0],
     MASKED + "The row that it looks for is the program's number on axis 1 of the grid, and the rows are on "
              "axis 0: compare tl.program_id in the two kernels."),
    (lambda f: True, MASKED + "What one kernel stores at row * chunks + chunk, the next one loads from "
                              "there."),
)  # fmt: skip

# Rows that are not there


def stride_in_bytes(f: Fault) -> dict | None:
    size = f.case.x.itemsize
    written = re.search(rf"element_size|itemsize|\* *{size}\b", f.source.text)
    return {"size": size} if f.beyond and written and f.row == size * f.program[0] else None


def offset_twice(f: Fault) -> bool:
    pointer = f.words["x_ptr"]
    start = rf"\s*\*?\s*{f.words['row']}\s*\*"
    again = re.search(rf"\b{pointer}\s*\+{start}", f.source.text) and re.search(
        rf"\b{pointer}\s*\+={start}", f.source.text
    )
    return f.beyond and bool(again)


def moved_pointer(f: Fault) -> dict | None:
    moved = re.search(r"^\s+(\w+)\s*\+=\s*[A-Z]\w*\s*(#.*)?$", f.source.text, re.MULTILINE)
    return {"pointer": moved[1], "line": moved[0].strip()} if f.beyond and moved else None


def moved_twice(f: Fault) -> dict | None:
    """A pointer that a loop moves on, in an address to which the loop's start is added too."""
    kernel = f.source.functions.get(f.kernel)
    for loop in (node for node in ast.walk(kernel) if isinstance(node, ast.For)) if kernel else ():
        variable, body = ast.unparse(loop.target), "\n".join(map(ast.unparse, loop.body))
        lanes = [variable, *re.findall(rf"^(\w+) = [^\n]*\b{variable}\b", body, re.MULTILINE)]
        for pointer in re.findall(r"^(\w+) \+= \w+$", body, re.MULTILINE):
            address = re.search(rf"tl\.{f.operation}\({pointer} \+ ([^,]*)", body)
            if address and any(re.search(rf"\b{lane}\b", address[1]) for lane in lanes):
                return {"pointer": pointer, "variable": variable, "address": address[1]}
    return None


# Masks


def loads_of_x(f: Fault) -> np.ndarray | None:
    """How often each element of x was loaded, if a load went astray, and later rows were loaded."""
    seen = f.facts.x_loads
    return seen if seen.ndim == 2 and not f.store and seen[1:].any() else None


def reversed_mask(f: Fault) -> bool:
    seen = loads_of_x(f)
    return seen is not None and 1 < f.lanes != f.columns and not seen[0].any()


def shifted(f: Fault) -> bool:
    seen = loads_of_x(f)
    return seen is not None and f.lanes == 1 < f.columns and bool(seen[0, 1:].all()) and not seen[0, 0]


def block_for_stride(t: Trial) -> list | None:
    if not (t.rows > 1 and t.columns > 64):
        return None
    return [t.like(t.case.x[:1]), t.like(t.case.x[:, :64])]


ONE_PROGRAM = "The grid, ‹grid›, is right: one program a row. "
ROWS = (
    *(
        Mistake(
            "out_of_bounds", "The kernel ‹loads› outside ‹name›.", advice, why="‹grids›",
            when=lambda f, fits=fits: f.foreign and bool(fits(f)),
        )
        for fits, advice in LAYOUTS
    ),
    Mistake(
        "output_stride",
        "The kernel stores outside ‹name›: it uses the row stride of x as that of ‹name›.",
        "Each tensor has its own: pass ‹name›.stride(0), and start the row at ‹y_start›.",
        when=lambda f: f.operations == {"store"} and strides.gap(f),
        probes=(strides.FLAT,),
        why=strides.NO_GAPS + " Here the rows of x start ‹stride› elements apart, and those of ‹name› "
                              "‹columns_›.",
    ),
    *strides.ROWS,
    Mistake(
        "row_stride",
        "The kernel ‹loads› outside ‹name›: it uses the block's width, a power of two, as the row stride.",
        "Pass x.stride(0) to the kernel, and start the row at ‹x_start›.",
        probes=(Probe(block_for_stride),),
        why="a single row comes out right, and so do rows of 64 columns, where the two are the same.",
    ),
    Mistake(
        "mask_reversed",
        "The mask is the wrong way round: it lets the lanes past the row through, and stops those that have "
        "a column.",
        "The mask is True where a lane has a column: ‹lanes› < ‹columns›.",
        when=reversed_mask,
        why="no program loaded anything of row 0.",
        kind=Counted,
    ),
    Mistake(
        "address_shifted",
        "The addresses are one column too far along: column 0 of row 0 is never loaded, and the last lane "
        "loads past the row.",
        "Lane 0 belongs to column 0: ‹x_address›, and nothing more.",
        when=shifted,
    ),
    Mistake(
        "before_the_row",
        "The kernel ‹loads› elements before the start of a row of ‹name›: negative columns‹both›.",
        "Let a tile start at column 0 or later, at a multiple of its width; or mask both ends: (‹lanes› >= "
        "0) & (‹lanes› < ‹columns›).",
        when=lambda f: f.column < 0 <= f.row,
    ),
    Mistake(
        "row_out_of_bounds",
        "The kernel ‹loads› rows that ‹name› does not have: a tile reaches past the last row, and its mask "
        "stops columns only‹both›.",
        "Where a tile has several rows, the mask has two parts: (‹row› < rows) & (‹lanes› < ‹columns›).",
        when=lambda f: f.rows_past,
        why="The grid was ‹grid›.",
    ),
    Mistake(
        "pointer_moved_twice",
        "Each tile is read twice as far along ‹name› as it lies: `‹pointer›` is moved on in every round, and "
        "`‹variable›` is added to it as well.",
        "Do one of the two: leave `‹pointer›` where it is, or add the lanes alone to it.",
        when=moved_twice,
        why="In the loop over `‹variable›` the address is ‹pointer› + ‹address›; the mask, which knows one "
            "of the two only, lets lanes past the row through.",
    ),
    Mistake(
        "grid_axes_exchanged",
        "The kernel takes its row from axis 0 of the grid, which has ‹programs0›; there is one program for "
        "each row along axis 1.",
        "Launch over (rows, chunks), in this order, or take the row from tl.program_id(1).",
        when=lambda f: not 0 <= f.row < f.rows and f.grid[0] != f.rows == f.grid[1],
        why="The grid was ‹grid›, and x has ‹rows›.",
    ),
    Mistake(
        "grid_axes_exchanged",
        "The kernel takes its row from axis 1 of the grid, which has ‹programs1›; there is one program for "
        "each row along axis 0.",
        "Take the row from tl.program_id(0).",
        when=lambda f: f.beyond and f.row == f.program[1] != f.program[0],
        why="The grid was ‹grid›, and x has ‹rows›.",
    ),
    Mistake(
        "stride_in_bytes",
        "Row addresses are ‹size› × too large: the stride is in bytes.",
        "Start the row at ‹x_ptr› + ‹row› * x.stride(0), which is in elements already.",
        when=stride_in_bytes,
        why="An element of x has ‹size› bytes. A pointer in Triton knows its dtype, and counts elements.",
    ),
    Mistake(
        "row_offset_twice",
        "The start of the row is added twice: ‹x_ptr› was moved to it already.",
        "Load from ‹x_ptr› + ‹lanes›.",
        when=offset_twice,
        why=ONE_PROGRAM + "‹x_ptr› += ‹row› * … stands above, and the load adds the row's start once more.",
    ),
    Mistake(
        "pointer_not_reset",
        "The pointer ‹pointer› is moved along the row and not put back: what follows starts behind the row's "
        "end.",
        "Leave the pointer where it is and add the column to it: ‹pointer› + start + the lanes.",
        when=moved_pointer,
        why="`‹line›`: after a walk it points past the row. " + ONE_PROGRAM.strip(),
        kind=Likely,
    ),
    Mistake(
        "row_out_of_bounds",
        "The kernel leaves ‹name›, though the grid has one program for each row: an address is too far "
        "along.",
        "Print the first address of a program: it should be the row times the row stride, added once.",
        when=lambda f: f.beyond,
        why="The grid was ‹grid›.",
    ),
    Mistake(
        "row_out_of_bounds",
        "The kernel ‹loads› rows that ‹name› does not have.",
        "Launch one program a row, or mask the rows as well as the columns.",
        when=lambda f: not 0 <= f.row < f.rows,
        why="The grid was ‹grid›.",
    ),
    Mistake(
        "mask_off_by_one",
        "The mask lets one lane too many through: column ‹columns_› is ‹loaded›, and the row ends at ‹last›.",
        "Columns are counted from 0: the mask is ‹lanes› < ‹columns›.",
        when=lambda f: f.lanes == 1 and f.column == f.columns,
    ),
    *(
        Mistake(
            f"{operation}_mask",
            f"The kernel ‹loads› past the end of a row of ‹name›: the tl.{operation} has no mask, or one "
            "that lets too "
            "much through‹both›.",
            f"Give tl.{operation} the mask ‹lanes› < ‹columns›{other}.",
            when=lambda f, operation=operation: f.operation == operation,
        )
        for operation, other in (("load", "‹and_other›"), ("store", ""))
    ),
)  # fmt: skip
