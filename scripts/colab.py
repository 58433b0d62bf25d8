"""Run by the set-up cell on Colab: install the Triton that pairs with the torch that is there, if there is
none.

Colab's GPU runtime has both. Its CPU runtime has torch alone. Nothing else is installed or changed.
"""

import importlib.util
import subprocess
import sys
from importlib import metadata

PAIRS = {"2.11": "3.6.0", "2.12": "3.7.0", "2.13": "3.7.1", "2.14": "3.8.0"}  # torch → triton


def main() -> None:
    torch = ".".join(metadata.version("torch").split(".")[:2])
    if importlib.util.find_spec("triton") is None:
        triton = PAIRS.get(torch, "3.8.0")
        print(f"This runtime has torch {torch} and no Triton: installing triton {triton} (a minute).")
        subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", f"triton=={triton}"], check=True)
        importlib.invalidate_caches()
    import course_kernels  # noqa: F401  the proof that it worked

    print(f"Ready: torch {torch}, triton {metadata.version('triton')}.")


main()
