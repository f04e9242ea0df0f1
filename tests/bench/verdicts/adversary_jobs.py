"""An adversary's incidents of jobs and their code, written before any was concluded on.

Long work of one while another hangs, parallel shapes in which waits are unlike by design, dumps of
some ranks only, ends that look alike and are not.
"""

from random import Random

from brctl.model.command import Outcome
from brctl.model.fault import FaultClass as F
from tests.bench.verdicts.adversary_machines import (
    HANGS,
    NETWORKS,
    RECEIVES,
    broken,
    in_stages,
    some_size,
    stuck_beside,
)
from tests.bench.verdicts.causes_machines import aborted_by_watchdog, one_of
from tests.bench.verdicts.fleet import (
    STALL_AFTER_S,
    WAITING,
    Fleet,
    _leave,
    ends,
    remember,
    slow_ranks,
    stands_still,
)
from tests.bench.verdicts.incident import Truth, nobody, place
from tests.bench.verdicts.oncall_machines import kernel_says, sized
from tests.bench.verdicts.unseen_jobs import _dump, _trace

SOUND = (F.NO_FAULT, F.UNKNOWN)
EVALUATES = ("linear.py:Linear.forward", "evaluate.py:evaluate", "train.py:main")
SAVES = ("serialization.py:save", "checkpoint.py:write", "train.py:main")


def _ages(it: Fleet, low_s: float, high_s: float) -> None:
    """The job came to stand so long ago."""
    age = it.rng.uniform(low_s, high_s)
    for values in it.ranks:
        mine = age + it.rng.uniform(0.0, 0.4)
        values |= {"phase_age_s": mine, "progress_age_s": mine}


def evaluates_while_another_hangs(rng: Random) -> tuple[Fleet, Truth]:
    """Rank 0 validates, as it does every hour; a rank elsewhere waits for a lock meanwhile."""
    it = some_size(rng, least=4)
    there = it.some_nodes(1, but=[it.nodes[0]])[0]
    stuck_beside(it, there)
    it.ranks[0] |= {"phase": "evaluation", "process_state": "R", "phase_longest_s": 400.0}
    it.stacks[0] = EVALUATES
    return it, place(HANGS, there)


def saves_while_a_node_is_dead(rng: Random) -> tuple[Fleet, Truth]:
    """Rank 0 writes its checkpoint; a node that holds none of it has lost its power."""
    it = some_size(rng, least=4)
    bad = it.some_nodes(1, but=[it.nodes[0]])[0]
    stands_still(it, [0], where="checkpoint")
    _ages(it, 100.0, 200.0)
    it.ranks[0] |= {"process_state": "D", "phase_longest_s": 300.0}
    it.stacks[0] = SAVES
    it.is_silent(bad, Outcome.CONNECT_TIMED_OUT, "no TCP connection within 5 s")
    return it, broken((F.NODE_FAILURE, F.NETWORK_LINK, F.NETWORK_ETH), bad)


def saves_for_longer_than_a_stall(rng: Random) -> tuple[Fleet, Truth]:
    """Everybody writes shards for half a minute, which took longer before."""
    it = some_size(rng, least=3)
    stands_still(it, range(it.job.world_size), where="checkpoint")
    _ages(it, STALL_AFTER_S * 1.1, STALL_AFTER_S * 2.0)
    for rank, values in enumerate(it.ranks):
        values |= {"process_state": "D", "phase_longest_s": 60.0}
        values |= {"kernel_wait": "folio_wait_bit_common"}
        it.stacks[rank] = SAVES
    return it, nobody(*SOUND)


def file_server_slow_at_the_save(rng: Random) -> tuple[Fleet, Truth]:
    """The same save takes minutes: the file server answers late, and says so on every node."""
    it = some_size(rng, least=3)
    stands_still(it, range(it.job.world_size), where="checkpoint")
    _ages(it, 250.0, 400.0)
    for rank, values in enumerate(it.ranks):
        values |= {"process_state": "D", "kernel_wait": "rpc_wait_bit_killable"}
        values |= {"phase_longest_s": 20.0}
        it.stacks[rank] = SAVES
    for node in it.nodes:
        kernel_says(it, node, "nfs: server nfs01 not responding, still trying")
    return it, nobody(F.STORAGE_CHECKPOINT)


