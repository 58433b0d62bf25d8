"""A stand-in for a GPU's driver: Triton then compiles, or picks a configuration, as if GPUs were here."""

from triton.backends.compiler import GPUTarget
from triton.runtime import driver
from triton.runtime.autotuner import Autotuner

# The architectures of the course, and a GPU of each whose limits the occupancy is counted for.
ARCHITECTURES = {75: "T4", 80: "A100-80GB", 89: "L4", 90: "H200", 100: "B200"}


class StandIn:
    """Stands in for a GPU: device i is the i-th architecture."""

    def __init__(self, architectures):
        self.architectures = architectures
        self.device = 0

    def get_current_device(self):
        return self.device

    def get_current_stream(self, device=None):
        return 0

    def get_current_target(self):
        return GPUTarget("cuda", self.architectures[self.device], 32)

    def get_active_torch_device(self):
        import torch

        return torch.device("cpu")

    @property
    def utils(self):
        return self

    def get_device_properties(self, device=None):
        """A small GPU's: what launch code asks for when it sizes its grid."""
        return {
            "multiprocessor_count": 4,
            "max_shared_mem": 65536,
            "max_num_regs": 65536,
            "warpSize": 32,
            "sm_clock_rate": 1_000_000,
            "mem_clock_rate": 1_000_000,
            "mem_bus_width": 256,
        }

    def get_benchmarker(self):
        return lambda *args, **kwargs: [0.0, 0.0, 0.0]


_tune = Autotuner.run


def real_gpu() -> None:
    """Undo what stands in for a GPU, in a process that is to use the one that is here."""
    Autotuner.run = _tune
    driver.reset_active()


def first_configuration() -> None:
    """Let `@triton.autotune` take its first configuration: without a GPU there is nothing to time."""

    def run(self, *args, **kwargs):
        config = self.configs[0]
        self.best_config = config
        return self.fn.run(*args, **(kwargs | config.all_kwargs()))

    Autotuner.run = run
    driver.set_active(StandIn(list(ARCHITECTURES)))
