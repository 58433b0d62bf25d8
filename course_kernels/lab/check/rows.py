"""Exercises in which a kernel turns a matrix into something, row by row.

The order of the judgement: did it run, did it stay inside its tensors, did kernels write every output, are
the values right, and only then what the traffic was. The first case that is not right is the one diagnosed.
"""

import re
from dataclasses import replace

import numpy as np

from course_kernels.lab.check import addressing
from course_kernels.lab.check.old import Exercise
from course_kernels.lab.check.judge import Case, Finding, Result, Session, Tweaks, check_error, dtype_name
from course_kernels.lab.core.wording import count, grid, grids, numbers, side_by_side, which

EPSILON = 2.0**-23  # float32: twice the largest relative rounding error
SHOWN = 6  # numbers of a row that a message shows
SHRUNK = (1, 2, 3, 4, 5, 7, 8, 16, 31)  # row lengths tried when looking for a small case


class KernelExercise(Exercise):
    """Subclasses give the cases, the expected values and the traffic allowed.

    outputs: the names of what the entry returns. max_launches, max_tile: limits, or None.
    """

    outputs: tuple[str, ...] = ("y",)
    fills = True  # what masked lanes hold makes a difference
    max_launches: int | None = None
    max_tile: int | None = None  # the most columns one load may cover
    fewer_loads = "Load once and keep what was loaded in a variable."  # the advice where too much is loaded
    compile_calls = (
        {"shape": [4, 1000], "dtype": "float32", "gap": 24},
        {"shape": [4, 1024], "dtype": "float16"},
    )
    gpu_shapes = ((4096, 1024, "float32"), (4096, 781, "float32"), (1823, 4096, "float16"))

    def cases(self, rng: np.random.Generator) -> list[Case]:
        """Fresh inputs, the plain ones first; each is there for a mistake."""
        raise NotImplementedError

    def large_cases(self, rng: np.random.Generator) -> list[Case]:
        """A wide row and a tall matrix, of sizes that no constant in a file can know.

        They run after the others: what is wrong with small inputs is found without their seconds.
        """
        return []

    def expected(self, x: np.ndarray) -> tuple[np.ndarray, ...]:
        """The right outputs for x (rows, columns), in float64."""
        raise NotImplementedError

    def tolerance(self, case: Case, wanted: tuple[np.ndarray, ...]) -> tuple[np.ndarray, ...]:
        """How far each output element may be from the right value."""
        raise NotImplementedError

    def shape_of(self, index: int, x: np.ndarray) -> tuple[int, ...]:
        """The shape of an output."""
        return x.shape

    def dtype_of(self, index: int, x: np.ndarray) -> str:
        """The dtype of an output."""
        return str(x.dtype)

    def allowed(self, rows: int, columns: int) -> tuple[int, int]:
        """The most elements that may be loaded and stored."""
        return rows * columns, rows * columns

    def experiments(self) -> list:
        """Functions (exercise, session, case, result) → Finding or None, tried in order on the case."""
        return [fingerprints, row_stride]

    def fingerprint_table(self, case: Case, tile: int) -> list[tuple[str, object, str, str]]:
        """(mistake, what it would give, the sentence, what to do) for mistakes that leave a known output.

        What it would give: an array, or one for each output, None where that output says nothing. tile: the
        width of the learner's tiles.
        """
        return []

    def guess(self, case: Case, results: dict) -> str:
        """What to try when no mistake fits."""
        return (
            "Run your function on the small case above in a cell of its own, and print what it makes of one "
            "row "
            "after each step."
        )

    # The judgement

    def judge(self, session: Session) -> list[str]:
        try:
            return self.judged(session)
        except Finding as finding:
            if finding.mistake == "timeout":
                addressing.explain_timeout(session, finding)
            raise

    def judged(self, session: Session) -> list[str]:
        cases, results = [], []
        for make in (self.cases, self.large_cases):
            fresh = make(session.rng)
            outcomes = session.run(fresh) if fresh else []
            cases, results = cases + fresh, results + outcomes
            for case, result in zip(fresh, outcomes, strict=False):
                self.check_run(session, case, result)
                if (bad := self.wrong_rows(case, result)) is not None:
                    raise self.diagnose(session, case, result, bad, cases, results)
            for case, result in zip(fresh, outcomes, strict=True):
                self.check_cost(session, case, result)
        self.check_more(session, cases, results)
        return self.earned(cases, results)

    def check_more(self, session: Session, cases: list[Case], results: list[Result]) -> None:
        """For subclasses: what else must hold."""

    def check_run(self, session: Session, case: Case, result: Result) -> None:
        """Raise a Finding unless the run was whole: outputs of the right kind, all written, all inside."""
        imported = result.message.get("at") != "import"
        refused = result.message.get("refused")
        if imported and not refused and result.error and not result.error["rule"]:
            self.shape_trouble(session, case, result)
        check_error(result, case if imported else None, self)
        at = f"The case: x is {case.shape} {dtype_name(case)}, {case.about}."
        if not result.intact:
            raise Finding(
                "checker_changed",
                "The file replaces a part of Triton's interpreter, and the check counts there.",
                next="Leave Triton as it is and write the kernel.",
            )
        self.check_faults(session, case, result)  # first: a stray store may hit anything, x too
        if result.x_stores:
            if (finding := addressing.exchanged_arguments(session, case, result, at)) is not None:
                raise finding
            raise Finding(
                "input_overwritten",
                "The kernel stores into its input, which belongs to the caller.",
                at,
                f"Counted: {count(result.x_stores, 'element')} of x stored to.",
                "Allocate the output with torch.empty_like(x) and store there.",
            )
        self.check_races(case, result, at)
        self.check_outputs(session, case, result, at)

    def check_races(self, case: Case, result: Result, at: str) -> None:
        """Raise a Finding for a program that loads what another of the same launch stored."""
        if not result.races:
            return
        kernel, program, other = result.races[0]
        raise Finding(
            "race",
            f"Program {_program(program)} of {kernel} loads what another program of the same launch stored.",
            at,
            f"It was stored by program number {other}. The interpreter runs programs one after another; a "
            "GPU runs them side by side, in any order, and the value may not be there yet.",
            "Let a second launch read it: a launch begins when the one before it has ended.",
        )

    def shape_trouble(self, session: Session, case: Case, result: Result) -> None:
        """Raise a Finding for an exception whose reason shows in the shapes."""
        if "power of 2" in result.error["text"]:
            return  # said better by the translation
        odd = case.x.shape[1] & (case.x.shape[1] - 1)
        if odd and self.right(session, [replace(case, x=case.x[:, :64].copy(), gap=0)]):
            raise Finding(
                "power_of_two_only",
                "It works for row lengths that are powers of two, and raises for others.",
                f"With 64 of the {case.x.shape[1]} columns it is right; with all of them: "
                f"{result.error['type']}: "
                f"{result.error['text'][:200]}",
                next="Round the row length up with triton.next_power_of_2, and mask the lanes past the row.",
            )

    def check_outputs(self, session: Session, case: Case, result: Result, at: str) -> None:
        names = ", ".join(self.outputs)
        if len(result.outputs) != len(self.outputs) or not all(o["tensor"] for o in result.outputs):
            got = ", ".join(
                o.get("type", "a tensor") if not o["tensor"] else "a tensor" for o in result.outputs
            )
            raise Finding(
                "wrong_return",
                f"The function returns {got}; it should return {names}.",
                at,
                next=f"End it with `return {names}`.",
            )
        if result.tuple and len(self.outputs) == 1:
            raise Finding(
                "wrong_return",
                f"The function returns a tuple, or a list, that holds {names}; {names} itself is asked for.",
                at,
                next=f"End it with `return {names}`, without a comma or brackets.",
            )
        for index, (name, output) in enumerate(zip(self.outputs, result.outputs, strict=True)):
            shape, dtype = list(self.shape_of(index, case.x)), self.dtype_of(index, case.x)
            if output["shape"] != shape:
                raise Finding(
                    "wrong_shape",
                    f"{name} has the shape {tuple(output['shape'])}; it should be {tuple(shape)}.",
                    at,
                    next=f"Allocate {name} with that shape.",
                )
            if output["dtype"] != dtype:
                raise Finding(
                    "wrong_dtype",
                    f"{name} is {output['dtype']}; for this input it should be {dtype}.",
                    at,
                    next="torch.empty_like(x) has the dtype of x." if dtype == str(case.x.dtype) else "",
                )
            if output["given"]:
                raise Finding(
                    "returns_input",
                    f"The function returns its input, x, in place of {name}.",
                    at,
                    next=f"Allocate {name}, let the kernel store into it, and return {name}.",
                )
            if not result.launches:
                raise Finding(
                    "no_launch",
                    "No kernel was launched on this input.",
                    at,
                    "A result that was kept from an earlier call, or that was made without a kernel, does "
                    "not count.",
                    "Launch the kernel each time the function is called: kernel[grid](…).",
                )
            self.check_written(session, case, result, index, name, at)

    def check_written(
        self, session: Session, case: Case, result: Result, index: int, name: str, at: str
    ) -> None:
        output = result.outputs[index]
        if "stored" not in output:
            raise Finding(
                "not_from_a_kernel",
                f"{name} is not a tensor that this call allocated with PyTorch: it was made in an earlier "
                "call, or by other means.",
                at,
                next=f"Allocate {name} anew in each call, with torch.empty_like(x), and let the kernel store "
                "into it: whoever keeps an earlier result would find it overwritten.",
            )
        stored = result.stored(index)
        if stored.size == 0 or (stored > 0).all():
            return
        by_row = stored.reshape(stored.shape[0], -1) > 0
        empty_rows = np.flatnonzero(~by_row.any(axis=1))
        if not by_row.any():
            raise Finding(
                "nothing_stored",
                f"No kernel stored anything into {name}.",
                at,
                grids(result.launches),
                f"End the kernel with tl.store to {name}'s addresses.",
            )
        first = int(np.argmax(stored.ravel() == 0))
        row, column = divmod(first, by_row.shape[1])
        if row and column and not stored.ravel()[first:].any() and stored.max() == 1:
            raise Finding(
                "columns_unwritten",
                f"Nothing of {name} was written from row {row}, column {column} on: {stored.size - first:,} "
                f"of {count(stored.size, 'element')}.",
                at,
                grids(result.launches),
                "Where each program takes the next BLOCK elements, whatever their row, the number of "
                "programs is rounded up: triton.cdiv(rows * columns, BLOCK).",
            )
        if len(empty_rows):
            again = int(stored.max())
            programs = int(result.launches[-1]["grid"][0])
            inside = programs >= len(by_row) or len(by_row) - len(empty_rows) > programs
            for look in (addressing.one_axis, addressing.stride_of_columns):
                if again > 1 and (finding := look(session, result, name, at)) is not None:
                    raise finding
            rows = which("row", empty_rows)
            over = int(np.argmax(stored.reshape(len(stored), -1).max(axis=1)))
            raise Finding(
                "rows_unwritten",
                f"Rows of {name} were never written: {rows} of {len(by_row)}."
                if len(empty_rows) > 1
                else f"A row of {name} was never written: {rows} of {len(by_row)}.",
                at,
                f"Row {over} was stored {again} times instead: the address of the store does not say which "
                "row is meant."
                if again > 1
                else f"{grids(result.launches)} The matrix has {len(by_row)} rows.",
                f"Start the row that program `row` stores at row times {name}'s row stride."
                if again > 1
                else "Let the programs together take every row: a loop over rows ends at the number of rows, "
                "and where rows are divided among programs the quotient is rounded up, "
                "triton.cdiv(rows, …), and the rows are masked."
                if inside
                else "Launch one program for every row, and let each program find its row from "
                "tl.program_id(0). Where each program takes several rows, their number is rounded up: "
                "triton.cdiv(rows, programs).",
            )
        row = int(np.flatnonzero(~by_row.all(axis=1))[0])
        missing = np.flatnonzero(~by_row[row])
        again = int(stored.max())
        if again > 1:
            raise Finding(
                "columns_unwritten",
                f"Tiles of {name} are stored on top of each other: in row {row} some columns are stored "
                f"{again} times, and {len(missing)} never.",
                at,
                f"The first column that was never written is {missing[0]}.",
                "A tile has columns of its own: start + the lanes, in the load and in the store.",
            )
        if len(missing) == 1 and missing[0] == by_row.shape[1] - 1 and missing[0]:
            raise Finding(
                "columns_unwritten",
                f"The last column of {name} was never written: the mask cuts it off.",
                at,
                f"Columns are counted from 0, so the last of {by_row.shape[1]} is {missing[0]}.",
                "The mask is column < columns.",
            )
        together = missing[0] == missing[-1] - len(missing) + 1
        whole = together and missing[-1] == by_row.shape[1] - 1
        head = together and missing[0] == 0 and not whole
        raise Finding(
            "columns_unwritten",
            f"Columns of {name} were never written: in row {row}, {len(missing):,} of {by_row.shape[1]:,}, "
            f"the first is column {missing[0]}."
            if len(missing) > 1
            else f"Column {missing[0]} of {name} was never written in row {row}.",
            at,
            f"All columns from {missing[0]} to the end are missing: the block, or the last tile, stops short "
            "there."
            if whole
            else f"All columns up to {missing[-1]} are missing, and the rest is there: the first tile is "
            "left out."
            if head
            else "",
            "Let the walk take the tile that starts at column 0 too: range(a, 0, -TILE) stops before it."
            if head
            else "Cover every column: BLOCK of at least the number of columns, or tiles up to and including "
            "the last, partial one.",
        )

    def check_faults(self, session: Session, case: Case, result: Result) -> None:
        if not result.faults:
            return
        fault = result.faults[0]
        rows, columns = case.x.shape
        program = _program(fault["program"])
        verb, past = ("loads", "loaded") if fault["operation"] == "load" else ("stores", "stored")
        names = {"x": "x"} | {o.get("region"): n for n, o in zip(self.outputs, result.outputs, strict=False)}
        name = names.get(fault["tensor"]) or addressing.called(result, fault["tensor"], fault["kernel"])
        lanes = count(fault["lanes"], "lane")
        row, column = fault["row"], fault["column"]
        # Whole rows past the end; what is past the end of the last row alone is seldom a multiple of one.
        rows_past = fault["lanes"] // columns if columns & (columns - 1) else 0
        if rows_past * columns != fault["lanes"] or (row, column) != (rows - 1, columns):
            rows_past = 0
        place = f"row {rows}, column 0" if rows_past else f"row {row}, column {column}".replace("-", "−")
        at = (
            f"The case: x is {case.shape} {dtype_name(case)}, {case.about}. Program {program} {verb} {place} "
            f"({lanes}); x has {count(rows, 'row')} and {count(columns, 'column')}, counted from 0."
        )
        if tuple(fault["shape"]) != case.x.shape:
            raise Finding(
                "out_of_bounds",
                f"The kernel {verb} outside {name}.",
                f"The case: x is {case.shape} {dtype_name(case)}, {case.about}. Program {program} of "
                f"{fault['kernel']} "
                f"{verb} elements that {name}, of shape {tuple(fault['shape'])}, does not have: "
                + (f"element {column}" if len(fault["shape"]) == 1 else f"row {row}, column {column}")
                + f" ({lanes}).",
                grids(result.launches),
                addressing.other_layout(session, result, fault, name),
            )  # fmt: skip
        tweaked = self._flat_again(session, case)
        if (
            case.gap
            and tweaked
            and fault["operation"] == "store"
            and {f["operation"] for f in result.faults} == {"store"}
        ):
            raise Finding(
                "output_stride",
                f"The kernel stores outside {name}: it takes the row stride of x for that of {name}.",
                at,
                f"Proven: the same numbers in a matrix without gaps come out right. Here the rows of x start "
                f"{columns + case.gap} elements apart, and those of {name} {columns}.",
                f"Each tensor has its own: start the row at {name}_ptr + row * {name}.stride(0).",
            )
        if case.gap and tweaked:
            proof = "Proven: the same numbers in a matrix without gaps come out right."
            if (finding := addressing.wrong_stride(session, case, result, at, proof)) is not None:
                raise finding
            raise Finding(
                "row_stride",
                f"The kernel {verb} outside {name}: it takes the number of columns for the row stride.",
                at,
                f"Proven: the same numbers in a matrix without gaps come out right. Here a row starts "
                f"{columns + case.gap} elements after the one before it, and has {columns} columns.",
                "Pass x.stride(0) to the kernel and start the row at x_ptr + row * x_stride.",
            )
        alone, even = replace(case, x=case.x[:1].copy(), gap=0), replace(case, x=case.x[:, :64].copy(), gap=0)
        if rows > 1 and columns > 64 and self.right(session, [alone, even]):
            raise Finding(
                "row_stride",
                f"The kernel {verb} outside {name}: it takes the block's width, a power of two, for the row "
                "stride.",
                at,
                "Proven: a single row comes out right, and so do rows of 64 columns, where the two are the "
                "same.",
                "Pass x.stride(0) to the kernel and start the row at x_ptr + row * x_stride.",
            )
        if (finding := addressing.masked_wrongly(case, result, fault, at)) is not None:
            raise finding
        others = {f["operation"] for f in result.faults}
        both = " (the store does it too)" if fault["operation"] == "load" and "store" in others else ""
        if column < 0 <= row:
            raise Finding(
                "before_the_row",
                f"The kernel {verb} elements before the start of a row of {name}: negative columns{both}.",
                at,
                next="Let a tile start at column 0 or later, at a multiple of its width; or mask both ends: "
                "(column >= 0) & (column < columns).",
            )
        if rows_past:
            raise Finding(
                "row_out_of_bounds",
                f"The kernel {verb} rows that {name} does not have: a tile reaches past the last row, and "
                f"its mask stops columns only{both}.",
                at,
                f"The grid was {grid(result.launches[0])}.",
                "Where a tile has several rows, the mask has two parts: (row < rows) & (column < columns).",
            )
        if (finding := addressing.moved_twice(session, fault, name, at)) is not None:
            raise finding
        if row >= rows or row < 0:
            finding = addressing.beyond_the_rows(session, case, result, fault, name, at)
            if finding is not None:
                raise finding
            raise Finding(
                "row_out_of_bounds",
                f"The kernel {verb} rows that {name} does not have.",
                at,
                f"The grid was {grid(result.launches[0])}.",
                "Launch one program a row, or mask the rows as well as the columns.",
            )
        if fault["lanes"] == 1 and column == columns:
            raise Finding(
                "mask_off_by_one",
                f"The mask lets one lane too many through: column {columns} is {past}, and the row ends at "
                f"{columns - 1}.",
                at,
                next="Columns are counted from 0: the mask is column < columns.",
            )
        kind = "load_mask" if fault["operation"] == "load" else "store_mask"
        raise Finding(
            kind,
            f"The kernel {verb} past the end of a row of {name}: the tl.{fault['operation']} has no mask, or "
            "one that "
            f"lets too much through{both}.",
            at,
            next=f"Give tl.{fault['operation']} the mask column < columns"
            + (", and other=-float('inf')." if kind == "load_mask" and self.fills else "."),
        )

    def _flat_again(self, session: Session, case: Case) -> bool:
        """True if the case comes out right once its rows lie next to each other."""
        return bool(case.gap) and self.right(session, [replace(case, gap=0)])

    # Values

    def wrong(self, case: Case, result: Result, index: int) -> np.ndarray:
        """A mask of the elements of an output that are wrong."""
        wanted = self.expected(case.x)[index]
        allowed = self.tolerance(case, self.expected(case.x))[index]
        got = result.values(index).astype(np.float64)
        with np.errstate(invalid="ignore"):
            return ~((np.abs(got - wanted) <= allowed) | (got == wanted) | (np.isnan(got) & np.isnan(wanted)))

    def wrong_rows(self, case: Case, result: Result) -> np.ndarray | None:
        """The rows with a wrong element in any output, or None."""
        bad = np.zeros(case.x.shape[0], dtype=bool)
        for index in range(len(self.outputs)):
            bad |= self.wrong(case, result, index).reshape(len(bad), -1).any(axis=1)
        return np.flatnonzero(bad) if bad.any() else None

    def right(self, session: Session, cases: list[Case], tweaks: Tweaks | None = None) -> bool:
        """True if all these cases, run again (under the tweaks), come out right."""
        results = session.run(cases, tweaks)
        return len(results) == len(cases) and all(
            result.error is None
            and not result.message["refused"]
            and self.whole(result)
            and (tweaks is not None or not result.faults)
            and self.wrong_rows(case, result) is None
            for case, result in zip(cases, results, strict=True)
        )

    def whole(self, result: Result) -> bool:
        """True if there are values to compare."""
        return len(result.outputs) == len(self.outputs) and all("values" in o for o in result.outputs)

    def matches(self, case: Case, result: Result, guess) -> bool:
        """True if the outputs are, to about float32's accuracy, what a guess at the mistake predicts."""
        guesses = guess if isinstance(guess, tuple) else (guess,)
        return all(
            self.near(case, result.values(index), one, index).all()
            for index, one in enumerate(guesses)
            if one is not None
        )

    def near(self, case: Case, got: np.ndarray, guess: np.ndarray, index: int) -> np.ndarray:
        """Where an output is as good as equal to a guess."""
        got, guess = got.astype(np.float64), np.asarray(guess, dtype=np.float64)
        coarse = 2.0**-9 if self.dtype_of(index, case.x) == "float16" else 2.0**-14
        with np.errstate(invalid="ignore", over="ignore"):
            guess = guess.astype(self.dtype_of(index, case.x)).astype(
                np.float64
            )  # what overflows there is infinite
            close = np.isfinite(guess) & (np.abs(got - guess) <= coarse * np.abs(guess) + 1e-30)
        return close | (got == guess) | (np.isnan(got) & np.isnan(guess))

    def recognise(self, case: Case, result: Result, telling: bool = True) -> list:
        """The rows of the fingerprint table that the outputs equal; telling: and that are wrong here."""
        wanted, found = self.expected(case.x), []
        for entry in self.fingerprint_table(case, result.widest_load):
            guesses = entry[1] if isinstance(entry[1], tuple) else (entry[1],)
            given = [
                (i, np.asarray(g)) for i, g in enumerate(guesses) if g is not None and not np.isnan(g).all()
            ]
            # NaN tells nothing: much leads there. Nor does what is not demanded, such as the m beside a NaN.
            tells = any(
                (~self.near(case, g, wanted[i], i) & ~np.isnan(g) & self.wrong(case, result, i)).any()
                for i, g in given
            )
            if given and (tells or not telling) and self.matches(case, result, entry[1]):
                found.append(entry)
        return found

    def diagnose(self, session, case, result, bad, cases, results) -> Finding:
        """The Finding for wrong values: the mistake that an experiment proves, or what is known."""
        small, small_result = self.shrink(session, case, bad, result.widest_load)
        session.wrong = [
            (c, r)
            for c, r in zip(cases, results, strict=False)
            if not r.error and self.whole(r) and self.wrong_rows(c, r) is not None
        ]
        shown = self.show_case(small, small_result)
        for experiment in self.experiments():
            finding = experiment(self, session, case, result)
            if finding is not None:
                named = re.match(r"Row (\d+)\b", finding.what)
                if named and int(named[1]) != bad[0] and not finding.case:  # show the row it speaks of
                    shown = self.show_case(*self.shrink(session, case, [int(named[1])], result.widest_load))
                finding.case = finding.case or shown
                return finding
        tried = {
            c.about: self.wrong_rows(c, r) is None
            for c, r in zip(cases, results, strict=False)
            if not r.error
        }
        good = [about for about, is_right in tried.items() if is_right]
        poor = [about for about, is_right in tried.items() if not is_right]
        more = f", and for {len(poor) - 3} more" if len(poor) > 3 else ""
        known = (
            f"{'Before the cut: right' if small is not case else 'Right'} for {len(good)} of {len(tried)} "
            f"inputs; wrong for {'; for '.join(poor[:3])}{more}."
        )
        return Finding(
            None, "The values are wrong, and no mistake that the check knows explains them.", shown,
            known, self.guess(case, tried),
        )  # fmt: skip

    def shrink(self, session: Session, case: Case, bad: np.ndarray, tile: int) -> tuple[Case, Result]:
        """A case of one short row that still fails, if there is one; else the failing row of the case."""
        row = case.x[bad[0] : bad[0] + 1]
        # Some mistakes need a second tile, or a third.
        widths = sorted({n for n in (*SHRUNK, tile + 1, 2 * tile, 2 * tile + 1) if n < row.shape[1]}) + [
            row.shape[1]
        ]
        cut = f"cut from row {bad[0]} of: {case.about}" if len(case.x) > 1 else f"cut from: {case.about}"
        short = [replace(case, x=row[:, :n].copy(), gap=0, about=cut) for n in widths]
        short.append(case)
        results = session.run(short)
        for candidate, result in zip(short, results, strict=False):
            if result.error is None and self.whole(result) and self.wrong_rows(candidate, result) is not None:
                return candidate, result
        return case, session.run([case])[0]

    def show_case(self, case: Case, result: Result) -> str:
        """The smallest case, the row, the expected and the got, a few numbers of each."""
        rows = self.wrong_rows(case, result)
        row = int(rows[0]) if rows is not None else 0
        wanted = self.expected(case.x)
        place = f"; row {row}" if len(case.x) > 1 else ""
        lines = [f"The smallest case found: x is {case.shape} {dtype_name(case)}, {case.about}{place}:"]
        index = next((i for i in range(len(self.outputs)) if self.wrong(case, result, i).any()), 0)
        several = len(self.outputs) > 1
        wrong = self.wrong(case, result, index).reshape(case.x.shape[0], -1)[row]
        pairs = [
            (np.atleast_1d(wanted[i][row]), np.atleast_1d(result.values(i)[row]))
            for i in range(len(self.outputs))
        ]
        start = excerpt(case.x[row], wrong, *pairs[index])
        cut = slice(start, start + SHOWN)
        columns = f" from column {start}" if start else ""
        lines.append(f"  x        {numbers(case.x[row][cut])}{columns}")
        for i, pair in enumerate(pairs):
            demanded = not np.isnan(pair[0]).all() or self.wrong(case, result, i)[row].any()
            if i != index and not (several and demanded):
                continue
            name = f"{self.outputs[i]} " if several else ""
            one = slice(0, SHOWN) if len(pair[0]) == 1 else cut
            bad = np.atleast_1d(self.wrong(case, result, i)[row])[one]
            expected, got = side_by_side(pair[0][one], pair[1][one], bad)
            lines.append(f"  expected {name}{expected}")
            lines.append(f"  got      {name}{got}")
        return "\n".join(lines)

    # Cost

    def check_cost(self, session: Session, case: Case, result: Result) -> None:
        """Raise a Finding for right values at too high a price, or at none."""
        rows, columns = case.x.shape
        unread = int((result.x_loads == 0).sum())
        if unread and columns > 1:
            raise Finding(
                "input_unread",
                f"No kernel loads {unread:,} of the {count(case.x.size, 'element')} of x.",
                f"The case: x is {case.shape} {dtype_name(case)}, {case.about}.",
                next="Load x in the kernel, and compute there what depends on it.",
            )
        loads, stores = self.allowed(rows, columns)
        at = f"The case: x is {case.shape} {dtype_name(case)}, {case.about}."
        size = case.x.dtype.itemsize
        if self.max_tile and result.widest_load > self.max_tile:
            raise Finding(
                "tile_too_wide",
                f"One load covers {result.widest_load} columns; tiles here hold at most {self.max_tile}.",
                at,
                next=f"Fix the width of a tile, at most {self.max_tile}, and cover longer rows with more of "
                "them.",
            )
        if result.loads > loads:
            times = result.x_loads.mean() if result.x_loads.size else 0
            scratch = result.scratch_loads
            what = f"You read each element of x {times:.3g} times; {loads / case.x.size:.3g} would do."
            fewer = self.fewer_loads
            if times - loads / case.x.size < 0.05:
                what = f"Elements loaded beyond what is needed: {result.loads - loads}."
                fewer = (
                    "Leave out the small load besides those of the whole row: what it brings is in the tiles "
                    "too. A running maximum can start at −∞."
                )
            if scratch:
                what = (
                    f"Besides x, {count(scratch, 'element')} that the kernel had stored itself "
                    f"{'are' if scratch > 1 else 'is'} read back; values that the same program needs again "
                    "can stay in registers."
                )
            if scratch and len(result.launches) > 1 and result.x_loads.sum() <= loads:
                raise Finding(
                    "extra_launches",
                    f"The values are right, but it takes {len(result.launches)} launches, and what one "
                    "leaves for the next goes through memory.",
                    at,
                    f"Counted: {count(result.stores - case.x.size, 'element')} stored besides the result, "
                    f"{count(scratch, 'element')} of that loaded again.",
                    "Here one program has the whole row to itself: in a single launch it can keep in "
                    "variables what the next step needs, without tensors for it.",
                )
            raise Finding(
                "extra_loads",
                f"The values are right, but the traffic is too high. {what}",
                at,
                f"Counted: {count(result.loads, 'element')} loaded ({result.loads * size:,} bytes); needed: "
                f"{loads:,} ({loads * size:,} bytes). Stored: {result.stores:,}.",
                fewer,
            )
        if result.stores > stores:
            raise Finding(
                "extra_stores",
                f"The values are right, but the kernel stores {count(result.stores, 'element')} where "
                f"{stores:,} {'are' if stores > 1 else 'is'} needed.",
                at,
                f"Counted: {result.stores * size:,} bytes stored; needed: {stores * size:,}.",
                "Store the result once, when it is final.",
            )
        if self.max_launches and len(result.launches) > self.max_launches:
            raise Finding(
                "extra_launches",
                f"The values are right, but it takes {len(result.launches)} launches where "
                f"{self.max_launches} is "
                "allowed.",
                at,
                "Each launch costs several microseconds, and what one kernel leaves for the next goes "
                "through memory.",
                "Do all of it in one kernel.",
            )

    def earned(self, cases: list[Case], results: list[Result]) -> list[str]:
        case, result = max(zip(cases, results, strict=True), key=lambda pair: pair[0].x.size)
        loads, stores = result.loads / case.x.size, result.stores / case.x.size
        right = sum(c.x.shape[0] for c in cases)
        moved = f"{loads:.3g} load{_s(loads)} and {stores:.3g} store{_s(stores)} for each element"
        if stores < 0.1:
            stores = result.stores / case.x.shape[0]
            moved = (
                f"{loads:.3g} load{_s(loads)} for each element, {stores:.3g} store{_s(stores)} for each row"
            )
        return [
            f"{len(cases)} inputs, {right} rows, right to the last digits that {'float32'} allows.",
            f"Traffic, metered on {case.shape}: {moved}, "
            f"{count(len(result.launches), 'launch', 'launches')}.",
        ]


