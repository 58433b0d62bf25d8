"""The questions an interviewer asks about each notebook, with three answers and how each would be graded.

Keys begin with the notebook's number: QUESTIONS["03-registers"]. M is the number of rows, N of columns.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Question:
    """asked: the question. weak, strong, strongest: each an answer and the interviewer's reason for its
    grade."""

    asked: str
    weak: tuple[str, str]
    strong: tuple[str, str]
    strongest: tuple[str, str]

    def answers(self) -> list[tuple[str, str, str]]:
        """(grade, answer, reason), from weak to strongest."""
        return [(grade, *getattr(self, grade)) for grade in ("weak", "strong", "strongest")]


QUESTIONS: dict[str, Question] = {
    "00-copy": Question(
        "A kernel copies a matrix and does nothing else. What sets its speed, and why measure it at all?",
        weak=(
            "The GPU's speed. It is a warm-up.",
            "Names no resource, so nothing follows from it for the next kernel.",
        ),
        strong=(
            "Memory bandwidth: it reads MN elements and writes MN, and has no arithmetic to wait for. On "
            "large matrices, a kernel that must read its whole input and write an output of the same size "
            "can be no faster than the best copy, so the copy is its limit.",
            "Counts the traffic and turns it into a bound for other kernels.",
        ),
        strongest=(
            "Memory bandwidth, as long as the matrix is large: then the copy is the limit for softmax "
            "too, and I quote results as a share of a copy measured in the same run, because clocks and "
            "cards differ. For a small matrix the copy itself is bound by its launch, and what it writes "
            "may stay in L2 and never reach DRAM; there another kernel may even be ahead of it.",
            "Also says where the yardstick stops being one, and why it belongs in the same run.",
        ),
    ),
    "01-subtract": Question(
        "Why does softmax subtract the row maximum first? Does that change the result?",
        weak=(
            "It normalises the values, for numerical stability.",
            "A phrase in place of a reason; nothing here says what would go wrong or why the result "
            "survives.",
        ),
        strong=(
            "exp overflows for large scores, and inf / inf is NaN. Subtracting a constant c divides "
            "numerator and denominator by the same exp(c), so the result stays. With the maximum as c "
            "every exponent is at most 0.",
            "States the failure, the identity that allows the cure, and why the maximum is the right "
            "constant.",
        ),
        strongest=(
            "Any constant would do in exact arithmetic; the maximum is the one that bounds both ends: no "
            "exponent above 0, so nothing overflows, and one term equal to exp(0) = 1, so the sum is at "
            "least 1 and very negative rows do not end as 0 / 0. It costs another reduction over the row, "
            "which is what the online form sets out to save. A row that is all −inf still gives NaN.",
            "Covers underflow as well as overflow, the price, and the input on which it does not help.",
        ),
    ),
    "01-eager": Question(
        "You write softmax as four lines of PyTorch. What does the GPU do?",
        weak=(
            "It runs softmax on all elements in parallel.",
            "True of any kernel. It misses that there are several, and what happens between them.",
        ),
        strong=(
            "It runs five kernels: maximum, subtract, exp, sum, divide. Each reads its input from memory "
            "and writes its output back before the next one starts.",
            "Knows that lines are not kernels, and that every kernel makes the trip to memory.",
        ),
        strongest=(
            "Five kernels, which I would list with the profiler before I believe it. Two reduce a row to "
            "one number, three read and write a full matrix, and the two matrices in between exist only to "
            "be read again. The arithmetic would take a small part of that time; the trips take the "
            "rest.",
            "Checks instead of recalling, and says which of the trips nobody needs.",
        ),
    ),
    "01-half": Question(
        "The scores arrive as float16. What changes in a safe softmax?",
        weak=(
            "It is faster and less precise.",
            "Right in general, and of no help in writing the kernel.",
        ),
        strong=(
            "exp overflows sooner, already past a score of about 11, so subtracting the maximum matters "
            "even for ordinary scores. A sum of many terms in float16 loses them once it is large, so I "
            "convert to float32 for the arithmetic.",
            "Separates range from precision and says what to do about each.",
        ),
        strongest=(
            "I load 16 bits, convert at once, do all arithmetic in float32 and round once at the store: "
            "half the traffic, and the only error to speak of is that one rounding to 16 bits. Eager "
            "PyTorch rounds after every step instead. With half the bytes, arithmetic is a larger share "
            "of the time, so on a fast memory one exp2 an element and one reciprocal a row begin to count.",
            "Adds where the rounding happens and what the bottleneck becomes.",
        ),
    ),
    "02-count": Question(
        "How many elements does an eager softmax of M × N move, and how many must it move?",
        weak=(
            "It reads the matrix and writes the matrix.",
            "That is the lower bound, not what the five kernels do.",
        ),
        strong=(
            "Kernel by kernel: reads 5MN + 2M, writes 3MN + 2M. One fused kernel reads MN and writes MN. "
            "The ratio is (8MN + 4M) / 2MN, about 4.",
            "Counts reads and writes one kernel at a time and gets the small terms right.",
        ),
        strongest=(
            "Reads 5MN + 2M and writes 3MN + 2M against MN and MN. Accounts that say six passes and 3× "
            "take sum and divide for one kernel, which eager PyTorch does not launch, and forget that a "
            "reduction reads the whole matrix. Hardware counters agree with the count on matrices many "
            "times as large as L2; on smaller ones writes stay in the cache and DRAM sees fewer. So it is "
            "a count of what the kernels ask for, and a prediction of DRAM traffic only for large "
            "matrices.",
            "Explains a wrong count that is in circulation, and when the right one predicts the hardware.",
        ),
    ),
    "02-bound": Question(
        "Is softmax bound by memory or by arithmetic? How do you know?",
        weak=(
            "By arithmetic, because exp is expensive.",
            "A guess from the look of the formula; nothing is compared with the machine.",
        ),
        strong=(
            "By memory. It does a handful of operations on each element and moves 8 bytes for it in "
            "float32: about half an operation a byte. GPUs can do about ten operations or more for each "
            "byte they move.",
            "Forms arithmetic intensity and holds it against the machine's ratio.",
        ),
        strongest=(
            "By memory, on every GPU I know: the intensity is far left of the ridge of each roofline. "
            "Three qualifications: for a small matrix the launches rule, not the memory; in L2 the roof "
            "is higher; and in 16 bits on a very fast memory the exp unit comes within reach of being the "
            "limit. Then I measure and look at which share of a copy is reached.",
            "Gives the bound, the three places where it stops holding, and the test.",
        ),
    ),
    "02-promise": Question(
        "The count says 4× less traffic. Will the fused kernel be 4× faster?",
        weak=(
            "Yes, because it is bound by memory.",
            "Takes a bound for a promise, and does not ask: faster than what?",
        ),
        strong=(
            "Against the five separate kernels, about 4× on large matrices if both keep the memory equally "
            "busy. Against torch.softmax, which is fused already, the count promises nothing.",
            "Names the opponent. Most wrong claims about fusion leave it out.",
        ),
        strongest=(
            "4× is a ratio of bytes. In time it can be more, for a large matrix if the separate kernels keep "
            "the memory less busy than a copy does, and for a small one because one launch replaces five; "
            "and less, if the fused kernel itself stays below the copy. Against a tuned built-in only a "
            "measurement tells, width by width: the tutorial that publishes this very kernel shows it "
            "behind the built-in at some widths and ahead at others. Fusion also saves the memory of the "
            "intermediates, which may matter more than time.",
            "Treats the count as one limit among several, and knows the gain is not the same at every size.",
        ),
    ),
    "03-why-fast": Question(
        "Why is a fused softmax kernel faster than the PyTorch version?",
        weak=(
            "Because it is one function call in place of many.",
            "Launch cost is real, but for a large matrix it is a rounding error.",
        ),
        strong=(
            "Softmax is bound by memory bandwidth. Separate kernels read 5MN + 2M and write 3MN + 2M "
            "elements; the fused one keeps the row in registers, reads MN and writes MN. It works as long "
            "as a row fits on chip.",
            "The bottleneck, the count with and without fusion, and the limit.",
        ),
        strongest=(
            "It is bound by memory, and fusion cuts the traffic from 8MN + 4M elements to 2MN, if a row "
            "fits on chip. For longer rows I would walk the row in tiles with an online maximum and sum. "
            "And 4× is a bound against separate kernels: next to a built-in that is already fused, I have "
            "seen the same kernel lose at narrow widths, so I would show the curve.",
            "All of that, with the way past the limit, and a refusal to promise what a benchmark has not "
            "shown.",
        ),
    ),
    "03-padding": Question(
        "The block has more lanes than the row has columns. What do you load in the spare lanes, and why?",
        weak=(
            "0, because nothing is there.",
            "The classic bug: a row of negative values gets a maximum of 0, and every spare lane adds to "
            "the sum.",
        ),
        strong=(
            "−inf. It is the identity of the maximum, and exp(−inf) is 0, the identity of the sum. So the "
            "spare lanes change neither. The store is masked as well.",
            "Gives one value that is neutral for both reductions, and a reason for each.",
        ),
        strongest=(
            "−inf, and not a large negative number: a row whose scores lie below −1e9 would lose to it. 0 "
            "passes tests on random data around 0 because the maximum is then positive anyway and the sum "
            "is a little off, within a loose tolerance. The test that finds it is a row of negatives, at "
            "a width that is no power of two, with a relative tolerance.",
            "Also knows why the bug survives testing, and which input ends it.",
        ),
    ),
    "03-registers": Question(
        "One program keeps a whole row in registers. What happens as the row gets longer?",
        weak=(
            "It gets slower because there is more work.",
            "Work per row grows, and so does the data moved; that alone leaves bandwidth where it was.",
        ),
        strong=(
            "Each thread holds more values. More registers a thread means fewer programs on a "
            "multiprocessor at a time, so less memory traffic in flight; past 255 registers a thread, or "
            "past the register file, values spill to memory.",
            "Connects registers with parallelism, and knows what lies past the end.",
        ),
        strongest=(
            "Registers against parallelism: what hides memory latency is bytes in flight, and I can get "
            "those from many programs or from many loads a thread. So lower occupancy is not yet lower "
            "bandwidth. I give long rows more warps to keep a thread's share in bounds, and read "
            "registers and spills from the compiler's report. When the row needs the whole register file "
            "it spills, spilled values make the trips that fusion was meant to save, and it is time for "
            "tiles or several programs a row.",
            "Sees occupancy as a means, uses the compiler's figures, and knows the sign to change the "
            "algorithm.",
        ),
    ),
    "04-online": Question(
        "How can one pass over a row find both the maximum and the sum of exp(x − maximum)?",
        weak=(
            "Keep the maximum so far and add up exp(x − maximum) as you go.",
            "Terms added before the maximum rose were taken relative to an older one; nothing puts that "
            "right.",
        ),
        strong=(
            "Keep m and d. For each score x the new maximum is m' = max(m, x), and d' = d · exp(m − m') + "
            "exp(x − m'). Multiplying by exp(m − m') moves the old terms to the new maximum.",
            "The recurrence, and what the factor is for.",
        ),
        strongest=(
            "With d = Σ exp(xⱼ − m) over what has been read, d' = d · exp(m − m') + exp(x − m') keeps "
            "that statement true, and (−inf, 0) makes it true before the first score: that is the "
            "induction. A row then needs two reads and a write where safe softmax needs three and one, so "
            "at most 4/3. Within a kernel that already holds the row on chip it saves a reduction and no "
            "traffic at all.",
            "Proves it in one line, and knows both the size of the gain and when there is none.",
        ),
    ),
    "04-merge": Question(
        "Two halves of a row gave (m₁, d₁) and (m₂, d₂). How do you combine them, and what does that allow?",
        weak=(
            "Take the larger maximum and add the two sums.",
            "The sums are relative to different maxima; they cannot be added yet.",
        ),
        strong=(
            "m = max(m₁, m₂), d = d₁ · exp(m₁ − m) + d₂ · exp(m₂ − m). It is associative and commutative, "
            "so the pieces can be merged in any grouping: a tree over lanes, tiles or programs.",
            "Right formula, and the property that makes it parallel.",
        ),
        strongest=(
            "The same, with identity (−inf, 0), so empty and padded pieces drop out. One rule joins "
            "lanes, tiles, programs and GPUs. The trap is two pieces that are both −inf: exp(−inf − "
            "(−inf)) is NaN, and one masked tile would poison the row, so the factor must be guarded "
            "there. In floating point different trees agree up to rounding, and for the same bits twice I "
            "fix the tree.",
            "Adds the identity, the trap, and what associativity means once numbers are rounded.",
        ),
    ),
    "04-when": Question(
        "When does online softmax make a kernel faster, and when not?",
        weak=(
            "It is always faster, because it does one pass less.",
            "A pass over registers and a pass over memory are not the same thing.",
        ),
        strong=(
            "When the row does not fit on chip, so that each pass is a read from memory: three reads and "
            "a write become two and one, at most 1.33×. When the row is in registers it saves no traffic.",
            "Asks where the passes read from, which decides the answer.",
        ),
        strongest=(
            "For long rows up to 4/3, near the 1.3× its authors measured. In registers it trades a "
            "reduction for extra exps and may lose. Its larger use is that it needs no finished maximum: "
            "a neighbour can be fused in, top-k, or the product with V as in FlashAttention, and there "
            "the saving is whole passes.",
            "Knows that the pass saved is the smaller part of what the recurrence is good for.",
        ),
    ),
    "05-long-rows": Question(
        "A row has a million columns. How do you compute its softmax, and how fast can it be?",
        weak=(
            "Use a bigger block.",
            "Past the register file it spills, and Triton refuses a block of more than 2²⁰ elements.",
        ),
        strong=(
            "Walk the row in tiles: a first pass for the maximum and the sum with the online recurrence, "
            "a second that reads again and writes. Two reads and a write, against one and one: at most "
            "2/3 of copy speed.",
            "A method for any length, and its ceiling from the count.",
        ),
        strongest=(
            "Tiles: read 2, write 1, so 2/3 of a copy, bent upwards by whatever of the row is still in "
            "L2, which walking the second pass backwards helps. With few rows the chip is idle, so I "
            "split a row over several programs and merge their (m, d). If those programs stay resident "
            "and keep their parts in registers, only the (m, d) pairs travel between passes: read 1, "
            "write 1 at any length that fits the whole chip's registers.",
            "Meets the ceiling, then asks what it assumed, and gets past it twice.",
        ),
    ),
    "05-few-rows": Question(
        "torch.softmax on one very long row reaches a small part of the memory bandwidth. Why, and what "
        "helps?",
        weak=(
            "Because the row is too long for the cache.",
            "Then many long rows would be as slow, and they are not.",
        ),
        strong=(
            "One program a row leaves every other multiprocessor idle. Split the row into chunks: each "
            "program finds (m, d) of its chunk, the pairs are merged, and a second launch writes the "
            "outputs.",
            "Sees the idle chip, and uses the merge to fill it.",
        ),
        strongest=(
            "Bandwidth needs loads in flight on all multiprocessors, and one program is on one. With the "
            "row split, traffic is 2MN read and MN written, plus a pair a chunk, two launches. A chunk "
            "may be all −inf or all padding: its pair must be the identity, not NaN. And for a row that "
            "is not that long, two launches cost more than they save, so the choice goes by shape.",
            "Adds the edge case that breaks real libraries, and the size at which to leave it alone.",
        ),
    ),
    "05-flash": Question(
        "FlashAttention makes one pass over the scores. Why does a tiled softmax need two?",
        weak=(
            "FlashAttention is better optimised.",
            "Optimising does not remove a read that the output depends on.",
        ),
        strong=(
            "Softmax must output every exp(x − m) / d, and m and d are known only after the whole row is "
            "read, so it reads again. FlashAttention outputs a weighted sum of V's rows, which it can "
            "accumulate tile by tile and rescale when the maximum rises.",
            "Finds the difference in what is output.",
        ),
        strongest=(
            "The scores are never stored: it multiplies each tile of probabilities by V at once, keeps a "
            "running output, and multiplies that by exp(m − m') whenever the maximum rises, dividing by d "
            "at the end. That is the same recurrence with a vector beside d, and it is exact, up to "
            "rounding, not an approximation. A softmax on its own has no small result to rescale: its "
            "output is as long as its input.",
            "Sees one recurrence in both, and says why exactly this trick is closed to a plain softmax.",
        ),
    ),
}
