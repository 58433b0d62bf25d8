"""What a function returned, and which elements of it no kernel wrote."""

import re
from functools import cached_property

import numpy as np

from course_kernels.lab.check import strides
from course_kernels.lab.check.finding import Counted
from course_kernels.lab.check.mistakes import Mistake
from course_kernels.lab.check.trial import Trial
from course_kernels.lab.core.wording import count, grid, grids, which


class Written(Trial):
    """A trial, and one of its outputs."""

    def __init__(self, trial: Trial, index: int):
        self.__dict__.update(trial.__dict__)
        self.__dict__.pop("words", None)
        self.index = index

    @property
    def outputs(self) -> list[dict]:
        return self.facts.outputs

    @cached_property
    def output(self) -> dict:
        return self.outputs[self.index] if self.index < len(self.outputs) else {}

    @property
    def kind(self):
        """What the output should be: name, shape, dtype."""
        return self.exercise.outputs[min(self.index, len(self.names) - 1)]

    @cached_property
    def stored(self) -> np.ndarray:
        """How often each element was stored, a row a row."""
        return self.facts.stored(self.index).reshape(self.output["shape"][0], -1)

    @cached_property
    def unwritten(self) -> bool:
        """True if some element was never stored."""
        return bool(self.stored.size) and not self.stored.all()

    @cached_property
    def empty(self) -> np.ndarray:
        """The rows of which nothing was stored."""
        return np.flatnonzero(~self.stored.any(axis=1))

    @property
    def again(self) -> int:
        """The most that one element was stored."""
        return int(self.stored.max())

    @cached_property
    def hole(self) -> tuple[int, np.ndarray]:
        """The first row with unwritten elements, and their columns."""
        row = int(np.flatnonzero(~self.stored.all(axis=1))[0])
        return row, np.flatnonzero(self.stored[row] == 0)

    @property
    def last_program(self) -> int:
        """The programs along the first axis of the last launch."""
        return int(self.facts.launches[-1]["grid"][0])

    @cached_property
    def words(self) -> dict:
        launches, own = self.facts.launches, super().words
        words = own | {"name": self.kind.name, "grids": grids(launches) if launches else ""}
        if not self.output.get("tensor"):
            return words
        words |= {
            "shape": tuple(self.output["shape"]), "wanted_shape": self.kind.shape(self.case),
            "dtype": self.output["dtype"], "wanted_dtype": self.kind.dtype(self.case),
        }  # fmt: skip
        if "stored" not in self.output or not launches or not self.unwritten:
            return words
        row, missing = self.hole
        first = int(np.argmax(self.stored.ravel() == 0))
        return words | {
            "again": self.again, "rows": len(self.stored), "all": count(self.stored.size, "element"),
            "first_row": first // self.stored.shape[1], "first_column": first % self.stored.shape[1],
            "left": f"{self.stored.size - first:,}", "empty": which("row", self.empty),
            "rows_were": f"{'A row' if len(self.empty) == 1 else 'Rows'} of {self.kind.name} "
                         f"{'was' if len(self.empty) == 1 else 'were'}",
            "over": int(np.argmax(self.stored.max(axis=1))), "grid": grid(launches[-1]), "row_": row,
            "missing": f"{len(missing):,}",
                       "width": f"{self.stored.shape[1]:,}", "from": missing[0], "to": missing[-1],
        }  # fmt: skip


# Conditions


def wrong_return(w: Written) -> dict | None:
    if len(w.outputs) == len(w.names) and all(output["tensor"] for output in w.outputs):
        return None
    got = ["a tensor" if output["tensor"] else output["type"] for output in w.outputs]
    nothing = got == ["NoneType"]
    several = len(set(got)) == 1 and len(got) > 1
    return {"got": "nothing" if nothing else f"{len(got)} × {got[0]}" if several else ", ".join(got)}


def other_dtype(w: Written) -> bool:
    return w.output["dtype"] != w.kind.dtype(w.case)


