"""softmax and cross-entropy of rows that are split across processes, on groups of one to four with gloo."""

import functools
import multiprocessing

import pytest
import ranks
import sharded_cases
import torch

from course_kernels import mode, sharded

pytestmark = [
    pytest.mark.skipif(not mode.interpreting(), reason="gloo's tensors are on the CPU"),
    pytest.mark.xdist_group("sharded"),
]


@functools.cache
def outcomes(world):
    """What became of every case, in each rank of a group of so many: one start of the processes for all."""
    return ranks.run(sharded_cases.run_all, world)


@pytest.mark.parametrize("world", (1, 2, 3, 4))
@pytest.mark.parametrize("case", sharded_cases.CASES)
def test_in_every_process(case, world):
    for rank, outcome in enumerate(outcomes(world)):
        assert isinstance(outcome, dict), f"rank {rank} ended without an answer: {outcome}"
        wrong = outcome.get(case, "not reached: a case before it failed")
        if wrong:
            pytest.fail(f"In rank {rank} of {world}: {wrong}", pytrace=False)


def test_the_death_of_a_process_is_a_clear_error_in_the_others():
    *others, dead = ranks.run(sharded_cases.killed_in_mid_exchange, 3, timeout=10)
    assert dead is None
    for words, seconds in others:
        assert "exchange with the group's other processes failed" in words and "Did one die" in words
        assert seconds < 15


def test_a_call_left_out_by_one_process_is_a_clear_error_in_the_others():
    words, _ = ranks.run(sharded_cases.leaves_out_a_call, 2, timeout=2)
    assert "exchange with the group's other processes failed" in words and "leave out a call" in words


def test_no_process_is_left_running():
    outcomes(2)
    assert multiprocessing.active_children() == []


def test_without_a_process_group_a_sentence_says_what_to_call():
    with pytest.raises(RuntimeError, match="init_process_group"):
        sharded.softmax(torch.zeros(2, 3))
    with pytest.raises(RuntimeError, match="init_process_group"):
        sharded.cross_entropy(torch.zeros(2, 3), torch.zeros(2, dtype=torch.int64))