def large(rng: np.random.Generator, widths: tuple[int, int], rows: tuple[int, int] = (80, 160)) -> list[Case]:
    """One wide row, its length drawn evenly on a logarithmic scale, and a tall matrix of three columns."""
    columns = int(np.exp(rng.uniform(*np.log(widths)))) | 1
    wide = (rng.normal(size=(1, columns)) * 3).astype(np.float32)
    tall = (rng.normal(size=(int(rng.integers(*rows)), 3)) * 2).astype(np.float32)
    return [
        Case("wide", f"a row of {columns:,} columns", wide),
        Case("tall", f"{len(tall)} rows of three columns", tall),
    ]


ROW_NOT_SCALED = (
    "The row number is added as it is, so each row starts one element after the one before, not one row "
    "after it."
)


def windows(x: np.ndarray, gap: int) -> np.ndarray:
    """What is loaded at x_ptr + row + column; NaN, which says nothing, where rows lie apart."""
    if gap or x.shape[1] < 2:
        return np.full(x.shape, np.nan)
    return np.lib.stride_tricks.sliding_window_view(x.ravel(), x.shape[1])[: len(x)]


# Experiments of any such exercise: each gets the failing case and its result, and returns a Finding or None.


def row_stride(exercise, session, case, result):
    """The number of columns taken for the row stride, where that stays inside the tensor."""
    if not case.gap or not exercise.right(session, [replace(case, gap=0)]):
        return None
    columns = case.x.shape[1]
    proof = "Proven: the same numbers in a matrix without gaps come out right."
    if (finding := addressing.wrong_stride(session, case, result, "", proof)) is not None:
        return finding
    return Finding(
        "row_stride",
        "The kernel takes the number of columns for the row stride.",
        "",
        "Proven: the same numbers in a matrix without gaps come out right. Here a row starts "
        f"{columns + case.gap} "
        f"elements after the one before it, and has {columns} columns.",
        "Pass x.stride(0) to the kernel and start the row at x_ptr + row * x_stride.",
    )


