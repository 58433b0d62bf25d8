"""Answers to safe_softmax: wrong ones with the mistake that must be named, and unusual right ones."""

MAX = "maximum = x.amax(dim=1, keepdim=True)"
EXP = "numerator = torch.exp(x - maximum)"
SUM = "denominator = numerator.sum(dim=1, keepdim=True)"
END = "return numerator / denominator"
HEAD = "import torch\n\n\ndef safe_softmax(x):\n"

WRONG = {
    "the logarithm of the sum added to the maximum": (
        ("lost_digits", "epsilon_added"),  # about one time in a hundred, all rows are off by the same
        "import torch\n\n\ndef safe_softmax(x):\n    m = x.amax(-1, keepdim=True)\n"
        "    lse = m + (x - m).exp().sum(-1, keepdim=True).log()\n    return (x - lse).exp()\n",
    ),
    "no maximum": ("no_maximum", [(EXP, "numerator = torch.exp(x)")]),
    "maximum of abs": ("maximum_of_abs", [(MAX, "maximum = x.abs().amax(dim=1, keepdim=True)")]),
    "minimum": ("minimum", [("x.amax", "x.amin")]),
    "mean taken off": ("mean_taken_off", [("x.amax(", "x.mean(")]),
    "sum taken off": ("sum_taken_off", [("x.amax(", "x.sum(")]),
    "first element taken off": ("first_element", [(MAX, "maximum = x[:, :1]")]),
    "maximum at least 0": ("maximum_starts_at_zero", [(MAX, MAX + ".clamp(min=0)")]),
    "one maximum for all": ("global_max", [(MAX, "maximum = x.max()")]),
    "one maximum and one sum for all": (
        "global_max",
        [(MAX, "maximum = x.max()"), (SUM, "denominator = numerator.sum()")],
    ),
    "one sum for all": ("global_sum", [(SUM, "denominator = numerator.sum()")]),
    "maximum over dim 0": ("maximum_wrong_dim", [(MAX, "maximum = x.amax(dim=0, keepdim=True)")]),
    "maximum over dim 0, keepdim dropped": ("maximum_wrong_dim", [(MAX, "maximum = x.amax(dim=0)")]),
    "sum over dim 0": ("sum_wrong_dim", [("sum(dim=1", "sum(dim=0")]),
    "both over dim 0": ("wrong_axis", [("dim=1", "dim=0")]),
    "keepdim forgotten in the maximum": ("keepdim_forgotten", [(MAX, "maximum = x.amax(dim=1)")]),
    "keepdim forgotten in the sum": ("keepdim_forgotten", [(SUM, "denominator = numerator.sum(dim=1)")]),
    "keepdim forgotten twice": ("keepdim_forgotten", [(", keepdim=True", "")]),
    "keepdim forgotten, global maximum": (
        "keepdim_forgotten",
        [(MAX, "maximum = x.max()"), (SUM, "denominator = numerator.sum(1)")],
    ),
    "keepdim forgotten, no maximum": (
        "keepdim_forgotten",
        [(EXP, "numerator = torch.exp(x)"), (SUM, "denominator = numerator.sum(1)")],
    ),
    "max gives a pair": ("max_returns_pair", [(MAX, "maximum = x.max(dim=1, keepdim=True)")]),
    "not divided": ("not_divided", [(END, "return numerator")]),
    "divided by the length": ("mean", [(END, "return numerator / x.shape[1]")]),
    "divided by the sum of x": ("sum_of_inputs", [("numerator.sum(", "x.sum(")]),
    "divided by the largest": ("divided_by_maximum", [("numerator.sum(", "numerator.amax(")]),
    "no exponential": ("no_exponential", [(EXP, "numerator = x - maximum")]),
    "base two": ("base_two", [("torch.exp(", "torch.exp2(")]),
    "wrong sign": ("sign", [("x - maximum", "maximum - x")]),
    "logarithm": ("log_given", [(END, "return (x - maximum) - torch.log(denominator)")]),
    "an epsilon in the sum": ("epsilon_added", [(END, "return numerator / (denominator + 1e-4)")]),
    "NaN made 0": ("nan_swallowed", [(END, "return torch.nan_to_num(numerator / denominator)")]),
    "NaN skipped": (
        "nan_swallowed",
        [(MAX, "x = torch.where(torch.isnan(x), float('-inf'), x)\n    " + MAX)],
    ),
    "clamped from below": ("clamped", [("x - maximum", "(x - maximum).clamp(min=-50)")]),
    "clamped in place of a maximum": ("clamped", [("x - maximum", "x.clamp(max=80)")]),
    "through float16": (
        "imprecise",
        [
            (MAX, "dtype, x = x.dtype, x.half()\n    " + MAX),
            (END, "return (numerator / denominator).to(dtype)"),
        ],
    ),
    "the logarithm of a naive sum": (
        "no_maximum",
        [(END, "return torch.exp(x - torch.log(torch.exp(x).sum(1, True)))")],
    ),
    "x changed in place": ("input_overwritten", [(EXP, "x -= maximum\n    numerator = torch.exp(x)")]),
    "x exponentiated in place": ("input_overwritten", [(EXP, "numerator = x.sub_(maximum).exp_()")]),
    "x divided in place, returned": (
        "input_overwritten",
        [(END, "x.copy_(numerator / denominator)\n    return x")],
    ),
    "x changed and put back": (
        "input_overwritten",
        [(END, "x *= 2\n    x /= 2\n    return numerator / denominator")],
    ),
    "x as the output of an operation": (
        "input_overwritten",
        [(EXP, "numerator = torch.exp(torch.sub(x, maximum, out=x))")],
    ),
    "torch.softmax": ("library_softmax", [(END, "return torch.softmax(x, dim=1)")]),
    "x.softmax": ("library_softmax", [(END, "return x.softmax(1)")]),
    "F.softmax": ("library_softmax", [(END, "return torch.nn.functional.softmax(x, dim=-1)")]),
    "nn.Softmax": ("library_softmax", [(END, "return torch.nn.Softmax(dim=1)(x)")]),
    "F.softmin of −x": ("library_softmax", [(END, "return torch.nn.functional.softmin(-x, dim=1)")]),
    "log_softmax": ("library_softmax", [(END, "return torch.log_softmax(x, 1).exp()")]),
    "logsumexp": ("library_softmax", [(END, "return torch.exp(x - torch.logsumexp(x, 1, keepdim=True))")]),
    "the raw operator": ("library_softmax", [(END, "return torch.ops.aten._softmax(x, 1, False)")]),
    "caught and tried again": (
        "library_softmax",
        [
            (
                END,
                "try:\n        return torch.softmax(x, 1)\n    except Exception:\n        return numerator / denominator",
            )
        ],
    ),
    "numpy does it": (
        "not_pytorch",
        HEAD
        + "    import numpy as np\n    a = x.numpy().astype('f8')\n    e = np.exp(a - a.max(1, keepdims=True))\n    return torch.from_numpy(e / e.sum(1, keepdims=True)).to(x.dtype)\n",
    ),
    "Python does it": (
        "not_pytorch",
        HEAD
        + "    import math\n    out = []\n    for row in x.tolist():\n        m = max(row)\n        e = [math.exp(v - m) if v == v and m < math.inf and m > -math.inf else math.nan for v in row]\n        out.append([v / sum(e) for v in e])\n    return torch.tensor(out, dtype=x.dtype)\n",
    ),
    "kept from the first call": (
        "not_pytorch",
        "import torch\n\n_kept = {}\n\n\ndef safe_softmax(x):\n    if x.shape not in _kept:\n        e = torch.exp(x - x.amax(1, keepdim=True))\n        _kept[x.shape] = e / e.sum(1, keepdim=True)\n    return _kept[x.shape]\n",
    ),
    "numpy does it, torch.exp is called too": (
        "not_pytorch",
        HEAD
        + "    torch.exp(x)\n    a = torch.as_tensor(x.tolist()).numpy().astype('f8')\n    import numpy as np\n    e = np.exp(a - a.max(1, keepdims=True))\n    return torch.from_numpy(e / e.sum(1, keepdims=True)).to(x.dtype)\n",
    ),
    "numpy on x, and PyTorch": (
        "not_pytorch",
        [
            (
                MAX,
                "maximum = x.amax(dim=1, keepdim=True) + float(x.numpy()[0, 0]) * 0 if x.isfinite().all() else x.amax(dim=1, keepdim=True)",
            )
        ],
    ),
    "numpy's result added to 0 times exp": (
        "not_pytorch",
        HEAD
        + "    e = torch.exp((x - x.amax(1, keepdim=True)).nan_to_num(0.0, 0.0, 0.0)) * 0\n    a = np.array(x.tolist(), dtype='f8').reshape(x.shape)\n    with np.errstate(all='ignore'):\n        n = np.exp(a - a.max(1, keepdims=True))\n        n = n / n.sum(1, keepdims=True)\n    return e + torch.from_numpy(n).to(x.dtype)\n".replace(
            "np.", "__import__('numpy')."
        ),
    ),
    "with the recording switched off": (
        "not_pytorch",
        HEAD
        + "    from torch.utils._python_dispatch import _disable_current_modes\n    y = torch.exp(x)\n    with _disable_current_modes():\n        y.copy_(torch.softmax(x, 1))\n    return y\n",
    ),
    "in another thread": (
        "not_pytorch",
        HEAD
        + "    import threading\n    y = torch.exp(x)\n    def work():\n        y.copy_(torch.softmax(x, 1))\n    t = threading.Thread(target=work)\n    t.start()\n    t.join()\n    return y\n",
    ),
    "wrong from 20 rows on": (
        "not_divided",
        [(END, "return numerator / denominator if len(x) < 20 else numerator")],
    ),
    "1e-6 in the sum": ("epsilon_added", [(END, "return numerator / (denominator + 1e-6)")]),
    "a floor under the maximum": ("maximum_starts_finite", [(MAX, MAX + ".clamp(min=-1e38)")]),
    "the course's own": (
        "answer_opened",
        [("import torch\n", "import torch\nfrom course_kernels.eager import softmax\n")],
    ),
    "the solution read": (
        "answer_opened",
        [("import torch\n", "import torch\nopen('solutions/safe_softmax.py').read()\n")],
    ),
    "nothing returned": ("wrong_return", [(END, "y = numerator / denominator")]),
    "a numpy array returned": ("wrong_return", [(END, "return (numerator / denominator).numpy()")]),
    "the sum returned": ("wrong_shape", [(END, "return denominator")]),
    "always float32": ("wrong_dtype", [(EXP, "numerator = torch.exp((x - maximum).float())")]),
    "a name missing": ("exception", [("torch.exp(", "torch.exponential(")]),
    "renamed": ("entry_missing", [("def safe_softmax(", "def softmax(")]),
    "a syntax error": ("syntax_error", [(MAX, MAX + ")")]),
    "an endless loop": ("timeout", [(MAX, "while True:\n        pass")]),
}

