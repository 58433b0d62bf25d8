"""Answers to online_merge: wrong ones with the mistake that must be named, and unusual right ones."""

MAX = "m = tl.maximum(m1, m2)"
END = "return m, d1 * tl.exp(m1 - anchor) + d2 * tl.exp(m2 - anchor)"
ANCHOR = 'anchor = tl.where(m == -float("inf"), 0.0, m)'
RAW = (ANCHOR, "anchor = m")

WRONG = {
    "no rescaling": ("never_rescaled", [(END, "return m, d1 + d2")]),
    "a NaN sum made 0": (
        "nan_swallowed",
        [
            (
                END,
                "d = d1 * tl.exp(m1 - anchor) + d2 * tl.exp(m2 - anchor)\n    return m, tl.where(d != d, 0.0, d)",
            )
        ],
    ),
    "only the first rescaled": ("one_side_rescaled", [(END, "return m, d1 * tl.exp(m1 - anchor) + d2")]),
    "only the second rescaled": ("one_side_rescaled", [(END, "return m, d1 + d2 * tl.exp(m2 - anchor)")]),
    "only the first, without a guard": (
        "one_side_rescaled",
        [RAW, (END, "return m, d1 * tl.exp(m1 - anchor) + d2")],
    ),
    "to the second's maximum": ("one_side_rescaled", [(END, "return m, d1 * tl.exp(m1 - m2) + d2")]),
    "to the first's maximum": ("one_side_rescaled", [(END, "return m, d1 + d2 * tl.exp(m2 - m1)")]),
    "when the maximum grows only": (
        "one_side_rescaled",
        [(END, "return m, tl.where(m2 > m1, d1 * tl.exp(m1 - anchor), d1) + d2")],
    ),
    "wrong sign": ("sign", [("m1 - anchor", "anchor - m1"), ("m2 - anchor", "anchor - m2")]),
    "maxima exchanged": (
        "exchanged",
        [(END, "return m, d1 * tl.exp(m2 - anchor) + d2 * tl.exp(m1 - anchor)")],
    ),
    "the second a single score": ("sum_taken_as_one", [(" + d2 * tl", " + tl")]),
    "the first a single score": ("sum_taken_as_one", [("m, d1 * tl", "m, tl")]),
    "both single scores": ("sum_taken_as_one", [(" + d2 * tl", " + tl"), ("m, d1 * tl", "m, tl")]),
    "base two": ("base_two", [("tl.exp(", "tl.exp2(")]),
    "back to exp(m), divided": (
        "no_maximum",
        [(END, "return m, (d1 * tl.exp(m1) + d2 * tl.exp(m2)) / tl.exp(m)")],
    ),
    "back to exp(m), multiplied": (
        "no_maximum",
        [(END, "return m, (d1 * tl.exp(m1) + d2 * tl.exp(m2)) * tl.exp(-m)")],
    ),
    "exp(m1) and exp(m2)": ("no_maximum", [(END, "return m, d1 * tl.exp(m1) + d2 * tl.exp(m2)")]),
    "the larger sum": ("larger_sum", [(END, "return m, tl.maximum(d1, d2)")]),
    "the sum of the larger": ("larger_sum", [(END, "return m, tl.where(m1 >= m2, d1, d2)")]),
    "sums multiplied": ("sums_multiplied", [(") + d2", ") * d2")]),
    "maxima added": ("maxima_added", [(MAX, "m = m1 + m2")]),
    "maxima and sums added": ("maxima_added", [(END, "return m1 + m2, d1 + d2")]),
    "only m is the sum of the maxima": ("maxima_added", [(END, END.replace("return m,", "return m1 + m2,"))]),
    "minimum": ("minimum", [("tl.maximum", "tl.minimum")]),
    "the second's maximum": ("not_commutative", [(MAX, "m = m2 + 0.0 * m1")]),
    "the second's maximum, plainly": ("not_commutative", [(MAX, "m = m2")]),
    "the first's maximum": ("not_commutative", [(MAX, "m = m1")]),
    "one side doubled": ("not_commutative", [(") + d2", ") + 2.0 * d2")]),
    "returned in the wrong order": (
        "swapped",
        [(END, "d = d1 * tl.exp(m1 - anchor) + d2 * tl.exp(m2 - anchor)\n    return d, m")],
    ),
    "no guard": ("infinity_minus_infinity", [RAW]),
    "no guard, by differences": (
        "infinity_minus_infinity",
        [(END, "e = tl.exp(-tl.abs(m1 - m2))\n    return m, tl.where(m1 > m2, d1 + d2 * e, d1 * e + d2)")],
    ),
    "guarded after the multiplication": (
        "infinity_minus_infinity",
        [RAW, (END, "return m, tl.where(d1 == 0.0, 0.0, d1) * tl.exp(m1 - m) + d2 * tl.exp(m2 - m)")],
    ),
    "guarded on one side": (
        "infinity_minus_infinity",
        [(END, "return m, d1 * tl.exp(m1 - anchor) + d2 * tl.exp(m2 - m)")],
    ),
    "two empty ones count as 1": (
        "empty_not_neutral",
        [
            (
                END,
                "return m, tl.where(m == -float('inf'), 1.0, d1 * tl.exp(m1 - anchor) + d2 * tl.exp(m2 - anchor))",
            )
        ],
    ),
    "−inf made finite": ("floor_for_infinity", [(MAX, MAX + "\n    m = tl.maximum(m, -1e9)")]),
    "a floor under the anchor": ("floor_for_infinity", [(ANCHOR, "anchor = tl.maximum(m, -1e9)")]),
    "an empty pair gets the lowest number": (
        "empty_not_neutral",
        [(MAX, MAX + "\n    m = tl.maximum(m, -3.4e38)")],
    ),
    "a sum of 1 taken for an empty stretch": (
        "not_associative",
        [(END, END.replace("d1 *", "tl.where(d1 == 1.0, 0.0, d1) *"))],
    ),
    "through logarithms": (
        "imprecise",
        [(END, "return m, tl.exp(tl.log(d1) + m1 - anchor) + tl.exp(tl.log(d2) + m2 - anchor)")],
    ),
    "one sum where the maxima are equal": (
        "equal_maxima",
        [(END, "return m, tl.where(m1 == m2, d1, d1 * tl.exp(m1 - anchor) + d2 * tl.exp(m2 - anchor))")],
    ),
    "exponents not below -10": (
        "exponent_clipped",
        [("m1 - anchor", "tl.maximum(m1 - m, -10.0)"), ("m2 - anchor", "tl.maximum(m2 - m, -10.0)")],
    ),
    "tl.max": ("max_reduces", [("tl.maximum", "tl.max")]),
    "math.exp": (
        "python_math",
        [("tl.exp(", "math.exp("), ("import triton\n", "import math\n\nimport triton\n")],
    ),
    "a list": ("wrong_return", [(END, "return [m, d1 * tl.exp(m1 - anchor) + d2 * tl.exp(m2 - anchor)]")]),
    "no triton.jit": ("not_jit", [("@triton.jit\n", "")]),
    "a lambda": ("not_jit", "merge = lambda m1, d1, m2, d2: (m1, d1)\n"),
    "an if": ("branch_on_tile", [(MAX, "if m1 > m2:\n        m = m1\n    else:\n        m = m2")]),
    "Python's max": ("branch_on_tile", [(MAX, "m = max(m1, m2)")]),
    "one value": ("wrong_return", [(END, "return d1 * tl.exp(m1 - anchor) + d2 * tl.exp(m2 - anchor)")]),
    "three values": ("wrong_return", [("return m, ", "return m, anchor, ")]),
    "nothing returned": ("wrong_return", [("return m, ", "d = ")]),
    "two arguments": (
        "wrong_arguments",
        "import triton\nimport triton.language as tl\n\n\n@triton.jit\ndef merge(a, b):\n    return a, b\n",
    ),
    "five arguments": ("wrong_arguments", [("m2, d2):", "m2, d2, m):")]),
    "numpy": (
        "compile",
        [
            (
                "import triton\n",
                "import numpy as np\nimport triton\n",
            ),
            (MAX, MAX + "\n    m = m + float(np.zeros(1)[0])"),
        ],
    ),
    "a name missing": ("exception", [("tl.maximum", "tl.larger")]),
    "renamed": ("entry_missing", [("def merge(", "def join(")]),
    "the course's own": ("answer_opened", "from course_kernels.online import merge\n"),
    "a syntax error": ("syntax_error", [(MAX, MAX + ")")]),
}

