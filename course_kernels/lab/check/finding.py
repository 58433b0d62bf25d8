"""What a check says: a finding, the evidence for it, and the report that goes back."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Evidence:
    """Why a finding is believed. The kind writes its word in front of the text, and the text never does.

    This kind has no word: a reason, or a rule that holds whatever was seen.
    """

    text: str = ""
    word = ""

    def __str__(self) -> str:
        return f"{self.word}: {self.text}" if self.word and self.text else self.text


class Proven(Evidence):
    """Runs with one thing changed came out as the mistake would have it."""

    word = "Proven"


class Seen(Evidence):
    """The values, or the meter, show it."""

    word = "Seen"


class Counted(Evidence):
    """A number of loads or stores shows it."""

    word = "Counted"


class Likely(Evidence):
    """It is the usual reason; nothing rules out another."""

    word = "Likely"


class Fits(Evidence):
    """The output equals what the mistake gives. text: under what change, if not as it is."""

    def __str__(self) -> str:
        start = f"{self.text} the" if self.text else "The"
        return f"{start} output is, number for number, what that gives."


@dataclass
class Finding(Exception):
    """Why an answer does not pass.

    mistake: the mistake's name, or None where nothing fits. what: what is wrong, in one sentence.
    case: the smallest case that shows it. evidence: why it is believed. next: what to try.
    status: "fail", "error" or "todo". row: the row of the case that it speaks of, if it names one.
    """

    mistake: str | None
    what: str
    case: str = ""
    evidence: Evidence = Evidence()
    next: str = ""
    status: str = "fail"
    row: int | None = None

    def __str__(self) -> str:
        return "\n".join(part for part in self.parts().values() if part)

    def parts(self) -> dict[str, str]:
        """The text in its parts, in the order in which they are read."""
        return {"what": self.what, "case": self.case, "why": str(self.evidence), "next": self.next}


@dataclass
class Report:
    """What a check found: the parts of a Finding, or what a right answer earned (lines of text)."""

    status: str
    mistake: str | None = None
    parts: dict = field(default_factory=dict)
    earned: list = field(default_factory=list)
    printed: str = ""
    how: str = "Run in the interpreter on small inputs"
    lesson: str = ""
    has_kernel: bool = False
    runs_on_gpu: bool = False
    kernels: list = field(default_factory=list)