def fingerprints(exercise, session, case, result):
    """Mistakes that leave a known output."""
    pairs = [(case, result)]
    # Once more without masked lanes, which may hide what the rest does.
    tile, columns = result.widest_load, case.x.shape[1]
    whole = columns // tile * tile if 0 < tile < columns else 64
    if columns > whole:
        pairs += run_again(exercise, session, replace(case, x=case.x[:, :whole].copy(), gap=0))
    possible = {name for name, *_ in exercise.recognise(case, result, telling=False)}
    for other, outcome in pairs + session.wrong:
        found = exercise.recognise(other, outcome)
        if (other, outcome) not in pairs:
            found = [f for f in found if f[0] in possible]
        if other is case or (other, outcome) not in pairs:
            found = [f for f in found if not contradicted(exercise, session, other, f[0])]
        # Where several mistakes give the same here, the other inputs that came out wrong decide.
        for another in session.wrong:
            if len({name for name, *_ in found}) > 1 and another[0] is not other:
                names = {name for name, *_ in exercise.recognise(*another)}
                found = [f for f in found if f[0] in names] or found
        if found:
            mistake, _, what, advice = found[0]
            if mistake == "row_not_scaled":
                what, advice = addressing.not_scaled(session) or (what, advice)
            return Finding(mistake, what, "", "The output is, number for number, what that gives.", advice)
    return one_tile(exercise, session, case, result)