HEAD = "import triton\nimport triton.language as tl\n\n\n"
RIGHT = {
    "factors by tl.where": HEAD
    + """@triton.jit
def merge(m1, d1, m2, d2):
    m = tl.where(m1 > m2, m1, m2)
    f1 = tl.where(m1 == m, 1.0, tl.exp(m1 - m))
    f2 = tl.where(m2 == m, 1.0, tl.exp(m2 - m))
    return m, d1 * f1 + d2 * f2
""",
    "by the difference": HEAD
    + """@triton.jit
def merge(m1, d1, m2, d2):
    gap = tl.where(m1 == m2, 0.0, m1 - m2)
    e = tl.exp(-tl.abs(gap))
    return tl.maximum(m1, m2), tl.where(gap > 0, d1 + d2 * e, d1 * e + d2)
""",
    "guarded by the sums": HEAD
    + """@triton.jit
def merge(m1, d1, m2, d2):
    m = tl.maximum(m1, m2)
    left = tl.where(d1 == 0.0, 0.0, d1 * tl.exp(m1 - m))
    right = tl.where(d2 == 0.0, 0.0, d2 * tl.exp(m2 - m))
    return m, left + right
""",
    "exp2 with the scale": HEAD
    + """LOG2E: tl.constexpr = tl.constexpr(1.4426950408889634)


@triton.jit
def merge(m1, d1, m2, d2):
    m = tl.maximum(m1, m2)
    safe = tl.where(m > float("-inf"), m, 0.0)
    return m, d2 * tl.exp2((m2 - safe) * LOG2E) + d1 * tl.exp2((m1 - safe) * LOG2E)
""",
    "a helper": HEAD
    + """@triton.jit
def rescaled(m_old, d, m_new):
    return d * tl.exp(m_old - tl.where(m_new == float("-inf"), 0.0, m_new))


@triton.jit
def merge(m1, d1, m2, d2):
    m = tl.maximum(m1, m2)
    return m, rescaled(m1, d1, m) + rescaled(m2, d2, m)
""",
    "a very low anchor": HEAD
    + """@triton.jit
def merge(m1, d1, m2, d2):
    m = tl.maximum(m1, m2)
    anchor = tl.maximum(m, -3.0e38)
    return m, d1 * tl.exp(m1 - anchor) + d2 * tl.exp(m2 - anchor)
""",
    "other names, an option": HEAD
    + '''@triton.jit
def merge(top_a, sum_a, top_b, sum_b, EMPTY: tl.constexpr = float("-inf")):
    """Any names will do."""
    top = tl.maximum(top_a, top_b)
    both = top == EMPTY
    a = tl.where(both, 0.0, top_a - top)
    b = tl.where(both, 0.0, top_b - top)
    return top, sum_a * tl.exp(a) + sum_b * tl.exp(b)
''',
    "fused multiply-add": HEAD
    + """@triton.jit
def merge(m1, d1, m2, d2):
    m = tl.maximum(m1, m2)
    anchor = tl.where(m == -float("inf"), 0.0, m)
    return m, tl.fma(d1, tl.exp(m1 - anchor), d2 * tl.exp(m2 - anchor))
""",
    "the maximum last": HEAD
    + """@triton.jit
def merge(m1, d1, m2, d2):
    swap = m1 < m2
    high, low = tl.where(swap, m2, m1), tl.where(swap, m1, m2)
    d_high, d_low = tl.where(swap, d2, d1), tl.where(swap, d1, d2)
    factor = tl.where(low == -float("inf"), 0.0, tl.exp(low - high))
    return high, d_high + d_low * factor
""",
}
