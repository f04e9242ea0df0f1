"""Kinds and sources of evidence that one room gives and another decides by.

Rooms of one layer cannot import each other: written in both, a name that changes in one silently
stops deciding in the other. What only `brctl/evidence/` names stays there.
"""

AILING = "node.ailing"
"""A node of which `status` shows a warning or worse."""

AT_WORK = "job.rank.at-work"
"""A rank evaluates or saves, and the others wait for it: a job that advances, only not by steps."""

BUSY_HOSTS = "job.hosts.busy"
"""Steps are longer, and most hosts have more to do than they can."""

DRIVER_HANG = "gpu.driver.hang"
"""A probe that asks the GPU driver ran out of time, and one that does not ask it did not."""

HELD_BACK = "job.rank.held-back"
"""A rank that its kernel holds back for a reason outside its machine."""

KILLED_FIRST, LEFT_FIRST = "job.rank.killed-first", "job.rank.left-first"
"""The first rank that ended: killed by a signal, or gone without a word."""

GONE_FIRST = "job.rank.gone-first"
"""A rank that is not there, and of which nobody recorded that it ended."""

CRASHED_FIRST, TOLD_FIRST = "job.rank.crashed-first", "job.rank.told-first"
"""The first rank that ended: by a signal of native code, or by one that asks it to stop."""

LOSS_JUMPED, GRADIENT_NORM_JUMPED = "job.steps.loss", "job.steps.gradient-norm"
"""Far above what the same job had before, or 0 where it had one."""

NUMBERS_BAD, NUMBERS_DIFFER = "job.numbers.bad", "job.numbers.differ"
"""Losses that are no numbers, or numbers that should agree and do not; nobody can be named."""

RANK_LOSS, RANK_GRADIENT = "job.rank.loss", "job.rank.gradient"
"""The loss or the gradient of one rank, its own before any exchange, is no number."""

RANKS_CHECK, STACKS_CHECK, FLIGHT_RECORDER = "job.ranks", "job.stacks", "flight-recorder"
NCCL_RAS, WORKER_SERVER = "nccl-ras", "worker-server"
"""Sources that show what a job's ranks do."""

SILENT_NODE = "job.node.silent"
"""A node that does not answer while its job stands still."""

SLOW_LOADER = "job.data.slow-loader"
"""Ranks wait for their batches in many steps: a job with it advances, and is slower."""

UNEVEN_STEPS = "job.steps.uneven"
"""Most steps take what they always took, and some take so long that the job is far slower."""

REPLAY_DIFFERS = "job.data.replay-differs"
"""A restart gave other batches than before: the job advances, on samples repeated or skipped."""

LOADER_CHECK = "job.loader"
"""Source: what the processes do that make a rank's batches."""

DISKS_CHECK, SSH = "host.disk", "ssh"
"""Sources: the check of file systems, and whether a node answers at all."""

FLEET = "fleet"
"""Source: nodes compared with each other."""

CLOCK_SKEW = "host.clock.skew_s"
"""A node's clock is not as the controller's."""

SEARCHED_BEFORE = "run.searched-before"
"""What an earlier run found of a machine that computes wrongly: it convicts nobody."""

WAY_TO_NODES = "controller.way"
"""Most nodes were not reached, so that it is about the way from the controller to them."""
