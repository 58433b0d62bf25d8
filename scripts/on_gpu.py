"""Everything that needs a GPU, in one call: check, then measure, then count. Results go to a folder.

    python scripts/on_gpu.py OUT [check] [bench] [counters]

check runs tests/gpu. bench records OUT/bench.json, a picture of it, and OUT/table.txt: forward, backward, few
rows, another dimension, what a call costs on the CPU; float32 and 16 bits; the course and its peers, those of
them that are installed, in one run. counters adds what Nsight Compute counted in DRAM, where `ncu` is on the
PATH. To record a GPU for the course, copy OUT/bench.json to course_kernels/lab/bench/recorded/NAME.json.
"""

import csv
import io
import json
import multiprocessing
import re
import shutil
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

MINE = ("copy", "torch", "softmax")
RIVALS = (*MINE, "compile", "liger", "quack")

POWERS = tuple(2**k for k in range(6, 23))
BETWEEN = (100, 192, 320, 576, 704, 777, 1000, 1088, 1344, 1536, 2176, 3264, 4160, 6144)
BETWEEN += (8256, 10_240, 12_672, 16_448, 20_480, 24_576, 28_672)
WIDE = (40_960, 50_304, 51_200, 57_344, 73_728, 98_304, 100_000, 100_352, 128_256, 129_280, 151_936, 152_064)
WIDE += (200_000, 201_088, 202_048, 256_000, 262_208, 700_000)
ODD = (1025, 2049, 4097, 8193, 16_385, 32_769, 65_537, 781, 1009, 4099, 7919, 17_389, 24_593, 30_011, 40_961)
ODD += (50_257, 60_013, 100_003)
SIXTEEN = (100, 320, 777, 1000, 1088, 8256, 12_672, 16_448, 20_480, 24_576, 28_672, 32_000)
ODD_SIXTEEN = (4097, 8193, 12_673, 16_385, 17_389, 32_769, 50_257)
FEW = ((1, 2**24), (8, 2**22), (8, 2**20), (16, 2**16), (32, 128_256), (1, 128_256), (4, 102_400))
FEW += ((64, 2**17), (64, 2**22))
TUTORIAL = tuple((4096, n) for n in (256, 512, 768, 1024, 2176, 4096, 8192, 12_672))
ALONG = (((4096, 4096), 0), ((1024, 65_536), 0), ((65_536, 1024), 0), ((64, 512, 2048), 1))
ALONG += (((8, 16, 128, 4096), 2),)
CALLS = ((64, 1000), (32, 32_000), (1, 128_256), (64, 65_536))


def check(out: Path) -> int:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "gpu", "--tb=short"]
    if find_spec("xdist"):
        command += ["-n", "12"]  # most of the time is compilation
    done = subprocess.run([*command, str(ROOT / "tests" / "gpu")], cwd=ROOT, capture_output=True, text=True)
    (out / "tests.txt").write_text(done.stdout + done.stderr)
    print(done.stdout[-3000:], done.stderr[-1500:])
    return done.returncode


