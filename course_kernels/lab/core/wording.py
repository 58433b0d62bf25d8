"""Numbers, counts and grids, as messages write them."""

import math
import re

LONGEST = 120  # characters of a learner's line that a message shows


def count(number: int, noun: str, plural: str = "") -> str:
    """ "1 row", "3 rows", "1,024 rows"; plural where it is not the noun with an s."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def which(noun: str, values, most: int = 5) -> str:
    """ "row 3", "rows 1 and 2", "rows 0, 1, 2, 3, 4 and 7 more"."""
    values = [f"{v:,}" for v in values]
    if len(values) > most + 1:
        values = values[:most] + [f"{len(values) - most:,} more"]
    if len(values) < 2:
        return f"{noun} {''.join(values)}"
    return f"{noun}s {', '.join(values[:-1])} and {values[-1]}"


def grid(launch: dict) -> str:
    """A launch's grid as a learner writes it: "(3,)", "(3, 2)"."""
    numbers = [int(n) for n in launch["grid"]]
    while len(numbers) > 1 and numbers[-1] == 1:
        numbers.pop()
    return f"({numbers[0]},)" if len(numbers) == 1 else str(tuple(numbers))


def grids(launches: list[dict]) -> str:
    """A sentence on the grids of all launches."""
    if len(launches) == 1:
        return f"The grid was {grid(launches[0])}."
    return f"The grids were {', then '.join(grid(launch) for launch in launches)}."


def numbers(values, most: int = 6, digits: int = 5) -> str:
    """A few numbers in brackets."""
    values = list(values.flat if hasattr(values, "flat") else values)  # an array of any shape, or a list
    text = ", ".join(number(v, digits) for v in values[:most])
    return f"[{text}{', …' if len(values) > most else ''}]"


def number(value, digits: int = 5) -> str:
    """One number, with a true minus sign."""
    value = float(value)
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "−∞" if value < 0 else "∞"
    return f"{value:.{digits}g}".replace("-", "−")


def side_by_side(wanted, got, wrong) -> tuple[str, str]:
    """Two rows of numbers, with as many digits as it takes to see where they differ (`wrong`, a mask)."""
    differ = [(w, g) for w, g, bad in zip(wanted, got, wrong, strict=True) if bad]
    enough = (n for n in (5, 7, 9) if all(number(w, n) != number(g, n) for w, g in differ))
    digits = next(enough, 17)
    return numbers(wanted, digits=digits), numbers(got, digits=digits)


def echo(source: str) -> str:
    """A line of the learner's, as a message shows it."""
    source = printable(source).strip()
    return source if len(source) <= LONGEST else source[: LONGEST - 1] + "…"


def printable(text: str) -> str:
    """The text without terminal colours and control characters, newline and tab excepted."""
    return re.sub(r"\x1b\[[0-9;]*[A-Za-z]|[\x00-\x08\x0b-\x1f\x7f]", "", text)