def file_server_was_slow(rng: Random) -> tuple[Fleet, Truth]:
    """It answers again since minutes; the job has gone on at its pace."""
    it = some_size(rng, least=3)
    for node in it.nodes:
        kernel_says(
            it, node, "nfs: server nfs01 not responding, still trying", "nfs: server nfs01 OK",
        )  # fmt: skip
    return it, nobody(*SOUND)


def dumps_without_the_culprit(rng: Random) -> tuple[Fleet, Truth]:
    """Half of the ranks wrote their recorder before they were ended, and all of them wait alike."""
    it = some_size(rng, least=4)
    age = stands_still(it, ())
    for rank, values in enumerate(it.ranks):
        for name in ("phase", "phase_age_s"):
            values.pop(name, None)
        if rank % 2:
            it.dumps[rank] = _dump(it, 412, "nccl:all_reduce", age)
    it.stacks.clear()
    return it, nobody(F.UNKNOWN, F.HANG_MISMATCH)


def dumps_of_a_third_with_the_culprit(rng: Random) -> tuple[Fleet, Truth]:
    """Few recorders could be read; in one of them the collective of the others is missing."""
    it = some_size(rng, least=7)
    there = one_of(it)
    rank = it.rank_on(there)
    age = stands_still(it, [rank])
    for number, values in enumerate(it.ranks):
        for name in ("phase", "phase_age_s"):
            values.pop(name, None)
        if number % 3 == rank % 3:
            waits = number != rank
            last, pending = (412, "nccl:all_reduce") if waits else (411, "")
            it.dumps[number] = _dump(it, last, pending, age)
    it.stacks.clear()
    return it, place(HANGS, there)


def bubbles_of_a_pipeline(rng: Random) -> tuple[Fleet, Truth]:
    """The first stage waits little and the last long, as they always have."""
    it = in_stages(rng)
    it.past = True
    for rank, values in enumerate(it.ranks):
        stage = it.nodes.index(it.job.node_of(rank)) % 4
        values["wait_s"] = it.step_s * (0.03 + 0.12 * stage)
        if stage == 3:
            values["phase"] = "forward"
    remember(it)
    return it, nobody(F.NO_FAULT)


def a_stage_has_become_slow(rng: Random) -> tuple[Fleet, Truth]:
    """One node of a pipeline computes half as fast since an hour; all else waits for its stage."""
    it = in_stages(rng)
    it.past = True
    there = one_of(it)
    slow_ranks(it, it.job.ranks_on(there), rng.uniform(1.5, 2.5))
    return it, place((F.STRAGGLER_SLOW, F.GPU_SLOW), there)


def experts_are_never_even(rng: Random) -> tuple[Fleet, Truth]:
    """A mixture of experts: who has the popular ones waits for nobody, at the usual pace."""
    it = some_size(rng, least=7)
    it.past = True
    popular = set(it.ranks_of(it.some_nodes(2)))
    for rank, values in enumerate(it.ranks):
        share = 0.02 if rank in popular else rng.uniform(0.2, 0.35)
        values["wait_s"] = it.step_s * share
    remember(it)
    return it, nobody(F.NO_FAULT)


def one_expert_takes_all(rng: Random) -> tuple[Fleet, Truth]:
    """The router has collapsed: one node's experts get most tokens, and steps take longer."""
    it = some_size(rng, least=7)
    it.past = True
    there = one_of(it)
    slow_ranks(it, it.job.ranks_on(there), rng.uniform(1.3, 1.8))
    return it, place((F.STRAGGLER_SLOW,), there)


def starts_and_some_are_not_there(rng: Random) -> tuple[Fleet, Truth]:
    """Started half a minute ago: images are still pulled on a third of the nodes."""
    it = some_size(rng, least=4)
    it.past = False
    late = set(it.ranks_of(it.nodes[::3]))
    for rank, values in enumerate(it.ranks):
        values.clear()
        if rank not in late:
            values |= {"alive": True, "process_state": "S", "last_words": "joining 29500\n"}
    return it, nobody(F.UNKNOWN)


def one_node_never_joins(rng: Random) -> tuple[Fleet, Truth]:
    """Minutes after the start one node has no process of the job; all others wait for it."""
    it = some_size(rng, least=4)
    it.past = False
    there = one_of(it)
    for rank, values in enumerate(it.ranks):
        values.clear()
        if rank not in it.job.ranks_on(there):
            values |= {"alive": True, "process_state": "S", "last_words": "joining 29500\n"}
            values |= {"log_age_s": rng.uniform(200.0, 300.0)}
    classes = (F.UNKNOWN, F.HANG_MISMATCH, F.ENVIRONMENT_MISMATCH)
    return it, nobody(*classes, seen_at=[there])


