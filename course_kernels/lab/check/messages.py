"""What exceptions mean, as a table: one block a meaning, of which the first that fits counts.

`errors` reads it. A block has the mistake's name and what is wrong; after the arrow, what to do. Above them:
  said   a regular expression that "Type: message" must hold, on one line or several
  code   one that the statement which raised must hold
  line   one that some line of the file must hold, which is then the line to fix
  where  kernel, or host for what is no kernel; left out: both
Names in ‹ › stand for what a pattern found under that name, or for what the learner's kernel calls the thing
(`source.Own.words`: ‹load›, ‹store›, ‹lanes›, ‹tile›, ‹block› and so on).
"""

import re
from typing import NamedTuple

from course_kernels.lab.run.limits import MEMORY_BYTES


class Row(NamedTuple):
    """One meaning, as above; inside is True for kernels, False for what is no kernel, None for both."""

    mistake: str
    what: str
    next: str
    said: str
    code: str = ""
    line: str = ""
    inside: bool | None = None


def rows(text: str) -> tuple[Row, ...]:
    """The rows of a text in the form above."""
    found = []
    for block in re.split(r"\n\s*\n", text.strip()):
        fields = {"next": ""}
        for line in re.sub(r"\n  +", " ", block).splitlines():
            key, rest = line.split(" ", 1)
            if key == "said":
                fields["said"] = f"{fields['said']}|{rest}" if "said" in fields else rest
            elif key in ("code", "line"):
                fields[key] = rest
            elif key == "where":
                fields["inside"] = rest == "kernel"
            elif key == "→":
                fields["next"] = rest
            elif key != "#":
                fields |= {"mistake": key.removesuffix(":"), "what": rest}
        if "said" in fields:
            found.append(Row(**fields))
    return tuple(found)


