"""Mistakes in addresses: which row, which column, which argument. Each function returns a Finding or None."""

import ast
import re
from pathlib import Path

from course_kernels.lab.check.judge import Finding
from course_kernels.lab.check.source import Source as Code, is_jit
from course_kernels.lab.core.wording import count, grid


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
        f"Counted: {count(result.x_stores, 'element')} of x stored, none loaded.",
        "Compare the order of the arguments in the launch with the kernel's own, name by name.",
    )


def wrong_stride(session, case, result, at, proof) -> Finding | None:
    """A stride of another tensor where x's belongs."""
    columns, stride = case.x.shape[1], case.x.shape[1] + case.gap
    numbers = result.launches[0]["numbers"] if result.launches else {}
    for name, value in numbers.items():
        if value == stride and re.search(rf"//\s*{re.escape(name)}\b", source(session)):
            return Finding(
                "row_stride",
                f"An element's row is found by dividing by `{name}`, the row stride of x, which counts what "
                "lies between the rows too.",
                at,
                f"{proof} Here a row starts {stride} elements after the one before it, and has {columns} "
                "columns.",
                "Of element number i the row is i // columns and the column i % columns; the stride belongs "
                "in the address only: row * x_stride + column.",
            )
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
    programs = result.launches[0]["grid"]
    if programs[0] != rows and programs[1] == rows:
        return Finding(
            "grid_axes_exchanged",
            f"The kernel takes its row from axis 0 of the grid, which has {count(programs[0], 'program')}; "
            f"there is one program for each row along axis 1.",
            at,
            f"The grid was {programs[0], programs[1]}, and x has {count(rows, 'row')}.",
            "Launch over (rows, chunks), in this order, or take the row from tl.program_id(1).",
        )
    if programs[0] != rows:
        return None
    if fault["row"] == fault["program"][1] != fault["program"][0]:
        return Finding(
            "grid_axes_exchanged",
            f"The kernel takes its row from axis 1 of the grid, which has {count(programs[1], 'program')}; "
            "there is one program for each row along axis 0.",
            at,
            f"The grid was {grid(result.launches[0])}, and x has {count(rows, 'row')}.",
            "Take the row from tl.program_id(0).",
        )
    text = source(session)
    size = case.x.itemsize
    if fault["row"] == size * fault["program"][0] and re.search(rf"element_size|itemsize|\* *{size}\b", text):
        return Finding(
            "stride_in_bytes",
            f"A row is looked for {size} times too far along: the stride is counted in bytes.",
            at,
            f"An element of x has {size} bytes. A pointer in Triton knows its dtype, and counts elements.",
            "Start the row at x_ptr + row * x.stride(0), which is in elements already.",
        )
    moved = re.search(r"^\s+(\w+)\s*\+=\s*[A-Z]\w*\s*(#.*)?$", text, re.MULTILINE)
    again = re.search(r"\bx_ptr\s*\+\s*row\s*\*", text) and re.search(r"\bx_ptr\s*\+=\s*row\s*\*", text)
    if again:
        return Finding(
            "row_offset_twice",
            "The start of the row is added twice: x_ptr was moved to it already.",
            at,
            f"The grid, {grid(result.launches[0])}, is right: one program a row. x_ptr += row * … stands "
            f"above, and the "
            "load adds the row's start once more.",
            "Load from x_ptr + column.",
        )
    if moved:
        return Finding(
            "pointer_not_reset",
            f"The pointer {moved[1]} is moved along the row and not put back: what follows starts behind the "
            "row's end.",
            at,
            f"The grid, {grid(result.launches[0])}, is right: one program a row. Likely "
            f"`{moved[0].strip()}`: after a "
            "walk it points past the row.",
            "Leave the pointer where it is and add the column to it: x_ptr + start + the lanes.",
        )
    return Finding(
        "row_out_of_bounds",
        f"The kernel leaves {name}, though the grid has one program for each row: an address is too far "
        "along.",
        at,
        f"The grid was {grid(result.launches[0])}.",
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


def moved_twice(session, fault, name, at) -> Finding | None:
    """A pointer that a loop moves on, in an address to which the loop's start is added too."""
    kernel = Code(source(session)).functions.get(fault["kernel"])
    for loop in (node for node in ast.walk(kernel) if isinstance(node, ast.For)) if kernel else ():
        variable, body = ast.unparse(loop.target), "\n".join(map(ast.unparse, loop.body))
        lanes = [variable, *re.findall(rf"^(\w+) = [^\n]*\b{variable}\b", body, re.MULTILINE)]
        for pointer in re.findall(r"^(\w+) \+= \w+$", body, re.MULTILINE):
            address = re.search(rf"tl\.{fault['operation']}\({pointer} \+ ([^,]*)", body)
            if address and any(re.search(rf"\b{lane}\b", address[1]) for lane in lanes):
                return Finding(
                    "pointer_moved_twice",
                    f"Each tile is looked for twice as far along {name} as it lies: `{pointer}` is moved on "
                    f"in every round, and `{variable}` is added to it as well.",
                    at,
                    f"In the loop over `{variable}` the address is {pointer} + {address[1]}; the mask, which "
                    "knows one of the two only, lets lanes past the row through.",
                    f"Do one of the two: leave `{pointer}` where it is, or add the lanes alone to it.",
                )
    return None


def masked(session, kernel: str, operation: str) -> bool:
    """True if every tl.load, or tl.store, of a kernel has a mask."""
    function = Code(source(session)).functions.get(kernel)
    calls = [node for node in ast.walk(function) if isinstance(node, ast.Call)] if function else []
    calls = [call for call in calls if ast.unparse(call.func) == f"tl.{operation}"]
    before = 1 if operation == "load" else 2
    return bool(calls) and all(
        len(call.args) > before or any(keyword.arg == "mask" for keyword in call.keywords) for call in calls
    )


def other_layout(session, result, fault, name) -> str:
    """What to do about an address outside of a tensor that is neither x nor shaped like it."""
    if not masked(session, fault["kernel"], fault["operation"]):
        return (
            f"Compare the addresses with how {name} is laid out, and mask the lanes that have no element "
            "there."
        )
    advice = f"The mask is there, so the address does not fit {name}, or the grid does not. "
    if len({launch["grid"][1] for launch in result.launches}) > 1:
        advice += "The grids differ: a kernel that takes its number of chunks from its own grid needs the "
        return advice + "number that the first launch had."
    if fault["row"] and fault["row"] == fault["program"][1] != fault["program"][0]:
        advice += "The row that it looks for is the program's number on axis 1 of the grid, and the rows are "
        return advice + "on axis 0: compare tl.program_id in the two kernels."
    return advice + "What one kernel stores at row * chunks + chunk, the next one loads from there."


def one_axis(session, result, name, at) -> Finding | None:
    """The row taken from an axis of the grid on which there is one program."""
    used = re.search(r"program_id\((?:axis\s*=\s*)?([12])\)", source(session))
    if not used or result.launches[-1]["grid"][int(used[1])] != 1:
        return None
    return Finding(
        "rows_unwritten",
        f"Every program works on row 0 of {name}: axis {used[1]} of the grid has one program only.",
        at,
        f"The grid was {grid(result.launches[-1])}, and the kernel asks for "
        f"tl.program_id({used[1]}), which is always 0.",
        "The first axis is axis 0: row = tl.program_id(0).",
    )


def called(result, region: str, kernel: str) -> str:
    """What to call a tensor that is neither x nor a result: by the kernel's own name for it."""
    for launch in result.launches:
        for name, given in launch["tensors"].items():
            if launch["kernel"] == kernel and given == region:
                return f"the tensor given as {name}"
    return "a tensor of your own"


def columns_for_rows(session) -> list[str]:
    """The tensors whose stride(1) is passed, and whose stride(0) is not."""
    text = source(session)
    given = re.findall(r"\b(\w+)\.stride\(\s*(?:dim\s*=\s*)?(?:1|-1)\s*\)", text)
    return [t for t in given if not re.search(rf"\b{t}\.stride\(\s*(?:dim\s*=\s*)?(?:0|-2)\s*\)", text)]


def not_scaled(session) -> tuple[str, str] | None:
    """(what is wrong, what to do) where the row is multiplied by the stride of the columns, which is 1."""
    if "x" not in columns_for_rows(session):
        return None
    return (
        "x.stride(1) is passed, the distance from one column to the next, which is 1: each row starts one "
        "element after the one before.",
        "Pass x.stride(0), the distance from one row to the next.",
    )


def stride_of_columns(session, result, name, at) -> Finding | None:
    """The same of the output: rows on top of each other."""
    tensors = [t for t in columns_for_rows(session) if t != "x"]
    if not tensors:
        return None
    return Finding(
        "rows_unwritten",
        f"The rows of {name} are stored on top of each other, one element apart: {tensors[0]}.stride(1) is "
        "the distance from one column to the next, which is 1.",
        at,
        f"Counted: elements of {name} are stored several times, and others never.",
        f"Pass {tensors[0]}.stride(0), the distance from one row to the next.",
    )


def explain_timeout(session, finding: Finding) -> None:
    """Say which loop goes one column at a time, if one does: the usual reason in a kernel."""
    code = Code(source(session))
    for function in filter(is_jit, code.functions.values()):
        for loop in (node for node in ast.walk(function) if isinstance(node, ast.For)):
            if not re.fullmatch(r"(tl\.)?range\((\w+, )?\w+\)", ast.unparse(loop.iter)):
                continue
            variable, body = ast.unparse(loop.target), "\n".join(map(ast.unparse, loop.body))
            line = f"line {loop.lineno}: `{code.line(loop.lineno)}`"
            tile = next((a.arg for a in function.args.args if a.annotation), "TILE")
            end = ast.unparse(loop.iter.args[-1])
            if "tl.load" not in body:
                continue
            lanes = re.findall(r"(\w+) = [^\n]*tl\.arange\(", ast.unparse(function))
            finding.next = (
                f"Each round is for a whole tile, so the step is missing: range(0, {end}, {tile})."
                if any(re.search(rf"\b{name}\b", body) for name in ("arange", *lanes))
                else f"Let the lanes take many columns at once: {variable} + tl.arange(0, {tile}), with a "
                f"step of "
                f"{tile}."
            )
            finding.why = (
                f"Likely {line}, which goes on by 1 in each round: as many rounds as a row has columns, "
                f"tens of "
                "thousands in some rows here."
            )
            return


def guard(session) -> str:
    """What to do about an `if` that skips a tile of −∞, and NaN with it; empty where there is none."""
    code = Code(source(session))
    for number, text in enumerate(code.lines, 1):
        if re.match(r"\s*if .*[<>].*inf", text, re.IGNORECASE):
            return (
                f"Likely line {number}: `{text.strip()}` skips NaN too, since every comparison with NaN is "
                f"false. "
                "Take the guard out, and use 0 where the maximum is −∞: anchor = tl.where(new_m == "
                "-float('inf'), "
                "0.0, new_m), then tl.exp(m - anchor) and tl.exp(x - anchor). A tile of −∞ then adds 0, "
                "and NaN "
                "spreads by itself."
            )
    return ""