def the_last_save_of_a_job(rng: Random) -> tuple[Fleet, Truth]:
    """All ranks are done; rank 0 still writes what was trained."""
    it = some_size(rng, least=3)
    for rank, values in enumerate(it.ranks):
        age = rng.uniform(40.0, 41.0)
        values |= {"phase": "done", "phase_age_s": age, "progress_age_s": age}
        if rank:
            _leave(values, 0, "training is done\n")
    it.ranks[0] |= {"phase": "checkpoint", "process_state": "D"}
    it.stacks[0] = SAVES
    return it, nobody(*SOUND)


def one_does_not_leave(rng: Random) -> tuple[Fleet, Truth]:
    """All have ended well but one, which destroys its process group for ever."""
    it = some_size(rng, least=3)
    there = one_of(it)
    rank = it.rank_on(there)
    for number, values in enumerate(it.ranks):
        age = rng.uniform(300.0, 301.0)
        values |= {"phase": "done", "phase_age_s": age, "progress_age_s": age}
        if number != rank:
            _leave(values, 0, "training is done\n")
    it.ranks[rank]["process_state"] = "S"
    it.stacks[rank] = ("distributed_c10d.py:destroy_process_group", "train.py:main")
    return it, nobody(*SOUND, *HANGS, seen_at=[there])


def told_and_saved(rng: Random) -> tuple[Fleet, Truth]:
    """The scheduler warned by signal; every rank saved and left with zero before the end."""
    it = some_size(rng, least=3)
    said = "received SIGTERM, saving at step 4117 and leaving\nsaved\n"
    for values in it.ranks:
        age = rng.uniform(60.0, 61.0)
        values |= {"phase": "checkpoint", "phase_age_s": age, "progress_age_s": age}
        _leave(values, 0, said)
    return it, nobody(F.PREEMPTION_SIGTERM, *SOUND)


def one_was_told_to_stop(rng: Random) -> tuple[Fleet, Truth]:
    """Somebody sent one rank a SIGTERM; the others lost their peer."""
    it = some_size(rng, least=3)
    there = one_of(it)
    ends(it, [it.rank_on(there)], -15, "")
    return it, nobody(F.UNKNOWN, F.PREEMPTION_SIGTERM, seen_at=[there])


def killed_long_before_the_watchdogs(rng: Random) -> tuple[Fleet, Truth]:
    """One rank was killed without a word; ten minutes later all watchdogs ended the rest."""
    it = some_size(rng, least=3)
    there = one_of(it)
    rank = it.rank_on(there)
    stands_still(it, ())
    aborted_by_watchdog(it, [rank])
    _leave(it.ranks[rank], -9, "")
    it.ranks[rank]["phase"] = "forward"
    return it, nobody(F.UNKNOWN, seen_at=[there])


def watchdogs_and_nobody_left(rng: Random) -> tuple[Fleet, Truth]:
    """Every rank was ended by its own watchdog while it waited, and no machine shows anything."""
    it = some_size(rng, least=3)
    stands_still(it, ())
    aborted_by_watchdog(it, ())
    return it, nobody(F.UNKNOWN, F.HANG_MISMATCH, *NETWORKS, F.NETWORK_IB)


def same_assertion_on_two(rng: Random) -> tuple[Fleet, Truth]:
    """Two ranks got samples of the same bad shard and raise in the same line."""
    it = some_size(rng, least=10)
    both = it.some_nodes(2)
    said = _trace('pack.py", line 61, in pack', "AssertionError: 4097 tokens in a window of 4096")
    ends(it, [it.rank_on(node) for node in both], 1, said, phase="load")
    return it, nobody(F.USER_CODE, F.DATA_LOADER, seen_at=both)


def half_a_checkpoint_is_loaded(rng: Random) -> tuple[Fleet, Truth]:
    """Started again from a file whose writer was killed: everybody raises at the load."""
    it = some_size(rng, least=3)
    said = _trace(
        'checkpoint.py", line 40, in load',
        "RuntimeError: PytorchStreamReader failed reading zip archive: failed finding central"
        " directory",
    )
    ends(it, range(it.job.world_size), 1, said, phase="load")
    return it, nobody(F.STORAGE_CHECKPOINT)