ROWS = rows(r"""
# Reductions

said axis -?\d+ out of bounds for shape \[\]
code \btl\.(?P<f>max|min|sum|argmax|argmin|reduce|associative_scan|cumsum)\(
not_a_tile: tl.‹f› is given a single number, which has no axis to reduce.
→ Leave tl.‹f› out here, or give it the tile. To compare two numbers, write tl.maximum(a, b).

said axis (?P<axis>-?\d+)( out of bounds|\. Expected)
code \btl\.(?P<f>max|min|sum|argmax|argmin|reduce|associative_scan|cumsum)\(
axis: tl.‹f› is given axis=‹axis›, and this tile has one axis, axis 0: in the kernel a row is a line of
  lanes, not a matrix.
→ Write axis=0 in tl.‹f›.

said axis \D.*out of bounds for shape|`_semantic` argument
said '(float|int|constexpr)' object has no attribute '(type|shape|dtype)'
code \btl\.sum\(
where kernel
sum_reduces: tl.sum takes one tile and the number of an axis; the second argument here is a tile.
→ Write tl.sum(tile, axis=0). It takes no mask: masked lanes must hold 0 already, as exp(−∞) does.

said axis \D.*out of bounds for shape|`_semantic` argument
said '(float|int|constexpr)' object has no attribute '(type|shape|dtype)'
code \btl\.(?P<f>max|min)\(
where kernel
max_reduces: tl.‹f› takes one tile and reduces it to a number; here it is given two things to compare.
→ To compare two lane by lane, write tl.‹f›imum(a, b); for one tile, tl.‹f›(x, axis=0).

# Kernels, and how they are launched

said 'function' object is not subscriptable
code (?P<name>\w+)\[
line ^\s*def ‹name›\(
jit_missing: `‹name›` has no @triton.jit above it, so to Triton it is an ordinary Python function.
→ Write @triton.jit on the line above `def ‹name›`.

said Unsupported function referenced: <function (?P<name>\w+)
line ^\s*def ‹name›\(
jit_missing: `‹name›` has no @triton.jit above it, so to Triton it is an ordinary Python function.
→ Write @triton.jit on the line above `def ‹name›`.

said `_semantic` argument
line ^\s*def ‹function›\(
where host
jit_missing: `‹function›` has no @triton.jit above it, so to Triton it is an ordinary Python function.
→ Write @triton.jit on the line above `def ‹function›`.

said NoneType
line \blibdevice\.\w+\(
where kernel
libdevice: libdevice is NVIDIA's library of functions for a GPU; without a GPU Triton cannot run it.
→ Use tl's own function of that name, such as tl.exp or tl.log.

said no attribute 'grid_(idx|dim)'|Cannot call @triton.jit'd outside of the
line ^(?!\s*def ).*(?<!\w)‹function›\(
where kernel
kernel_called: `‹function›` is called like a function; a kernel is launched, over a grid of programs.
→ Put the grid between the name and the arguments: ‹function›[(programs,)](…).

said no attribute 'grid_(idx|dim)'|Cannot call @triton.jit'd outside of the
code (?P<name>\w+)\(
kernel_called: `‹name›` is called like a function; a kernel is launched, over a grid of programs.
→ Put the grid between the name and the arguments: ‹name›[(programs,)](…).

said '?(builtin_function_or_method|method)'? object has no attribute
line (?P<t>\w+)\.(?P<f>stride|size)\s*[,)]
stride_not_called: An argument of the launch is a function and not a number: its brackets are missing.
→ In the launch write ‹t›.‹f›(0), not ‹t›.‹f›.

said '?(builtin_function_or_method|method)'? object has no attribute
line (?P<t>\w+)\.(?P<f>numel|dim)\s*[,)]
stride_not_called: An argument of the launch is a function and not a number: its brackets are missing.
→ In the launch write ‹t›.‹f›(), not ‹t›.‹f›.

said [Kk]eyword argument (?P<k>\w+) was specified but unrecogni[sz]ed
line \b‹k›=
launch_arguments: The launch gives ‹k›=, and the kernel has no parameter of that name.
→ Leave ‹k›= out, or add ‹k› to the kernel's signature.

said object of type '\w+' has no len\(\)|object is not iterable
code (?P<k>\w+)\[\(?(?P<g>[^\[\],]*?)\)?\]\(
grid_not_tuple: The grid of a launch is a tuple, one number an axis; this one is a number alone.
→ Write ‹k›[(‹g›,)](…): the comma makes it a tuple.

said '(?P<t>float|NoneType|str|Tensor)' object cannot be interpreted as an integer
code \]\(
grid_not_whole: The grid of a launch holds whole numbers, and here it holds a ‹t›.
→ Count the programs with triton.cdiv(a, b) or with //, not with /.

said program_id axis must be 0, 1, or 2
program_id_axis: A grid has the axes 0, 1 and 2, and no other.
→ Write tl.program_id(0).

# Arguments of tl's functions

said missing .*required .*argument
code tl\.arange\(
where kernel
tl_arguments: tl.arange is called without its end.
→ Give it the start and the end: tl.arange(0, ‹block›).

said missing .*required .*argument
code tl\.program_id\(
where kernel
tl_arguments: tl.program_id is called without the axis.
→ tl.program_id(0) is this program's place along the grid's first axis.

said missing .*required .*argument
code tl\.zeros\(
where kernel
tl_arguments: tl.zeros is called without the dtype.
→ Write tl.zeros([‹block›], dtype=tl.float32).

said missing .*required .*arguments?: (?P<names>'\w+')
code tl\.(?P<f>\w+)\(
where kernel
tl_arguments: tl.‹f› is called without ‹names›.
→ Give it ‹names›.

said unexpected keyword argument '(?P<k>dims?|ax)'
where kernel
keyword_name: Triton says axis=, not ‹k›=.
→ Write axis=0.

said unexpected keyword argument '(?P<k>keepdims?)'
where kernel
keyword_name: Triton has no ‹k›=; its own is keep_dims=.
→ Leave ‹k› out: the result is one number, and it joins with a tile as it is.

said (?:(?P<f>\w+)\(\) )?got an unexpected keyword argument 'mask'
where kernel
keyword_name: tl.‹f› takes no mask: by then the masked lanes must hold what does no harm.
→ Leave mask out here; choose other= of the tl.load so that those lanes do not count.

said (?P<f>\w+)\(\) got an unexpected keyword argument '(?P<k>\w+)'
where kernel
keyword_name: tl.‹f› has no argument ‹k›=.
→ ‹near›

# Shapes and dtypes

said power of 2
arange_not_power_of_two: tl.arange takes a length that is a power of two, and this one is not.
→ ‹power›

said exceeds triton maximum tensor numel
block_too_large: A block may hold at most 2**20 elements, and this one is larger.
→ Walk the row in tiles.

said [Ii]ncompatible dimensions at index \d+: (?P<a>\d+) and (?P<b>\d+)
tile_lengths: Two tiles of different lengths meet: ‹a› lanes and ‹b›.
→ Make both from the same tl.arange.

said Expected dtype \[.*\] but got u?int\d+
code \btl\.(?P<f>\w+)\(
line \.to\(tl\.u?int\d+\)
whole_numbers: tl.‹f› takes floating-point numbers, and the tile holds whole numbers since this line.
→ Write .to(tl.float32) there: whole numbers lose everything behind the point.

said Expected dtype \[.*\] but got u?int\d+
code \btl\.(?P<f>\w+)\(
whole_numbers: tl.‹f› takes floating-point numbers, and this tile holds whole numbers.
→ Convert it first, with .to(tl.float32).

said Expected dtype \[.*\] but got (fp|bf)16
code \btl\.(?P<f>\w+)\(
line \.to\(tl\.b?float16\)
half_precision: On a GPU tl.‹f› takes float32 and float64 only, and the tile has 16 bits since this line.
→ Write .to(tl.float32) there.

said Expected dtype \[.*\] but got (fp|bf)16
code \btl\.(?P<f>\w+)\(
half_precision: On a GPU tl.‹f› takes float32 and float64 only, and this tile is as it was loaded, 16 bits
  wide.
→ Convert it where it is loaded, with .to(tl.float32).

said 'torch\.dtype' object has no attribute
torch_dtype: A kernel does not know PyTorch's dtypes; it has its own.
→ Write tl.float32 in place of torch.float32.

said unexpected type (fp|bf)\d+
code //
floor_division: // divides whole numbers, and these are floating-point numbers.
→ Write / in place of //.

said \*\* or pow\(\)|__r?pow__
power: Triton does not raise a number to a tile.
→ Write tl.exp(x) for e to the x, and tl.exp2(x) for 2 to the x.

said cannot convert (?P<t>\S+) of type <class 'str'>
number_as_text: ‹t› stands here as a text, not as a number.
→ Remove the quotation marks; for infinity write float("inf").

# Loads, stores and addresses

said `other` cannot be provided without `mask`
load_mask: tl.load has an other=, but no mask=: it would load past the end of the row.
→ Give tl.load the mask ‹masked›.

said Unsupported ptr type .* in `tl\.store`
store_arguments: tl.store takes the address first and the value second; here the first is no address.
→ Write ‹store›.

said Unsupported ptr type .* in `tl\.load`
load_arguments: tl.load needs addresses, and what it is given here are numbers.
→ Begin with the pointer: ‹load›.

said cannot cast (\[+ *\d{9,}|pointer)
said 'pointer_type' object has no attribute|invalid operands of type pointer
pointer_value: These are addresses, not the numbers that are stored there: nothing was loaded.
→ Load first: ‹tile› = ‹load›.

said (Mask|Value) argument cannot be block type
code tl\.(?P<f>load|store)\(\s*(?P<p>\w+_ptr)\s*,
scalar_address: The pointer is given alone, and what follows the comma is not taken for a place in the row.
→ Add the place to the pointer: tl.‹f›(‹place›, …).

said (Mask|Value) argument cannot be block type if pointer argument is not a block
code tl\.(?P<f>load|store)
scalar_address: The address in tl.‹f›, ‹address›, is a single one, and ‹value› is a whole tile.
→ Add the lanes to the address: ‹address› + ‹lanes›. If one number belongs there, reduce the tile first:
  ‹reduced›.

said 'tensor' object has no attribute '(?P<a>stride|size)'|list index out of range
code \.(stride|size)\(|\.shape\[
pointer_has_no_shape: Inside the kernel a tensor is only the address of its first element: it has no shape
  and no strides.
→ Pass the number in as an argument, as x.stride(0) is.

said of type 'tensor' has no len
pointer_has_no_shape: Inside the kernel a tensor is only an address, or a tile: it has no len().
→ Pass the number of columns in as an argument.

# What Python and PyTorch have and a kernel has not

said Torch not compiled with CUDA|Found no NVIDIA driver
device_named: The file asks for the GPU by name, and the check runs on the CPU first.
→ Make tensors with device=x.device, or torch.empty_like(x), in place of device="cuda".

said unsupported AST node type: Import
line ^\s+(import|from) \w
compile: A kernel cannot import: the compiler knows tl's functions and no modules.
→ Remove the line. tl has exp, log and sqrt, and infinity is float("inf").

said has no attribute '?append|object has no attribute 'append'
code (?P<list>\w+)\.append\(
compile: A kernel has no lists that grow: ‹list› cannot be appended to.
→ Keep a running number or a running tile in a variable, and load again what a second walk needs.

said '(tensor|int|float)' object has no attribute '?item
code (?P<t>\w+)\.item\(\)
torch_method: ‹t› is a number already, and has no .item(): that is a PyTorch tensor's.
→ Leave .item() out.

said 'tensor' object has no attribute '(?P<a>float|half|double|type_as|astype)'
torch_method: A tile is not a PyTorch tensor and has no .‹a›().
→ Write .to(tl.float32).

said has no attribute 'to_tensor'|'tensor' object has no attribute
code (?<!\btl)\.(?P<f>exp|log|sqrt|abs|exp2|log2|maximum|minimum|max|sum)\(
torch_method: A tile is not a PyTorch tensor: .‹f›() is not called on it.
→ Write tl.‹f›(…).

said 'tensor' object has no attribute '(?P<a>\w+)'
torch_method: A tile is not a PyTorch tensor and has no .‹a›.
→ Look for a function of triton.language, tl, that does it.

said not iterable|requires at least 2 values|ambiguous
code (?<![\w.])(?P<f>max|min|sum)\((?P<t>\w+)\)
where host
python_reduction: ‹f›() here is Python's own, which compares or adds whole rows; it is not a tensor's.
→ Write ‹t›.‹torch›(dim=1, keepdim=True).

said not iterable|requires at least 2 values|ambiguous
code (?<![\w.])(?P<f>max|min|sum)\((?P<t>\w*)
where kernel
python_reduction: ‹f›() here is Python's own, which goes through a list; a tile is not one.
→ Write tl.‹f›(‹t›, axis=0).

said not iterable
code ^for \w+ in (?!range|tl\.)
walks_over_tile: A kernel cannot go through the lanes of a tile one by one; each operation is for all of
  them.
→ Leave the loop out and write the operation once, on the tile.

said not iterable|only length-1|only 0-dim|unsupported tensor index
said not support item assignment|__setitem__|`_semantic` argument
code ^(?P<t>\w+)\[[^\]]*\]\s*[-+*/]?=(?!=)
indexed: ‹t›[…] = … does not store: in a kernel a pointer is an address, and a tile has no places to write
  to.
→ Store with ‹store›; to change some lanes of a tile, use tl.where.

said not iterable|only length-1|only 0-dim|unsupported tensor index|subscript|`_semantic` argument
code (?P<t>\w+)\s*\[
indexed: ‹t›[…] does not load: in a kernel a pointer is an address, and a tile cannot be taken apart.
→ Load with ‹load›, and choose lanes with a mask.

said is not string|f-string|device_print
code \bprint\((?P<t>\w*)
print_in_kernel: print in a kernel takes a text first, and the compiler rejects a tile there.
→ Write tl.device_print("‹t›", ‹t›), and remove it when you have seen enough: a print costs registers.

said Cannot access global variable (?P<g>\w+)
global_variable: The kernel reads the global variable ‹g›, which may have changed by the time it runs.
→ Write the number in the kernel, pass it in as an argument, or define ‹g› = tl.constexpr(…).

said simultaneous multiple comparison
compile: a <= b < c compares twice at once, which the compiler does not do.
→ Write (a <= b) & (b < c).

said [Bb]oolean value of Tensor|truth value of an array|unsupported chained boolean|logical_and
code \b(and|or|not)\b
compile: `and`, `or` and `not` are for single values, and this is a tile.
→ Use &, | and ~ with each comparison in brackets: (a < b) & (c < d).

said [Bb]oolean value of Tensor|truth value of an array
code ^(if|elif|while|assert) |\bif\b.*\belse\b
where host
branch_on_tensor: A decision is taken once, and the condition here is a tensor with an answer for each
  element.
→ Write torch.where(condition, a, b), which chooses element by element.

said [Bb]oolean value of Tensor|truth value of an array
compile: A decision is taken once for the whole program, and the condition here is a tile, true in some
  lanes.
→ Write tl.where(condition, a, b), which chooses lane by lane.

said (int|float|bool)\(\) argument must be
code (?<![\w.])(?P<f>int|float|bool)\(
python_conversion: ‹f›() is Python's, and a value in a kernel is known only when it runs.
→ Leave ‹f›() out, or convert with .to(tl.float32) or .to(tl.int32).

said comprehensions
compile: Inside a kernel there are no lists built by a loop.
→ Write the loop out, and keep one number or one tile in a variable.

said RecursionError
exception: A function calls itself without end.
→ Look for a function that calls its own name.

# What Python cannot read

said invalid (decimal|hexadecimal|octal|imaginary) literal|invalid syntax
code (?<![\w.])(?P<n>\d+)(?P<m>[A-Za-z_]\w*)
syntax_error: Python cannot read the file: in ‹n›‹m› a name follows a number directly.
→ Write every multiplication with a *, letter by letter: 5 * m * n.

said SyntaxError|IndentationError|TabError
code ^[%!]
syntax_error: Python cannot read the file: ‹message›.
→ Lines that begin with % or ! are the notebook's, not Python's: put them into another cell.

said invalid character '(?P<c>.)'
syntax_error: Python cannot read the file: ‹c› is no character of its own.
→ Write it with the characters of the keyboard: - for minus, * for times, straight quotation marks.

said SyntaxError|IndentationError|TabError
syntax_error: Python cannot read the file: ‹message›.
""")

