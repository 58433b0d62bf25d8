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


def size(value: float) -> str:
    """A number of columns or rows: 781, 50,257, 64K, 4M. K and M are powers of two, where they are exact."""
    value = int(value)
    for unit, letter in ((1 << 20, "M"), (1 << 10, "K")):
        if value >= unit and value % unit == 0:
            return f"{value // unit}{letter}"
    return f"{value:,}"


def quantity(value: float, unit: str) -> str:
    """A quantity with a prefix in steps of a thousand and three digits: 16.8 MB, 5.40 µs, 134 GB."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g} {unit}"
    prefixes = {-3: "n", -2: "µ", -1: "m", 0: "", 1: "k", 2: "M", 3: "G", 4: "T", 5: "P"}
    step = min(max(math.floor(math.log10(abs(value)) / 3 + 1e-12), -3), 5)
    scaled = value / 1000.0**step
    if abs(scaled) >= 999.5 and step < 5:
        step, scaled = step + 1, scaled / 1000
    whole = unit == "B" and step == 0
    text = f"{scaled:.{0 if whole or abs(scaled) >= 99.95 else 1 if abs(scaled) >= 9.995 else 2}f}"
    return f"{text} {prefixes[step]}{unit}"


def decimals(value: float) -> str:
    """A sum or a factor, four decimals where they say something: 1.1851, 2.06e-09."""
    return f"{value:.4f}" if math.isfinite(value) and (value == 0 or abs(value) >= 5e-5) else f"{value:.2e}"


def cell(value, coarse: bool = False) -> str:
    """How a table writes a value: 33,570,816; 0.8438; 4,167; – for None. coarse: no decimals from 100 on."""
    if value is None:
        return "–"
    if not is_number(value):
        return str(value)
    if not math.isfinite(value):
        return number(value)
    size = abs(value)
    if (float(value).is_integer() and size < 1e15) or size >= (100 if coarse else 1000):
        text = f"{value:,.0f}"
    else:
        text = f"{value:.4g}" if size >= 1e-4 else f"{value:.3e}"
    return text.replace("-", "−")


def is_number(value) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def read_number(value) -> int | float | None:
    """value as a number, from 3, "1,024", "4x", "2.5 %" or a tensor of one element; None if it is none."""
    if isinstance(value, bool):
        return None
    if isinstance(value, (int, float)):
        return value
    if isinstance(value, str):
        text = value.strip().replace(",", "").replace("_", "").replace("−", "-").rstrip("×x% ").strip()
        try:
            number = float(text)
        except ValueError:
            return None
        return int(number) if number.is_integer() and abs(number) < 2**53 else number
    try:
        value = value.item() if hasattr(value, "item") else value
        number = float(value)
    except Exception:  # whatever an unknown object does when it is asked to be a number
        return None
    return int(number) if isinstance(value, int) else number
