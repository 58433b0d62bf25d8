#!/bin/sh
# Makes a virtual environment and installs into it; returns at once when that was done already.
#
#   scripts/setup.sh VENV PIP_ARGUMENTS...      for example: scripts/setup.sh .venv -c constraints.txt -e .
#
# Whatever would go wrong on this machine is said in a sentence before anything is changed.
# PYTHON names the interpreter to use; without it, the first suitable one on the PATH.
set -eu

stop() { printf '%s\n' "$*" >&2; exit 1; }

venv=$1
shift
colab=$(sed -n 's|^Repository = "https://github.com/\(.*\)"|https://colab.research.google.com/github/\1|p' pyproject.toml)

case $(uname -s) in
    Linux) ;;
    Darwin)
        stop "Triton, which this course writes its kernels in, has no macOS build: open the course on Colab instead ($colab), or run this command on a Linux machine." ;;
    MINGW* | MSYS* | CYGWIN* | Windows*)
        stop "Triton, which this course writes its kernels in, has no native Windows build: run this command inside WSL ('wsl --install' sets it up), or open the course on Colab ($colab)." ;;
    *)
        stop "Triton, which this course writes its kernels in, is built for Linux only, and this is $(uname -s): open the course on Colab instead ($colab)." ;;
esac

python=
for candidate in ${PYTHON:-python3 python3.13 python3.12 python3.11 python3.10}; do
    if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then
        python=$candidate
        break
    fi
done
if [ -z "$python" ]; then
    found=$("${PYTHON:-python3}" --version 2>&1 | head -n 1) || true
    stop "The course needs Python 3.10 or newer, and '${PYTHON:-python3}' is: ${found:-not installed}. Install a newer one and run this again, or name one you have: make lab PYTHON=/path/to/python3.12. Without one, use Colab: $colab"
fi

# One stamp for each set of arguments; all of them are void once the folder or the files named here change.
state=$({ pwd; "$python" --version; cat pyproject.toml constraints*.txt; } | cksum | tr ' ' '-')
stamp="$venv/.installed-$state-$(printf '%s\n' "$@" | cksum | tr ' ' '-')"
if [ -e "$stamp" ] && "$venv/bin/python" -c '' 2>/dev/null; then
    exit 0
fi

if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
    stop "This Python cannot make virtual environments. On Debian or Ubuntu: sudo apt-get install python3-venv, then run this again."
fi

# A half-made environment, or one that was made in another folder, starts afresh.
if ! "$venv/bin/python" -m pip --version >/dev/null 2>&1 || ! grep -qF "$PWD/$venv" "$venv/bin/activate"; then
    echo "Making a virtual environment in $venv ($("$python" --version))."
    "$python" -m venv --clear "$venv" || stop "Making $venv failed; the lines above say why."
fi

echo "Installing into $venv: some minutes the first time (PyTorch is large), nothing the next."
for old in "$venv"/.installed-*; do
    case $old in "$venv/.installed-$state-"*) ;; *) rm -f "$old" ;; esac
done
"$venv/bin/python" -m pip install --disable-pip-version-check "$@" ||
    stop "The installation stopped; the lines above say why (no network, or a full disk, most often). Nothing is lost: run the same command again."
touch "$stamp"
