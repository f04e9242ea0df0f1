"""One sentence for each key of config.yaml and of inventory files, for editors and the reference.

Keys are paths without the names that a site chooses: `contexts.scheduler`. A key that means the
same in several places stands here once, by its last word.
"""

from collections.abc import Mapping

from brctl.library.file_tables import SBATCH_OPTIONS

CONFIG_WORDS: Mapping[str, str] = {
    "context": "the context to use when none is named",
    "contexts": "clusters by name",
    "contexts.inventory": "where nodes come from, merged in this order",
    "contexts.inventory.file": "an inventory file of brctl",
    "contexts.inventory.hostlist": "a file with one node or folded set a line",
    "contexts.inventory.ansible": "an Ansible inventory file",
    "contexts.inventory.slurm": "a partition, `{partitions: [...]}`, or `{}` for all",
    "contexts.inventory.k8s": "a kubeconfig context, or `{context, selector}`",
    "contexts.inventory.clustershell": "`{}`, or `{folders: [...]}` of its group files",
    "contexts.jobs": "job.yaml files",
    "contexts.scheduler": "who schedules the nodes",
    "contexts.kubernetes": "which cluster and namespace",
    "contexts.kubernetes.context": "context of the kubeconfig",
    "contexts.kubernetes.namespace": "where the jobs are",
    "contexts.kubernetes.node_pods": "pods through which `ssh.transport: kubectl` reaches nodes",
    "contexts.kubernetes.node_pods.daemonset": "a privileged DaemonSet with hostPID that is there",
    "contexts.kubernetes.node_pods.image": "or: make a short-lived pod of it on each node asked",
    "contexts.kubernetes.node_pods.namespace": "where those pods are",
    "contexts.kubernetes.node_pods.container": "which of the DaemonSet's; default its first",
    "contexts.readonly": "refuse every change here, and every load on nodes",
    "contexts.nccl_ras": "whether `dx` asks NCCL of a stalled job; `old-too`: also a release before"
    " 2.29.2, which the question can crash",
    "ssh": "how nodes are reached",
    "ssh.user": "login name; without it that of ssh_config or your own",
    "ssh.identity_file": "private key to offer",
    "ssh.known_hosts": "host keys to believe",
    "ssh.config_file": "OpenSSH client configuration to honour; without it none is read",
    "ssh.fanout": "nodes in flight at once",
    "ssh.handshakes_per_jump": "handshakes at once through one jump host; sshd drops more than 10",
    "ssh.connect_timeout": "longest wait for a connection",
    "ssh.login_timeout": "longest wait for a login",
    "ssh.transport": "what speaks SSH, or reaches nodes without it (`srun`, `kubectl`)",
    "ssh.sudo": "put before the probe runner on nodes, such as `sudo -n`",
    "ssh.sudo_for": "what sudo runs: all probes, or only what `brctl config sudoers` allows",
    "ssh.shards": "processes of one fan-out; 0 is one a CPU, 1 never splits",
    "ssh.gateways": "nodes with `via`: `jump` through a tunnel, `tree` by the gateway's own ssh",
    "state_dir": "runs, sweeps, verdicts, locks; default below XDG_STATE_HOME",
    "sweep": "regular sweeps",
    "sweep.profile": "which checks",
    "sweep.interval": "how often, as `brctl schedule` writes it into units",
    "sweep.max_unknown": "silent nodes that still count as an answer: a count or `2%`",
    "sweep.reminder": "a problem that lasts is told again after this long",
    "guards": "not read here: limits stand in guards.yaml",
    "notify": "who is told outside",
    "notify.pagerduty": "PagerDuty, Events API v2",
    "notify.pagerduty.routing_key_file": "file with the routing key",
    "notify.slack": "Slack, by webhook or bot",
    "notify.slack.webhook_file": "file with the webhook's URL",
    "notify.slack.channel": "channel of the bot",
    "notify.alertmanager": "Alertmanager, API v2",
    "notify.webhook": "your own receiver",
    "notify.webhook.key_file": "file with the key that signs the body",
    "notify.hooks": "programs that are told",
    "notify.hooks.dir": "their folder; default `hooks.d` beside the configuration",
    "notify.deadline": "longest time one notice may take, retries included; 1s to 60s",
    "notify.runbook": "link that a notice carries when its playbook has none",
    "ticket": "where `ticket.create` opens tickets",
    "ticket.command": "a program with its whole path, and arguments",
    "ticket.key_file": "file with the key that signs the body",
    "audit": "a line for each action: who, from where, what, why; without it none is written",
    "audit_path": "its socket or file; without it the usual one, or audit.ndjson of the state",
    "audit_failure": "when no line can be written: say so and go on, or do nothing",
    "calendars": "maintenance windows and change freezes by name",
    "calendars.file": "an iCal file",
    "calendars.ranges": "such as `mon-fri 09:00-17:00`",
    "calendars.timezone": "such as Europe/Berlin; ranges need it",
    "url": "where to post; https where a secret travels, unless it is this machine",
    "when": "events that open something there",
    "token_file": "file with a bearer or bot token",
    "ca_file": "certificates to trust instead of the system's",
}