def contradicted(exercise, session, case, mistake) -> bool:
    """True if other plain inputs came out wrong too, and none of them as the mistake would have it."""
    plain = [
        (c, r)
        for c, r in session.wrong
        if c is not case and c.x.dtype == np.float32 and not c.gap and c.x.shape[1] > 1
        and np.isfinite(c.x).all() and np.abs(c.x).max() < 40
    ]  # fmt: skip
    return bool(plain) and not any(
        mistake in {name for name, *_ in exercise.recognise(c, r, telling=False)} for c, r in plain
    )


# What a walk of several tiles mixes with its rescaling.
ONE_TILE = ("sign", "no_exponential", "sum_of_inputs")


def one_tile(exercise, session, case, result):
    """The same in one tile, and with numbers in the masked lanes: −∞ there may make NaN of all else."""
    # A second row, since in one of them the terms of a sum may all but cancel: no two ways of adding agree.
    for row in exercise.wrong_rows(case, result)[:2]:
        if (finding := one_tile_of(exercise, session, case, result, int(row))) is not None:
            return finding
    return None


def one_tile_of(exercise, session, case, result, row):
    """The same of one row."""
    tile = result.widest_load
    small = replace(case, x=case.x[row : row + 1, : min(64, tile)].copy(), gap=0)
    # Near a constant row, or far from 0, too much is 0 or 1 whatever is wrong.
    if not tile or not np.abs(small.x).max() < 40 or np.ptp(small.x) < 1:
        return None
    tried = [(small, None, "In a row of one tile the")]
    if 64 < tile < case.x.shape[1]:
        tried[:0] = [(replace(small, x=case.x[row : row + 1, :tile].copy()), None, tried[0][2])]
    if result.fills:
        for fill in (0.0, float(small.x.max())):
            lanes = f"With {fill:.4g} in the masked lanes the".replace("-", "−")
            tried.append((small, Tweaks(masked_lanes=fill), lanes))
    for one, tweaks, where in tried:
        for _, again in run_again(exercise, session, one, tweaks):
            for mistake, _, what, advice in exercise.recognise(one, again):
                if mistake in ONE_TILE or tile >= case.x.shape[1]:
                    why = f"{where} output is, number for number, what that gives."
                    return Finding(mistake, what, "", why, advice)
    return None