def bench(out: Path) -> None:
    from course_kernels.lab.bench import measure as bench

    def fit(widths, nbytes=bench.BYTES, itemsize=4):
        return [(max(1, nbytes // (itemsize * n)), n) for n in widths]

    course = ("copy", *bench.COURSE)
    half = bench.BYTES // 2
    backward = (1000, 1024, 4096, 16_000, 16_384, 32_000, 50_257, 65_536, 262_144)
    groups = [  # contenders, shapes, dtype, op
        ((*RIVALS, "eager"), fit(POWERS), "float32", "forward"),
        (course, fit(POWERS), "float32", "forward"),
        (RIVALS, fit(BETWEEN), "float32", "forward"),
        ((*RIVALS, "cluster_row", "resident_row"), fit(ODD + WIDE), "float32", "forward"),
        ((*RIVALS, "packed_row", "resident_row"), fit(POWERS, itemsize=2), "bfloat16", "forward"),
        (RIVALS, fit(SIXTEEN + ODD_SIXTEEN + WIDE, itemsize=2), "bfloat16", "forward"),
        (MINE, fit((1024, 8192, 16_384, 32_768, 65_536, 262_144), itemsize=2), "float16", "forward"),
        ((*MINE, "split_row", "resident_row", "compile", "quack"), list(FEW), "float32", "forward"),
        ((*RIVALS, "eager", "fused_row", "multi_row"), list(TUTORIAL), "float32", "forward"),
        ((*MINE, "compile"), fit(backward, half), "float32", "backward"),
        (MINE, fit((64, 256, 2049, 8192, 20_480, 32_768, 131_072), half), "float32", "backward"),
        ((*MINE, "compile"), fit((*backward, 32_768), half, 2), "bfloat16", "backward"),
        ((*MINE, "compile"), list(ALONG), "float32", "along"),
        ((*MINE, "compile"), list(ALONG), "bfloat16", "along"),
    ]
    jobs = [(k, shape, dtype, op) for ks, shapes, dtype, op in groups for shape in shapes for k in ks]
    with ProcessPoolExecutor(12, mp_context=multiprocessing.get_context("spawn")) as pool:
        list(pool.map(warm, jobs, chunksize=4))  # compiles everything once, on all cores
    result = bench.header("python scripts/on_gpu.py OUT bench") | {"records": []}
    result["calls"] = bench.calls(("torch", "launch", "softmax", "compile", "liger", "quack"), CALLS)
    bar = bench.Progress(sum(len(shapes) for _, shapes, _, _ in groups), sys.stderr)
    seen = set()
    for kernels, shapes, dtype, op in groups:
        for record in bench.compare(kernels, shapes, dtype, op, seconds=0.05, graphs=True, progress=bar):
            size = record.rows, record.columns, record.shape
            key = (record.kernel, record.op, record.dtype, *size, record.timing)
            if key not in seen:
                seen.add(key)
                result["records"].append(vars(record))
        (out / "bench.json").write_text(bench.to_text(result), encoding="utf-8")  # as far as it got
    bench.draw(result, out / "bench.svg")
    text = table(result["records"]) + "".join(f"{call}\n" for call in result["calls"])
    (out / "table.txt").write_text(text)
    print(text)


def warm(job) -> None:
    """Compile a contender for a shape, into the cache on disk that all processes share."""
    import torch

    from course_kernels.lab.bench import measure as bench

    kernel, shape, dtype, op = job
    shape, dim = shape if op == "along" else (shape, -1)
    try:
        x, dy = bench.inputs(shape, dtype, op)
        bench.contender(kernel, op, x, dy, dim)()
        torch.cuda.synchronize()
    except Exception as refused:  # bench.compare leaves it out; what it says is worth seeing once
        print(f"{kernel} {shape} {dtype}: {str(refused)[:150]}", file=sys.stderr)


def table(records) -> str:
    """One line a shape: each contender's share of a copy."""
    lines, shapes = [], {}
    for r in records:
        size = r["shape"] or f"{r['rows']}x{r['columns']}"
        shapes.setdefault((r["op"], r["dtype"], size, r["timing"]), {})[r["kernel"]] = r
    for (op, dtype, size, timing), row in shapes.items():
        cells = " ".join(
            f"{kernel}:{r['share_of_copy']:.3f}" + ("!" if r["note"] == "wrong values" else "")
            for kernel, r in row.items()
            if kernel != "copy" and r["share_of_copy"]
        )
        lines.append(f"{op[:3]} {dtype[:4]} {size} {timing[:1]} copy {row['copy']['gbps']:.0f} {cells}")
    return "\n".join(lines) + "\n"


COUNTED = (
    "copy",
    "torch",
    "eager",
    "fused_row",
    "tiled",
    "split_row",
    "cluster_row",
    "resident_row",
    "softmax",
)
COUNTED_SHAPES = ((4096, 1024), (4096, 4096), (16_384, 16_384), (4096, 65_536), (1024, 262_144), (128, 2**21))
METRICS = ("dram__bytes_read.sum", "dram__bytes_write.sum", "lts__t_bytes.sum")


def counters(out: Path) -> None:
    if not shutil.which("ncu"):
        print("ncu is not on the PATH: no counters.")
        return
    command = "ncu --clock-control none --cache-control all --profile-from-start off --nvtx".split()
    command += "--print-nvtx-rename kernel --csv --page raw --print-units base --metrics".split()
    command += [",".join(METRICS), sys.executable, __file__, str(out), "counted"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    (out / "ncu.csv").write_text(done.stdout + done.stderr)
    lines = done.stdout[done.stdout.find('"ID"') :]
    found = {}
    for row in csv.DictReader(io.StringIO(lines)):
        named = re.search(r"(\w+)@(\d+)x(\d+)", " ".join(v or "" for v in row.values()))
        if not named:
            continue  # the line of units
        sums = found.setdefault((named[1], int(named[2]), int(named[3])), [0.0, 0.0, 0.0])
        for i, metric in enumerate(METRICS):
            sums[i] += float(row[metric].replace(",", ""))
    keys = ("read_mb", "written_mb", "through_l2_mb")
    counted = [
        {"kernel": kernel, "rows": rows, "columns": columns, "dtype": "float32"}
        | {key: round(value / 1e6, 1) for key, value in zip(keys, sums, strict=True)}
        for (kernel, rows, columns), sums in found.items()
    ]
    (out / "counters.json").write_text(json.dumps(counted, indent=1))
    print("\n".join(map(str, counted)) or done.stdout[-1500:] + done.stderr[-1500:])
    recorded = out / "bench.json"
    if recorded.exists() and counted:
        from course_kernels.lab.bench import measure as bench

        result = json.loads(recorded.read_text()) | {
            "counters": counted,
            "counters_command": " ".join(command[:5]),
        }
        recorded.write_text(bench.to_text(result), encoding="utf-8")


def counted() -> None:
    """The program that ncu watches: each contender once, named by its range."""
    import torch

    from course_kernels.lab.bench import measure as bench

    for rows, columns in COUNTED_SHAPES:
        x = torch.randn(rows, columns, device="cuda")
        for kernel in COUNTED:
            try:
                contender = bench.contender(kernel, "forward", x)
                contender()
            except ValueError:
                continue
            torch.cuda.synchronize()
            torch.cuda.profiler.start()
            torch.cuda.nvtx.range_push(f"{kernel}@{rows}x{columns}")
            contender()
            torch.cuda.nvtx.range_pop()
            torch.cuda.synchronize()
            torch.cuda.profiler.stop()


def main(out: str, *steps: str) -> int:
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    steps = steps or ("check", "bench", "counters")
    failed = check(folder) if "check" in steps else 0
    if "bench" in steps:
        bench(folder)
    if "counters" in steps:
        counters(folder)
    if "counted" in steps:
        counted()
    return failed


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]) if len(sys.argv) > 1 else __doc__)