# Names of other libraries, and their like in triton.language
LIBRARIES = {"math": "math", "np": "numpy", "numpy": "numpy", "torch": "torch"}
ALIASES = {  # what other libraries call it, or what one might think that it is called
    "amax": "max", "amin": "min", "larger": "maximum", "smaller": "minimum", "exponential": "exp",
    "logarithm": "log", "ln": "log", "power": "exp", "pow": "exp", "fmax": "maximum", "fmin": "minimum",
    "next_power_of_2": "constexpr", "size": "num_programs", "shape": "num_programs", "write": "store",
    "read": "load", "range_": "range", "pid": "program_id", "sqr": "sqrt", "fabs": "abs", "full_like": "full",
}  # fmt: skip
REDUCTIONS = ("max", "min", "sum", "argmax", "argmin")

# What a run refused: {rule: (what is wrong, what to do)}
RULES = {
    "entry_missing": (
        "The file defines no `‹it›`.",
        "Keep the name and the arguments of the stub: ‹brief›",
    ),
    "outside_world": (
        "The file ‹it›; an exercise computes, and needs neither files nor other programs.",
        "Leave that out, and check again.",
    ),
    "library_softmax": ("‹it› does the work here; the exercise is to write it.", "‹library_advice›"),
    "out_of_place": (
        "Here ‹it›, and it is not the file's own: the check could be changed that way.",
        "Write to objects, classes and functions of the file's own, or keep the value in a variable.",
    ),
    "answer_opened": (
        "The file opens ‹it›, where the finished code is.",
        'Write it here; to read the answer, solution("‹name›", anyway=True) shows it.',
    ),
}
MOVE_IT = (
    "The check runs the file alone, with torch, triton, numpy and Python's own modules.",
    "Move that line, and what uses it, to another cell of the notebook, "
    'or below `if __name__ == "__main__":`, which the check does not run.',
)
LAB_IMPORTED = ("The file imports the lab; check, hint and show belong outside of it.", *MOVE_IT)
WORLD_IMPORTED = (
    "The file imports a module that touches files or programs, which the check has closed.",
    *MOVE_IT,
)
COPIES = (
    "copies_input",
    "PyTorch made a copy of a tensor‹line›: a trip to memory and back that the kernel does not need.",
    "The operation was aten::‹operation›, the work behind .contiguous(), .to(), .float() and .clone().",
    "Give the kernel the row stride, x.stride(0), and let it load the rows where they are; "
    "convert a loaded tile with .to(tl.float32).",
)
TORCH_WORK = (
    "torch_work",
    "PyTorch did part of the work: aten::‹operation›‹line›.",
    "In this exercise PyTorch may allocate, with torch.empty_like and the like; a kernel does the rest.",
    "Move that step into the kernel.",
)

