"""How the programs of a cluster learn each other's results: each leaves its own in the others' shared memory.

On GPUs since Hopper (2022), up to sixteen programs can be launched as a cluster: they run at the same time,
side by side, and each can write into the shared memory of the others, which is nearer than the L2 cache.
Triton has no word for that; PTX, the assembly language it compiles to, has.

Triton writes a cluster as one program whose tiles are shared out: here tiles (CTAS, 32 · WARPS), one element
for each thread. (A CTA is what CUDA calls a program.) Every warp of the cluster sends its (m, d) to all CTAs,
where a slot waits for it, and an mbarrier, PTX's counter in shared memory, counts the bytes that arrive. No
CTA waits for another to reach a line, only for its results, and nothing passes through memory. With a barrier
of the whole cluster in its place, bfloat16 131,072 reaches 0.83 of a copy on an H200, with this 0.99.

In the interpreter one program is the whole cluster, and a plain reduction does the same.
"""

import math

import triton
import triton.language as tl
from triton import knobs

from .online import merge

COMPILED = tl.constexpr(not knobs.runtime.interpret)
LOG2E = tl.constexpr(math.log2(math.e))
MAX_WARPS = 256  # of a cluster: a slot of 8 bytes for each


@triton.jit
def open_slots(CTAS: tl.constexpr, WARPS: tl.constexpr):
    """Tell the mbarrier how many bytes will arrive, and the cluster that this CTA is there. First thing in a
    kernel: the loads hide the wait for the others.

    Returns the address in shared memory: first the mbarrier, then a slot for each warp of the cluster.
    """
    if COMPILED and CTAS > 1:
        return tl.inline_asm_elementwise(
            """{ .shared .align 8 .b8 slots[2056]; .reg .pred first; .reg .b32 thread;
            mov.u32 thread, %tid.x;
            setp.eq.u32 first, thread, 0;
            @first mbarrier.init.shared.b64 [slots], 1;
            @first fence.mbarrier_init.release.cluster;
            @first mbarrier.arrive.expect_tx.shared.b64 _, [slots], $1;
            barrier.cluster.arrive.relaxed.aligned;
            mov.u32 $0, slots; }""",
            "=r,r,~{memory}", [CTAS * WARPS * 8], dtype=tl.int32, is_pure=False, pack=1,
        )  # fmt: skip
    return 0


@triton.jit
def merge_cluster(m, d, slots, CTAS: tl.constexpr, WARPS: tl.constexpr):
    """Merge the (m, d) of all threads of a cluster, (CTAS, 32 · WARPS) float32. All get the result, in the
    same shape or one that broadcasts to it."""
    if COMPILED and CTAS > 1:
        SLOTS: tl.constexpr = CTAS * WARPS
        m, d = tl.reduce((m.reshape(CTAS, WARPS, 32), d.reshape(CTAS, WARPS, 32)), 2, merge, keep_dims=True)
        # All lanes of a warp now have its (m, d), and lane i takes it to CTA i, once all CTAs are there.
        tl.inline_asm_elementwise(
            "barrier.cluster.wait.aligned; mov.u32 $0, 0;",
            "=r,~{memory}", [], dtype=tl.int32, is_pure=False, pack=1,
        )  # fmt: skip
        warp = tl.arange(0, CTAS)[:, None, None] * WARPS + tl.arange(0, WARPS)[None, :, None]
        lane = tl.arange(0, 32)[None, None, :]
        sent = tl.inline_asm_elementwise(
            """{ .reg .pred p; .reg .b32 slot, barrier;
            setp.lt.u32 p, $4, $5;
            @p mapa.shared::cluster.u32 slot, $3, $4;
            @p mapa.shared::cluster.u32 barrier, $6, $4;
            @p st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.f32 [slot], {$1, $2}, [barrier];
            mov.u32 $0, 0; }""",
            "=r,f,f,r,r,r,r,~{memory}", [m, d, slots + 8 + 8 * warp, lane, CTAS, slots],
            dtype=tl.int32, is_pure=False, pack=1,
        )  # fmt: skip
        tl.inline_asm_elementwise(
            """{ .reg .pred all;
            again: mbarrier.try_wait.parity.shared.b64 all, [$1], 0;
            @!all bra again;
            mov.u32 $0, 0; }""",
            "=r,r,~{memory}", [slots], dtype=tl.int32, is_pure=False, pack=1,
        )  # fmt: skip
        # Every warp reads all slots, a lane each.
        m = tl.full((CTAS, WARPS, 32), float("-inf"), tl.float32)
        d = tl.zeros((CTAS, WARPS, 32), tl.float32)
        for first in tl.static_range(0, SLOTS, 32):
            slot = first + lane + sent  # sent is 0, and makes the reads follow the writes
            their_m, their_d = tl.inline_asm_elementwise(
                "ld.shared.v2.f32 {$0, $1}, [$2];",
                "=f,=f,r,~{memory}", [slots + 8 + 8 * (slot % SLOTS)],
                dtype=(tl.float32, tl.float32), is_pure=False, pack=1,
            )  # fmt: skip
            their_m = tl.where(slot < SLOTS, their_m, float("-inf"))
            m, d = merge(m, d, their_m, tl.where(slot < SLOTS, their_d, 0.0))
        m, d = tl.reduce((m, d), 2, merge, keep_dims=True)
        m, _ = tl.broadcast(m, sent)
        d, _ = tl.broadcast(d, sent)
        return m.reshape(CTAS, 32 * WARPS), d.reshape(CTAS, 32 * WARPS)
    else:
        row_m = tl.max(tl.max(m, 1, keep_dims=True), 0, keep_dims=True)
        d *= tl.exp2((m - tl.where(row_m == float("-inf"), 0.0, row_m)) * LOG2E)
        return row_m, tl.sum(tl.sum(d, 1, keep_dims=True), 0, keep_dims=True)
