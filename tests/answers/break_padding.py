"""Answers to break_padding: inputs that hide the bug, things that are no input, and unusual inputs that show it."""

HEAD = "import torch\n\n\ndef break_padding():\n"

WRONG = {
    "negative, but a power of two": ("no_masked_lanes", HEAD + "    return torch.full((3, 64), -3.0)\n"),
    "a single column": ("no_masked_lanes", HEAD + "    return torch.full((3, 1), -3.0)\n"),
    "random, a power of two": ("no_masked_lanes", HEAD + "    return torch.randn(8, 512)\n"),
    "large positive numbers": ("maximum_far_above_zero", HEAD + "    return torch.randn(4, 100) + 50\n"),
    "one large number a row": (
        "maximum_far_above_zero",
        HEAD + "    x = torch.full((4, 100), -3.0)\n    x[:, 0] = 30\n    return x\n",
    ),
    "just too large": ("maximum_far_above_zero", HEAD + "    return torch.full((1, 100), 19.0)\n"),
    "huge": ("maximum_far_above_zero", HEAD + "    return torch.full((2, 5), 1e30)\n"),
    "nothing returned": ("wrong_return", [("return ", "x = ")]),
    "a number returned": ("wrong_return", HEAD + "    return 3.0\n"),
    "words": ("wrong_return", HEAD + "    return [['a', 'b', 'c']]\n"),
    "complex numbers": ("wrong_return", HEAD + "    return torch.zeros(2, 5, dtype=torch.complex64)\n"),
    "an argument": (
        "wrong_arguments",
        "import torch\n\n\ndef break_padding(x):\n    return torch.zeros(1, 5)\n",
    ),
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
                "import torch\nfrom course_kernels.lab.exercises.broken import padded_with_zero\n",
            )
        ],
    ),
}

RIGHT = {
    "one negative row": HEAD + "    return torch.tensor([[-1.0, -2.0, -3.0]])\n",
    "zeros": HEAD + "    return torch.zeros(1, 3)\n",
    "very negative": HEAD + "    return torch.full((2, 9), -1e30)\n",
    "random numbers": HEAD + "    return torch.randn(8, 100)\n",
    "only one row of many shows it": HEAD
    + "    x = torch.full((64, 999), 60.0)\n    x[37] = -1\n    return x\n",
    "integers": HEAD + "    return torch.tensor([[-5, -4, -9]])\n",
    "float16, not contiguous": HEAD + "    return (-torch.ones(7, 20, dtype=torch.float16)).t()[:, :5]\n",
    "bfloat16 that requires grad": HEAD
    + "    return torch.full((2, 6), -2.0, dtype=torch.bfloat16, requires_grad=True)\n",
    "a list": "def break_padding():\n    return [[-1.0, -2.0, -7.5]]\n",
    "numpy": "import numpy as np\n\n\ndef break_padding():\n    return -np.ones((4, 1000))\n",
    "a maximum of 10": HEAD + "    return torch.full((1, 3), 10.0)\n",
    "expanded": HEAD + "    return torch.tensor([[-4.0]]).expand(5, 21)\n",
}