def run_again(exercise, session, case, tweaks=None) -> list:
    """[(case, result)], or nothing if the case did not run to its end, or came out right."""
    again = session.run([case], tweaks)[0]
    if again.error or not exercise.whole(again) or exercise.wrong_rows(case, again) is None:
        return []
    return [(case, again)]


def excerpt(x: np.ndarray, wrong: np.ndarray, wanted: np.ndarray, got: np.ndarray) -> int:
    """The first column to show of a row: near a NaN that is to be seen, else near a value far off."""
    if len(x) <= SHOWN:
        return 0
    if np.isnan(x).any() or len(wrong) != len(x):  # one result for the whole row: show its largest value
        at = int(np.argmax(x))  # which takes NaN for the largest
    else:
        with np.errstate(all="ignore"):
            error = np.abs(got.astype(np.float64) - wanted) / np.maximum(np.abs(wanted), 1e-30)
        error = np.where(wrong, np.nan_to_num(error, nan=np.inf), -1.0)
        at = int(np.argmax(error >= min(error.max() / 2, 0.01)))
    return max(0, min(at - 1, len(x) - SHOWN))


def _program(program) -> str:
    """A program's number, or its place in the grid: "3", "(3, 1)"."""
    program = tuple(program)
    while len(program) > 1 and not program[-1]:
        program = program[:-1]
    return str(program) if len(program) > 1 else str(program[0])


def _s(number: float) -> str:
    return "" if abs(number - 1) < 0.005 else "s"
