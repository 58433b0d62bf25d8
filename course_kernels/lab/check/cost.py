"""Right values at too high a price: elements, tiles and launches beyond what an exercise allows."""

from functools import cached_property

from course_kernels.lab.check.finding import Counted
from course_kernels.lab.check.mistakes import Mistake
from course_kernels.lab.check.trial import Trial
from course_kernels.lab.core.wording import count


class Price(Trial):
    """A trial, and what it may cost: loads and stores, in elements."""

    def __init__(self, trial: Trial):
        self.__dict__.update(trial.__dict__)
        self.__dict__.pop("words", None)
        free = (self.facts.loads, self.facts.stores)  # where the exercise's own rows say what is too much
        self.loads, self.stores = self.exercise.traffic(self.case) if self.exercise.traffic else free

    @property
    def unread(self) -> dict[str, int]:
        """{input: elements of it that no kernel loaded}."""
        return {name: n for name, seen in self.facts.loads_of.items() if (n := int((seen == 0).sum()))}

    @property
    def times(self) -> float:
        """How often an element of x was read, on average."""
        return float(self.facts.x_loads.mean()) if self.facts.x_loads.size else 0.0

    @property
    def needed(self) -> float:
        """How often it must be."""
        return self.loads / self.case.x.size

    @property
    def too_much(self) -> bool:
        return self.facts.loads > self.loads

    @cached_property
    def words(self) -> dict:
        facts, size, scratch = self.facts, self.case.x.itemsize, self.facts.scratch_loads
        unread = self.unread
        return super().words | {
            "unread": f"{next(iter(unread.values()), 0):,}", "input": next(iter(unread), "x"),
            "all": count(self.case.x.size, "element"),
            "widest": facts.widest_load, "most": self.exercise.max_tile,
            "times": f"{self.times:.3g}", "needed": f"{self.needed:.3g}", "beyond": facts.loads - self.loads,
            "scratch": count(scratch, "element"), "are": "are" if scratch > 1 else "is",
            "launches": len(facts.launches), "max_launches": self.exercise.max_launches,
            "all_": f"{self.case.x.size:,}", "besides": count(facts.stores - self.case.x.size, "element"),
            "loads": count(facts.loads, "element"), "load_bytes": f"{facts.loads * size:,}",
            "needed_loads": f"{self.loads:,}", "needed_bytes": f"{self.loads * size:,}",
            "stores": count(facts.stores, "element"), "store_bytes": f"{facts.stores * size:,}",
            "needed_stores": count(self.stores, "element"), "needed_store_bytes": f"{self.stores * size:,}",
            "fewer_loads": self.exercise.fewer_loads,
        }  # fmt: skip


COUNTED = (
    "‹loads› loaded (‹load_bytes› bytes); needed: ‹needed_loads› (‹needed_bytes› bytes). Stored: ‹stores›."
)
ROWS = (
    Mistake(
        "input_unread",
        "No kernel loads ‹unread› of the ‹all› of ‹input›.",
        "Load ‹input› in the kernel, and compute there what depends on it.",
        when=lambda p: p.unread and p.columns > 1,
    ),
    Mistake(
        "tile_too_wide",
        "One load covers ‹widest› columns; tiles here hold at most ‹most›.",
        "Fix the width of a tile, at most ‹most›, and cover longer rows with more of them.",
        when=lambda p: p.exercise.max_tile and p.facts.widest_load > p.exercise.max_tile,
    ),
    Mistake(
        "extra_launches",
        "The values are right, but it takes ‹launches› launches, and what one leaves for the next goes "
        "through memory.",
        "Here one program has the whole row to itself: in a single launch it can keep in variables what the "
        "next step needs, without tensors for it.",
        when=lambda p: p.too_much and p.facts.scratch_loads and len(p.facts.launches) > 1
        and p.facts.x_loads.sum() <= p.loads,
        why="‹besides› stored besides the result, ‹scratch› of that loaded again.",
        kind=Counted,
    ),
    Mistake(
        "extra_loads",
        "The values are right, but the traffic is too high. Besides x, ‹scratch› that the kernel had stored "
        "itself ‹are› read back; values that the same program needs again can stay in registers.",
        "‹fewer_loads›",
        when=lambda p: p.too_much and p.facts.scratch_loads,
        why=COUNTED,
        kind=Counted,
    ),
    Mistake(
        "extra_loads",
        "The values are right, but the traffic is too high. Elements loaded beyond what is needed: ‹beyond›.",
        "Leave out the small load besides those of the whole row: what it brings is in the tiles too. A "
        "running maximum can start at −∞.",
        when=lambda p: p.too_much and p.times - p.needed < 0.05,
        why=COUNTED,
        kind=Counted,
    ),
    Mistake(
        "extra_loads",
        "The values are right, but the traffic is too high. You read each element of x ‹times› times; "
        "‹needed› would do.",
        "‹fewer_loads›",
        when=lambda p: p.too_much,
        why=COUNTED,
        kind=Counted,
    ),
    Mistake(
        "extra_stores",
        "The values are right, but the kernel stores ‹stores›, and ‹needed_stores› would do.",
        "Store the result once, when it is final.",
        when=lambda p: p.facts.stores > p.stores,
        why="‹store_bytes› bytes stored; needed: ‹needed_store_bytes›.",
        kind=Counted,
    ),
    Mistake(
        "extra_launches",
        "The values are right, but it takes ‹launches› launches where ‹max_launches› is allowed.",
        "Do all of it in one kernel.",
        when=lambda p: p.exercise.max_launches and len(p.facts.launches) > p.exercise.max_launches,
        why="Each launch costs several microseconds, and what one kernel leaves for the next goes through "
            "memory.",
    ),
)  # fmt: skip