RIGHT = {
    "in one line, float32 throughout": HEAD
    + "    e = (x.float() - x.float().max(1, keepdim=True).values).exp()\n    return (e / e.sum(1, keepdim=True)).to(x.dtype)\n",
    "torch.max, unsqueeze, dim=-1": HEAD
    + "    m, _ = torch.max(x, dim=-1)\n    e = torch.exp(x - m.unsqueeze(1))\n    return torch.div(e, torch.sum(e, dim=-1)[:, None])\n",
    "a loop over the rows": HEAD
    + "    y = torch.empty_like(x)\n    for i in range(x.shape[0]):\n        e = torch.exp(x[i] - x[i].max())\n        y[i] = e / e.sum()\n    return y\n",
    "rows stacked": HEAD
    + "    rows = []\n    for row in x:\n        e = torch.exp(row - max(row.max(), row.max()))\n        rows.append(e / e.sum())\n    return torch.stack(rows)\n",
    "transposed": HEAD + "    t = x.T\n    e = (t - t.amax(0)).exp()\n    return (e / e.sum(0)).T\n",
    "in place on its own tensors": HEAD
    + "    y = x - x.amax(1, keepdim=True)\n    y.exp_()\n    y /= y.sum(1, keepdim=True)\n    return y\n",
    "exp2 with the scale": HEAD
    + "    s = (x - x.amax(1, True)).double()\n    e = torch.exp2(s * 1.4426950408889634)\n    return (e / e.sum(1, True)).to(x.dtype)\n",
    "e to the power": HEAD
    + "    e = torch.e ** (x.double() - x.double().amax(1, keepdim=True))\n    return (e * (1 / e.sum(1, keepdim=True))).to(x.dtype)\n",
    "through the logarithm of the sum": HEAD
    + "    m = x.float().amax(1, keepdim=True)\n    log_sum = torch.log(torch.exp(x.float() - m).sum(1, keepdim=True))\n    return torch.exp((x.float() - m).double() - log_sum).to(x.dtype)\n",
    "einsum and clone": HEAD
    + "    z = x.clone().double()\n    z -= z.max(dim=1, keepdim=True)[0]\n    e = z.exp()\n    return torch.einsum('ij,i->ij', e, 1 / torch.einsum('ij->i', e)).to(x.dtype)\n",
    "prints as it goes": HEAD
    + "    m = x.amax(1, keepdim=True)\n    e = torch.exp(x - m)\n    print(m, e.numpy()[0, 0], x.tolist()[0][0])\n    return e / e.sum(1, keepdim=True)\n",
    "a harmless epsilon": HEAD
    + "    e = torch.exp(x - x.amax(1, keepdim=True))\n    return e / (e.sum(1, keepdim=True) + 1e-12)\n",
    "a larger constant than the maximum": HEAD
    + "    e = torch.exp(x - (x.amax(1, keepdim=True) + 1))\n    return e / e.sum(1, keepdim=True)\n",
    "a class behind it": "import torch\nimport torch.nn as nn\n\n\nclass Mine(nn.Module):\n    def forward(self, x):\n        e = torch.exp(x - torch.amax(x, 1, keepdim=True))\n        return e / torch.sum(e, 1, keepdim=True)\n\n\nsafe_softmax = Mine()\n",
    "under autograd": HEAD
    + "    z = x.detach().clone().requires_grad_()\n    e = torch.exp(z - z.amax(1, keepdim=True))\n    return e / e.sum(1, keepdim=True)\n",
}
