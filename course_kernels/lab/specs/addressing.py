"""Mistakes in addresses: which row, which column, which argument. Each function returns a Finding or None."""

import re
from pathlib import Path

from course_kernels.lab.judge import Finding


def source(session) -> str:
    """The learner's text."""
    return Path(session.path).read_text(encoding="utf-8", errors="replace")


def exchanged_arguments(session, case, result, at) -> Finding | None:
    """x never loaded and stored into: it came to the kernel in the place of y."""
    if not result.x_stores or result.x_loads.any():
        return None
    return Finding(
        "arguments_exchanged",
        "The kernel stores into x and never loads from it: x and y have changed places.",
        at,
        f"Counted: {result.x_stores} elements of x stored, none loaded.",
        "Compare the order of the arguments in the launch with the kernel's own, name by name.",
    )


def wrong_stride(session, case, result, at, proof) -> Finding | None:
    """A stride of another tensor where x's belongs."""
    columns, stride = case.x.shape[1], case.x.shape[1] + case.gap
    numbers = result.launches[0]["numbers"] if result.launches else {}
    for name, value in numbers.items():
        used = re.search(rf"(tl\.load\(|\bx_ptr\b).*\*\s*{re.escape(name)}\b", source(session))
        if value != columns or "stride" not in name or not used:
            continue
        if stride in numbers.values() and name.startswith("x"):
            return Finding(
                "row_stride",
                f"The strides have changed places in the launch: `{name}` was given {value}, and x.stride(0) "
                f"is {stride}.",
                at,
                proof,
                "Compare the order of the arguments in the launch with the kernel's own, name by name.",
            )
        return Finding(
            "row_stride",
            f"The row of x is found with `{name}`, the stride of another tensor.",
            at,
            proof,
            "Each tensor has a stride of its own: start the row at x_ptr + row * x_stride.",
        )
    return None


def beyond_the_rows(session, case, result, fault, name, at) -> Finding | None:
    """Rows that the tensor does not have, though the grid has a program for each row and no more."""
    rows, columns = case.x.shape
    grid = result.launches[0]["grid"]
    if grid[0] != rows and grid[1] == rows:
        return Finding(
            "grid_axes_exchanged",
            f"The kernel takes its row from axis 0 of the grid, and there are {grid[0]} programs there; the "
            f"{rows} row{'s' if rows > 1 else ''} of x lie along axis 1.",
            at,
            f"The grid was {tuple(grid)}.",
            "Launch over (rows, chunks), in this order, or take the row from tl.program_id(1).",
        )
    if grid[0] != rows:
        return None
    text = source(session)
    moved = re.search(r"^\s+(\w+)\s*\+=\s*[A-Z]\w*\s*(#.*)?$", text, re.MULTILINE)
    again = re.search(r"\bx_ptr\s*\+\s*row\s*\*", text) and re.search(r"\bx_ptr\s*\+=\s*row\s*\*", text)
    if again:
        return Finding(
            "row_offset_twice",
            "The start of the row is added twice: x_ptr was moved to it already.",
            at,
            f"The grid, {tuple(grid)}, is right: one program a row. x_ptr += row * … stands above, and the "
            "load adds the row's start once more.",
            "Load from x_ptr + column.",
        )
    if moved:
        return Finding(
            "pointer_not_reset",
            f"The pointer {moved[1]} is moved along the row and not put back: what follows starts behind the "
            "row's end.",
            at,
            f"The grid, {tuple(grid)}, is right: one program a row. Likely `{moved[0].strip()}`: after a "
            "walk it points past the row.",
            "Leave the pointer where it is and add the column to it: x_ptr + start + the lanes.",
        )
    return Finding(
        "row_out_of_bounds",
        f"The kernel leaves {name}, though the grid has one program for each row: an address is too far "
        "along.",
        at,
        f"The grid was {tuple(grid)}.",
        "Print the first address of a program: it should be the row times the row stride, added once.",
    )


def masked_wrongly(case, result, fault, at) -> Finding | None:
    """A mask the wrong way round, or addresses one column along."""
    columns = case.x.shape[1]
    seen = result.x_loads
    if seen.ndim != 2 or fault["operation"] != "load" or not seen[1:].any():
        return None
    if 1 < fault["lanes"] != columns and not seen[0].any():
        return Finding(
            "mask_reversed",
            "The mask is the wrong way round: it lets the lanes past the row through, and stops those that "
            "have a column.",
            at,
            "Counted: no program loaded anything of row 0.",
            "The mask is True where a lane has a column: column < columns.",
        )
    if fault["lanes"] == 1 and columns > 1 and seen[0, 1:].all() and not seen[0, 0]:
        return Finding(
            "address_shifted",
            "The addresses are one column too far along: column 0 of row 0 is never loaded, and the last "
            "lane loads past the row.",
            at,
            next="Lane 0 belongs to column 0: x_ptr + row * x_stride + column, and nothing more.",
        )
    return None


def one_axis(session, result, name, at) -> Finding | None:
    """The row taken from an axis of the grid on which there is one program."""
    used = re.search(r"program_id\((?:axis\s*=\s*)?([12])\)", source(session))
    if not used or result.launches[-1]["grid"][int(used[1])] != 1:
        return None
    return Finding(
        "rows_unwritten",
        f"Every program works on row 0 of {name}: axis {used[1]} of the grid has one program only.",
        at,
        f"The grid was {tuple(result.launches[-1]['grid'])}, and the kernel asks for "
        f"tl.program_id({used[1]}), which is always 0.",
        "The first axis is axis 0: row = tl.program_id(0).",
    )