INVENTORY_WORDS: Mapping[str, str] = {
    "defaults": "of every node",
    "nodes": "folded sets, each with its own values or none",
    "groups": "group names, each a folded set or a table in a file",
    "groups.file": "a table of nodes, CSV with a head line",
    "groups.key": "column of the node, `node` unless named",
    "groups.value": "column of the label, the group's name unless named",
    "address": "where it is reached, when its name does not resolve",
    "user": "login name",
    "python": "interpreter on the node",
    "torch_python": "interpreter that has torch",
    "via": "gateway it is reached through",
    "port": "of its sshd",
    "gpus": "GPUs it should have",
    "role": "takes ranks, or waits as a standby",
    "labels": "labels by name",
    "rack": "its rack, or a rule that numbers racks",
    "rack.every": "nodes a rack, in the order of the set",
    "rack.format": "how a rack is written, such as `r%02d`",
    "leaf": "its leaf switch",
    "spine": "its spine switch",
    "zone": "its zone",
    "pod": "its pod or scalable unit",
    "gpu_model": "such as H100",
    "rails": "its rails",
}

JOB_WORDS: Mapping[str, str] = {
    "name": "letters, digits, dot, dash, underscore; the job's name on Slurm and Kubernetes too",
    "nodes": "folded set in rank order, or a list",
    "ranks_per_node": "ranks a node, default 1",
    "parallel": "sizes and their order; their product is the number of ranks",
    "parallel.order": "axes, fastest varying first",
    **{f"parallel.{axis}": f"size of {axis}" for axis in ("tp", "pp", "dp", "ep", "cp")},
    "launch": "the command of one rank, a list of words",
    "workdir": "absolute; where ranks start",
    "environment": "variables of every rank; those that brctl sets are refused",
    "warm": "modules that a parked process imports in advance",
    "checkpoint": "where it saves, and in which layout",
    "checkpoint.directory": "absolute",
    "checkpoint.layout": "how a checkpoint lies on disk, default torch-dcp",
    "checkpoint.pattern": "its name where that is not the layout's, such as `ckpt_{step}.pt`",
    "checkpoint.slots": "absolute; where ranks keep each step in their nodes' memory, if they do",
    "logs": "absolute; one file a rank",
    "progress": "absolute, progress files of the ranks; or how steps are read from logs",
    "progress.log": "absolute, with `*` the newest; without it the log of each rank in `logs`",
    "progress.format": "whose rows they are; `auto` takes the one that fits most lines",
    "progress.pattern": "a regular expression of your rows, with (?P<step>...) and (?P<loss>...)",
    "progress.directory": "absolute; what ranks find in BRCTL_PROGRESS_DIR, default `logs`",
    "stall_after": "no step for so long means that the job stands, default 60s",
    "master_port": "1024 to 65535, default 29500",
    "slurm": "options for sbatch",
    **{f"slurm.{option}": "as sbatch takes it" for option in SBATCH_OPTIONS},
    "code": "the code that ranks start from",
    "code.releases": "absolute; a directory of releases on the nodes",
    "code.start": "the first release",
}


def words_of(words: Mapping[str, str], path: str) -> str:
    """The sentence of a key: that of its whole path, of its last two words, or of its last.

    Raises:
        KeyError: Nobody wrote one.
    """
    parts = path.split(".")
    for length in (len(parts), 2, 1):
        key = ".".join(parts[-length:])
        if key in words:
            return words[key]
    raise KeyError(path)