def may_not_write_here(rng: Random) -> tuple[Fleet, Truth]:
    """One node maps another user to the export: its rank may not write its shard."""
    it = some_size(rng, least=3)
    there = one_of(it)
    said = _trace(
        'checkpoint.py", line 71, in write',
        "PermissionError: [Errno 13] Permission denied: '/ckpt/step-00004000/shard-3'",
    )
    ends(it, [it.rank_on(there)], 1, said, phase="checkpoint")
    classes = (F.STORAGE_CHECKPOINT, F.ENVIRONMENT_MISMATCH, F.USER_CODE)
    return it, place(classes, there)


def quota_of_a_project(rng: Random) -> tuple[Fleet, Truth]:
    """The project's quota is used up: whoever writes first says so, and it is no node's."""
    it = some_size(rng, least=3)
    said = _trace(
        'checkpoint.py", line 71, in write',
        "OSError: [Errno 122] Disk quota exceeded: '/ckpt/step-00004000/shard-0'",
    )
    ends(it, [0], 1, said, phase="checkpoint")
    return it, nobody(F.DISK_FULL, F.STORAGE_CHECKPOINT, seen_at=[it.nodes[0]])


def segfault_of_one(rng: Random) -> tuple[Fleet, Truth]:
    """A native extension of the tokenizer jumps into nothing; its machine is well."""
    it = some_size(rng, least=3)
    there = one_of(it)
    said = (
        "Fatal Python error: Segmentation fault\n\nCurrent thread 0x00007f12 (most recent call"
        ' first):\n  File "/srv/site/code/tok.py", line 88 in encode\n'
        '  File "/srv/site/code/data.py", line 12 in __next__\n'
    )
    ends(it, [it.rank_on(there)], -11, said, phase="load")
    return it, nobody(F.USER_CODE, F.DATA_LOADER, F.UNKNOWN, seen_at=[there])


def one_node_eight_ranks_one_stuck(rng: Random) -> tuple[Fleet, Truth]:
    """A job of one machine: there is nobody to compare it with, and it is the code."""
    it = sized(rng, 1, 8)
    stuck_beside(it, it.nodes[0])
    return it, place(HANGS, it.nodes[0])


def all_pipelines_wait_for_data(rng: Random) -> tuple[Fleet, Truth]:
    """All first stages wait for batches of a slow store; all others for their first stage."""
    it = in_stages(rng)
    stands_still(it, ())
    for rank, values in enumerate(it.ranks):
        stage = it.nodes.index(it.job.node_of(rank)) % 4
        values |= {"phase": "forward" if stage else "load", "process_state": "S"}
        it.stacks[rank] = RECEIVES if stage else ("dataset.py:Shard.read", "train.py:main")
        if not stage:
            values |= {"process_state": "D", "kernel_wait": "rpc_wait_bit_killable"}
    return it, nobody(F.STORAGE_CHECKPOINT, F.DATA_LOADER, F.UNKNOWN, F.HANG_MISMATCH)


def first_of_many_waits(rng: Random) -> tuple[Fleet, Truth]:
    """A hang of one rank whose collective of its own group still shows: it reduces with nobody."""
    it = some_size(rng, least=4)
    there = one_of(it)
    rank = it.rank_on(there)
    age = stands_still(it, [rank], where="optimizer")
    it.stacks[rank] = ("schedule.py:Schedule.step", "train.py:main")
    for number in range(it.job.world_size):
        last, pending = (77, WAITING) if number != rank else (76, "")
        it.dumps[number] = _dump(it, last, pending and f"nccl:{pending}", age)
    return it, place(HANGS, there)


TOLD = (
    evaluates_while_another_hangs, saves_while_a_node_is_dead, saves_for_longer_than_a_stall,
    file_server_slow_at_the_save, file_server_was_slow, dumps_without_the_culprit,
    dumps_of_a_third_with_the_culprit, bubbles_of_a_pipeline, a_stage_has_become_slow,
    experts_are_never_even, one_expert_takes_all, starts_and_some_are_not_there,
    one_node_never_joins, the_last_save_of_a_job, one_does_not_leave, told_and_saved,
    one_was_told_to_stop, killed_long_before_the_watchdogs, watchdogs_and_nobody_left,
    same_assertion_on_two, half_a_checkpoint_is_loaded, may_not_write_here, quota_of_a_project,
    segfault_of_one, one_node_eight_ranks_one_stuck, all_pipelines_wait_for_data,
    first_of_many_waits,
)  # fmt: skip
