"""Start one rank of the lab's training job: `python -m brctl.training --steps 1000`."""

import argparse
import gc
from functools import partial
from pathlib import Path


def main() -> None:
    """Read the flags, then import the heavy part."""
    parser = argparse.ArgumentParser(description="One rank of the lab's training job.")
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--checkpoint-every", type=int, default=10)
    parser.add_argument("--keep", type=int, default=4)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--pace", type=float, default=0.1)
    parser.add_argument("--collective-timeout", type=float, default=30.0)
    parser.add_argument("--dump-after", type=float, default=10.0)
    parser.add_argument("--on-loader", default="", help="respawn, shadow or fail: supervise it")
    parser.add_argument("--loader-silent-after", type=float, default=300.0)
    parser.add_argument("--axes", help="tp=2,pp=2,dp=2: really so, and save every step")
    parser.add_argument("--replay", type=int, help="replay so many steps in a group, save nothing")
    parser.add_argument("--data-ranks", type=int, default=1, help="ranks of the job, for --replay")
    parser.add_argument("--checkpoints", type=Path, help="where --replay begins: the newest here")
    flags = parser.parse_args()

    # Importing torch makes a million objects that stay. Looking for garbage among them, now, while
    # training and at the end, is half of the 2.5 s of CPU time that every rank of a lab would pay.
    gc.disable()
    from brctl.training.trainer import Options

    options = Options(
        steps=flags.replay or flags.steps,
        checkpoint_every=flags.checkpoint_every,
        keep=flags.keep,
        seed=flags.seed,
        pace_s=flags.pace,
        collective_timeout_s=flags.collective_timeout,
        dump_after_s=flags.dump_after,
        on_loader=flags.on_loader,
        loader_silent_s=flags.loader_silent_after,
    )
    if flags.replay:
        from brctl.training.replay import replay

        run = partial(replay, options, flags.data_ranks, flags.checkpoints)
    elif flags.axes:
        from brctl.training.parallel_trainer import train as train_parallel

        run = partial(train_parallel, options, flags.axes)
    else:
        from brctl.training.trainer import train

        run = partial(train, options)
    gc.freeze()
    gc.enable()
    run()


if __name__ == "__main__":
    main()