def from_there_on(w: Written) -> bool:
    """Everything from an element in the middle of a row on, and nothing before it."""
    first = int(np.argmax(w.stored.ravel() == 0))
    inside = first >= w.stored.shape[1] and first % w.stored.shape[1]
    return bool(
        w.unwritten and w.stored.any() and inside and not w.stored.ravel()[first:].any() and w.again == 1
    )


def whole_rows(w: Written) -> bool:
    return w.unwritten and bool(w.stored.any()) and len(w.empty) > 0


def one_axis(w: Written) -> dict | None:
    """The row taken from an axis of the grid on which there is one program."""
    used = re.search(r"program_id\((?:axis\s*=\s*)?([12])\)", w.source.text)
    if not whole_rows(w) or w.again < 2 or not used or w.facts.launches[-1]["grid"][int(used[1])] != 1:
        return None
    return {"axis": used[1]}


def stride_of_columns(w: Written) -> dict | None:
    tensors = [t for t in strides.columns_for_rows(w) if t != "x"]
    return {"tensor": tensors[0]} if whole_rows(w) and w.again > 1 and tensors else None


def few_programs(w: Written) -> bool:
    written = len(w.stored) - len(w.empty)
    return whole_rows(w) and w.last_program < len(w.stored) and written <= w.last_program


def columns_missing(w: Written) -> bool:
    return w.unwritten and not len(w.empty)


def together(w: Written) -> bool:
    """The unwritten columns of a row lie side by side."""
    missing = w.hole[1]
    return columns_missing(w) and missing[0] == missing[-1] - len(missing) + 1


def tail(w: Written) -> bool:
    return columns_missing(w) and together(w) and w.hole[1][-1] == w.stored.shape[1] - 1


def head(w: Written) -> bool:
    return columns_missing(w) and together(w) and w.hole[1][0] == 0 and not tail(w)


