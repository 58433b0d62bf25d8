"""Notebook 01, its exercise and its questions."""

import math

import torch

from claims import Claim
from course_kernels import eager
from course_kernels.lab.counting import ledger

NOTEBOOK = "notebooks/01_eager_softmax.ipynb"


def scores() -> torch.Tensor:
    return 4 * torch.randn(64, 1000, generator=torch.Generator().manual_seed(1))


def largest_error(y: torch.Tensor, x: torch.Tensor) -> float:
    """Relative, over the shares above 0.001 of a softmax in float64."""
    truth = torch.softmax(x.double(), dim=1)
    return ((y.double() - truth).abs() / truth)[truth > 1e-3].max().item()


def other_costs_of_safety():
    x = scores()
    more = ledger(eager.softmax, x).launches - ledger(eager.naive, x).launches
    truth = torch.softmax(x.double(), dim=1)
    naive, safe = (((f(x) - truth).abs() / truth).max().item() for f in (eager.naive, eager.softmax))
    return [] if more == 2 and naive < safe < 1e-5 else [more, naive, safe]


def other_than_nan():
    """What a safe softmax makes of rows without a finite maximum, where it is not NaN throughout."""
    rows = torch.tensor([[-math.inf] * 3, [0, 1, math.inf], [0, 1, math.nan]])
    return [f(rows) for f in (eager.softmax, lambda x: torch.softmax(x, 1)) if not f(rows).isnan().all()]


def other_than_five_kernels():
    writes = [row.writes for row in ledger(eager.softmax, scores()).rows if row.bytes]
    return [] if sorted(writes) == [64, 64, 64_000, 64_000, 64_000] else writes


def not_one_rounding():
    x = scores().half()
    inside = largest_error(eager.softmax(x.float()).half(), x) / 2**-11
    eagerly = largest_error(eager.softmax(x), x) / 2**-11
    return [] if 0.9 < inside < 1.1 and 1.5 < eagerly < 20 else [inside, eagerly]


CLAIMS = (
    Claim(
        NOTEBOOK,
        "Safety costs two kernels and their traffic, and on ordinary scores even a little accuracy",
        other_costs_of_safety,
    ),
    Claim(
        NOTEBOOK,
        "`torch.softmax` is a single operation.",
        lambda: [] if ledger(torch.softmax, scores(), 1).launches == 1 else ["several"],
    ),
    Claim(
        NOTEBOOK,
        "Normalising is two kernels, a sum and a division.",
        other_than_five_kernels,
    ),
    Claim(
        "question 01-eager",
        "Two reduce a row to one number, three read and write a full matrix",
        other_than_five_kernels,
    ),
    Claim("lesson safe_softmax", "all but the two reductions write a whole matrix", other_than_five_kernels),
    Claim(NOTEBOOK, "PyTorch answers NaN, which is honest", other_than_nan),
    Claim(
        NOTEBOOK,
        "A few roundings have piled up in the first line; the second has the one that nobody can avoid.",
        not_one_rounding,
    ),
    Claim(
        "question 01-half",
        "the only error to speak of is that one rounding to 16 bits",
        not_one_rounding,
    ),
    Claim(
        "question 01-half",
        "exp overflows sooner, already past a score of about 11",
        lambda: [] if 11 < math.log(torch.finfo(torch.float16).max) < 12 else ["not between 11 and 12"],
    ),
    Claim(
        NOTEBOOK,
        "A score of 12 is nothing unusual in a trained model, and float16 is already past its end there.",
        lambda: [] if math.exp(12) > torch.finfo(torch.float16).max else ["12 is within"],
    ),
)
