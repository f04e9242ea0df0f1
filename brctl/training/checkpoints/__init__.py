"""A checkpoint of every step: in this machine's memory, in another machine's, now and then on disk.

The training script's side is `brctl.training.step_checkpoints`. Nothing here imports torch but
`capture` and `state`: the helper process of a machine must start fast and stay small.
"""
