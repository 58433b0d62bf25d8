"""Processes on this machine that make up a gloo group: what the tests of course_kernels.sharded run in."""

import multiprocessing
import os
import time
import traceback
import warnings
from datetime import timedelta
from multiprocessing.connection import wait

import torch
import torch.distributed as dist

# A server that has imported all this once forks each rank in milliseconds, before any thread has started.
processes = multiprocessing.get_context("forkserver")
processes.set_forkserver_preload(["sharded_cases", "torch._dynamo", "triton.experimental.gluon"])


def run(work, world, *arguments, seconds=110.0, timeout=60.0):
    """What work(rank, world, *arguments) returns in each rank; None for a rank that ended without an answer.

    Args:
        work: a function that a module on the path holds; what it raises is given as text.
        world: how many processes.
        seconds: the time they have, all told; whoever still runs then, is killed.
        timeout: seconds that an exchange waits for the others.
    """
    store = dist.TCPStore("127.0.0.1", 0, world, is_master=True, wait_for_workers=False)  # 0: a free port
    ranks, answers, results = [], {}, [None] * world
    try:
        for rank in range(world):
            answer, theirs = processes.Pipe(duplex=False)
            process = processes.Process(
                target=_rank, args=(theirs, store.port, timeout, work, rank, world, *arguments), daemon=True
            )
            process.start()
            theirs.close()  # so that an answer ends when the process does
            ranks.append(process)
            answers[answer] = rank
        end = time.monotonic() + seconds
        while answers and (ready := wait(list(answers), max(0.0, end - time.monotonic()))):
            for answer in ready:
                rank = answers.pop(answer)
                try:
                    results[rank] = answer.recv()
                except EOFError:  # it died
                    pass
    finally:
        for process in ranks:
            process.kill()
            process.join()
    return results


def _rank(answer, port, timeout, work, rank, world, *arguments):
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    warnings.simplefilter("ignore", RuntimeWarning)  # numpy's, on inf − inf
    torch.set_num_threads(1)
    limit = timedelta(seconds=timeout)
    store = dist.TCPStore("127.0.0.1", port, world, is_master=False, timeout=limit)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=world, timeout=limit)
    try:
        answer.send(work(rank, world, *arguments))
    except BaseException:
        answer.send(traceback.format_exc())