# Runs that did not come back: {kind: (mistake, what, what to do)}
STOPPED = {
    "memory": (
        "memory",
        f"Your code asked for more memory than a check allows ({MEMORY_BYTES >> 30} GB).",
        "",
    ),
    "signal": (
        "crash",
        "Your code ended the process it ran in (signal ‹code›); the notebook is unharmed.",
        "Reading or writing memory through a raw address does this. Use tl.load and tl.store.",
    ),
    "exit": (
        "exit",
        "Your code ended the Python process before it returned a result.",
        "Remove exit(), quit() or os._exit() from the file.",
    ),
    "raised": ("exception", "The check could not run your file: ‹raised›", ""),
    "changed": (
        "checker_changed",
        "The file changed how the check counts.",
        "Leave Triton and the check as they are, and write the kernel.",
    ),
}

# What the compiler rejects
NOT_LAUNCHED = (
    "The kernel ran in the interpreter, and nothing was launched for the real compiler.",
    "Launch the same kernel each time the function is called, whatever the mode.",
)
NOT_THROUGH = (
    "The kernel runs in the interpreter, but the real compiler did not get through it.",
    "Use only tl functions on tensors inside the kernel.",
)
INTERPRETER_FORGIVES = (
    "The interpreter is Python and forgives what a GPU cannot do: "
    "numpy calls, an `if` on a whole tile, a loop variable that changes its type."
)
EQUALS_ONE = (
    "The kernel ‹kernel› does not compile for x of ‹call›: ‹names› ‹are› there.",
    "Triton compiles an argument that equals 1 as ‹number›, a constexpr, and 1 has no .to, no .dtype and no "
    ".shape. The interpreter lets it pass. ‹said›",
    "Cast something that is never an argument: row = tl.program_id(0).to(tl.int64), and row * stride is as "
    "wide as row is. Or write tl.cast(‹first›, tl.int64), which takes a number as well.",
    "Use such an argument in arithmetic and comparisons, where a number does as well.",
)
