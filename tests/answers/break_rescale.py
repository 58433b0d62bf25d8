"""Answers to break_rescale: inputs that hide the bug, things that are no input, and unusual inputs that show it."""

HEAD = "import torch\n\n\ndef break_rescale():\n"

WRONG = {
    "one tile, rising": ("one_tile", HEAD + "    return torch.arange(128.0)[None]\n"),
    "a short row": ("one_tile", HEAD + "    return torch.randn(4, 5)\n"),
    "falling": ("maximum_first", HEAD + "    return torch.linspace(5, 0, 256)[None]\n"),
    "all equal": ("maximum_first", HEAD + "    return torch.full((3, 500), 2.0)\n"),
    "the largest at the end of the first tile": (
        "maximum_first",
        HEAD + "    x = torch.zeros(2, 300)\n    x[:, 127] = 9\n    return x\n",
    ),
    "rises within the first tile": (
        "maximum_first",
        HEAD + "    x = torch.zeros(1, 300)\n    x[0, :128] = torch.arange(128)\n    return x\n",
    ),
    "grows by a hair": (
        "grows_too_little",
        HEAD + "    x = torch.ones(1, 300)\n    x[0, 200] = 1.0000002\n    return x\n",
    ),
    "nothing returned": ("wrong_return", [("return ", "x = ")]),
    "a number returned": ("wrong_return", HEAD + "    return 3.0\n"),
    "one dimension": ("wrong_shape", HEAD + "    return torch.full((300,), -3.0)\n"),
    "three dimensions": ("wrong_shape", HEAD + "    return torch.full((1, 1, 300), -3.0)\n"),
    "no rows": ("wrong_shape", HEAD + "    return torch.zeros(0, 5)\n"),
    "too many columns": ("too_large", HEAD + "    return torch.linspace(-9, -1, 2000)[None]\n"),
    "too many rows": ("too_large", HEAD + "    return torch.linspace(-9, -1, 65 * 300).reshape(65, 300)\n"),
    "an infinity": (
        "not_finite",
        HEAD + "    x = torch.full((2, 300), -3.0)\n    x[1, 7] = -float('inf')\n    return x\n",
    ),
    "a NaN": ("not_finite", HEAD + "    return torch.full((2, 300), float('nan'))\n"),
    "too large for float32": (
        "not_finite",
        HEAD + "    return torch.full((2, 300), 1e300, dtype=torch.float64)\n",
    ),
    "a name missing": ("exception", HEAD + "    return np.full((1, 5), -3.0)\n"),
    "renamed": ("entry_missing", "import torch\n\n\ndef broken():\n    return torch.full((1, 300), -3.0)\n"),
    "the checker's kernel imported": (
        "answer_opened",
        [
            (
                "import torch\n",
                "import torch\nfrom course_kernels.lab.exercises.broken import never_rescaled\n",
            )
        ],
    ),
}

RIGHT = {
    "one larger value at the end": HEAD + "    x = torch.zeros(1, 129)\n    x[0, 128] = 5\n    return x\n",
    "random numbers": HEAD + "    return torch.randn(8, 1000)\n",
    "one row of many": HEAD + "    x = torch.zeros(64, 300)\n    x[63, 299] = 1\n    return x\n",
    "grows by a thousandth": HEAD + "    x = torch.zeros(1, 300)\n    x[0, 200] = 1e-3\n    return x\n",
    "a huge step": HEAD + "    x = torch.full((1, 256), -1e30)\n    x[0, 200] = 1e30\n    return x\n",
    "very negative, rising": HEAD + "    return torch.linspace(-1e4, -9e3, 900)[None].repeat(3, 1)\n",
    "integers": HEAD + "    return torch.arange(256)[None]\n",
    "grows in the last of many tiles": HEAD
    + "    x = torch.zeros(2, 1000)\n    x[:, 0] = 3\n    x[:, -1] = 4\n    return x\n",
    "float16": HEAD + "    return torch.linspace(0, 5, 400, dtype=torch.float16)[None]\n",
    "a list": "def break_rescale():\n    return [[0.0] * 128 + [1.0]]\n",
}