NEVER = (
    "Columns of ‹name› were never written: in row ‹row_›, ‹missing› of ‹width›, the first is column ‹from›."
)
COVER = (
    "Cover every column: ‹block› of at least the number of columns, or tiles up to and including the "
    "last, partial one."
)
ROWS = (
    Mistake(
        "wrong_return",
        "The function returns ‹got›; it should return ‹outputs›.", "End it with `return ‹outputs›`.",
        when=wrong_return,
    ),
    Mistake(
        "wrong_return",
        "The function returns a tuple, or a list, that holds ‹outputs›; ‹outputs› itself is asked for.",
        "End it with `return ‹outputs›`, without a comma or brackets.",
        when=lambda w: w.facts.tuple and len(w.names) == 1,
    ),
    Mistake(
        "wrong_shape",
        "‹name› has the shape ‹shape›; it should be ‹wanted_shape›.",
        "Allocate ‹name› with that shape.",
        when=lambda w: tuple(w.output["shape"]) != tuple(w.kind.shape(w.case)),
    ),
    *(
        Mistake(
            "wrong_dtype", "‹name› is ‹dtype›; for this input it should be ‹wanted_dtype›.", advice,
            when=lambda w, like=like: other_dtype(w) and like == (w.kind.dtype(w.case) == w.dtype),
        )
        for like, advice in ((True, "torch.empty_like(x) has the dtype of x."),
                             (False, "Allocate ‹name› with dtype=torch.‹wanted_dtype›."))
    ),
    Mistake(
        "returns_input",
        "The function returns its input in place of ‹name›.",
        "Allocate ‹name›, let the kernel store into it, and return ‹name›.",
        when=lambda w: w.output["given"],
    ),
    Mistake(
        "no_launch",
        "No kernel was launched on this input.",
        "Launch the kernel each time the function is called: kernel[grid](…).",
        when=lambda w: not w.facts.launches,
        why="A result that was kept from an earlier call, or that was made without a kernel, does not count.",
    ),
    Mistake(
        "not_from_a_kernel",
        "‹name› is not a tensor that this call allocated with PyTorch: it was made in an earlier call, or by "
        "other means.",
        "Allocate ‹name› anew in each call, with torch.empty_like(x), and let the kernel store into it: "
        "whoever keeps an earlier result would find it overwritten.",
        when=lambda w: "stored" not in w.output,
    ),
    Mistake(
        "nothing_stored",
        "No kernel stored anything into ‹name›.",
        "End the kernel with tl.store to ‹name›'s addresses.",
        when=lambda w: w.unwritten and not w.stored.any(),
        why="‹grids›",
    ),
    Mistake(
        "columns_unwritten",
        "Nothing of ‹name› was written from row ‹first_row›, column ‹first_column› on: ‹left› of ‹all›.",
        "Where each program takes the next ‹block› elements, whatever their row, the number of programs is "
        "rounded up: triton.cdiv(rows * columns, ‹block›).",
        when=from_there_on,
        why="‹grids›",
    ),
    Mistake(
        "rows_unwritten",
        "Every program works on row 0 of ‹name›: axis ‹axis› of the grid has one program only.",
        "The first axis is axis 0: ‹row› = tl.program_id(0).",
        when=one_axis,
        why="The grid was ‹grid›, and the kernel asks for tl.program_id(‹axis›), which is always 0.",
    ),
    Mistake(
        "rows_unwritten",
        "The rows of ‹name› are stored on top of each other, one element apart: ‹tensor›.stride(1) is the "
        "distance from one column to the next, which is 1.",
        "Pass ‹tensor›.stride(0), the distance from one row to the next.",
        when=stride_of_columns,
        why="elements of ‹name› are stored several times, and others never.",
        kind=Counted,
    ),
    Mistake(
        "rows_unwritten",
        "‹rows_were› never written: ‹empty› of ‹rows›.",
        "Start the row that program `‹row›` stores at row times ‹name›'s row stride.",
        when=lambda w: whole_rows(w) and w.again > 1,
        why="Row ‹over› was stored ‹again› times instead: the address of the store does not say which row is "
            "meant.",
    ),
    Mistake(
        "rows_unwritten",
        "‹rows_were› never written: ‹empty› of ‹rows›.",
        "Launch one program for every row, and let each program find its row from tl.program_id(0). Where "
        "each program takes several rows, their number is rounded up: triton.cdiv(rows, programs).",
        when=few_programs,
        why="‹grids› The matrix has ‹rows› rows.",
    ),
    Mistake(
        "rows_unwritten",
        "‹rows_were› never written: ‹empty› of ‹rows›, though there are programs enough.",
        "A mask that compares lanes with the row's number (‹lanes› < ‹row›) stores less in some rows than in "
        "others; a loop over rows must end at the number of rows; and where rows are divided among programs, "
        "the quotient is rounded up, triton.cdiv(rows, …).",
        when=whole_rows,
        why="‹grids› The matrix has ‹rows› rows.",
    ),
    Mistake(
        "columns_unwritten",
        "Tiles of ‹name› are stored on top of each other: in row ‹row_› some columns are stored ‹again› "
        "times, and ‹missing› never.",
        "A tile has columns of its own: start + the lanes, in the load and in the store.",
        when=lambda w: columns_missing(w) and w.again > 1,
        why="The first column that was never written is ‹from›.",
    ),
    Mistake(
        "columns_unwritten",
        "The last column of ‹name› was never written: the mask cuts it off.",
        "The mask is ‹lanes› < ‹columns›.",
        when=lambda w: tail(w) and len(w.hole[1]) == 1 < w.stored.shape[1],
        why="Columns are counted from 0, so the last of ‹width› is ‹from›.",
    ),
    Mistake(
        "columns_unwritten", NEVER, COVER, when=tail,
        why="All columns from ‹from› to the end are missing: the block, or the last tile, stops short there.",
    ),
    Mistake(
        "columns_unwritten", NEVER,
        "Let the walk take the tile that starts at column 0 too: range(a, 0, -‹block›) stops before it.",
        when=head,
        why="All columns up to ‹to› are missing, and the rest is there: the first tile is left out.",
    ),
    Mistake("columns_unwritten", NEVER, COVER, when=columns_missing),
)  # fmt: skip
