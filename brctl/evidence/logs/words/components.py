"""Which component a line speaks of: what is left to go by where no rule knows the words.

A driver, a daemon or a tool names itself, its device or its counter, and says in plain words that
something failed. One such component that speaks more than all others together is claimed weakly:
any rule that knows a line outranks it, and several components at once name nobody.
"""

# ruff: noqa: E501 - a table is read by its columns

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace

from brctl.evidence.logs.event import LogEvent
from brctl.evidence.logs.severity import is_below_warning
from brctl.evidence.logs.signature import Part, Signature, root
from brctl.evidence.logs.unexplained import is_settled
from brctl.model.fault import FaultClass as F
from brctl.model.fault import Origin

NAMES_NO_CAUSE = frozenset({"nccl.warn", "unexplained"})
"""Rows that read a warning without knowing what of: a component's name on it may tell."""

COMPONENT = "component."
"""What the names of rows of this table begin with."""

_SOURCE = "names of components, their devices and counters"
_ONE_LINE = 0.62
_MANY_LINES = 0.7
_IN_PASSING = 0.47
"""A word that ordinary lines have too (missing, refused, not found): named as a lead, not claimed."""

_MANY = 3
_LINES = 400
_LENGTH = 600
"""Characters of a line that are looked at."""

_FAILING = re.compile(
    r"(?<![\w/-])(?!stderr\b)(?:[a-z]*err(?:or|ors|ored)?\b(?!-)|err-?disabled|ERR!|fail(?:ed|ure|ures|s|ing)?|fatal|critical|panic|abort(?:ed|ing|s)?|corrupt\w*|timed[ -]out|time-?outs?|unable to|cannot|can't|could not|"
    r"couldn't|denied|refused|unreachable|not responding|hung|hang|stuck|stall(?:ed|s)?|dead|offline|unhealthy|degraded|lost|missing|inactive|down|reset request|blocked|slow (?:\w+ )?(?:requests?|ops|ios?)|flapp\w*|conflict|"
    r"dropped|INVAL|invalid|mismatch\w*|not ?ready|not (?:found|supported)|disabled between|insufficient|exceeded|straggler|drained|faults?|deconfig\w*|polling|duplicate|neither|nan|rejected|unresponsive|expired|thermal ?event|going (?:high|low)|non-?recoverable|vanished|disappear(?:ed|s)|(?:service)?unavailable|double[- ]bit)(?![\w-])",
    re.IGNORECASE,
)
_WELL = re.compile(
    r"(?<![\w.:])(?:0|zero|no|without)\s+(?:\w+\s+){0,2}(?:errors?|failures?|faults?)\b|\brecover(?:ed|y complete)|\bresum(?:ed|ing)\b|not active|\bpass(?:ed)?\b|(?<!un)correct(?:ed|able)|\b\d+ CE\b|"
    r"(?:error|fail|lost|missing|dropped|down)\w*[\"']?\s*[:=|]\s*(?:0\b|none|no\b|false|n/a)|\bhint\b|\bnon-critical\b|see https?://|^\W*if\b|\?\s*$",
    re.IGNORECASE,
)
_PLAINLY = re.compile(
    r"\b(?:\w*err(?:or|ors|ored)?|fail(?:ed|ure|ures|s|ing)?|fatal|critical|panic|timed[ -]out|time-?out|hung|stuck|stall(?:ed|s)?|dead|offline|lost|degraded|corrupt\w*|not ?ready|not responding|unreachable|unresponsive|aborted|overheat\w*|exceeded|rejected|thermal ?event|non-?recoverable|vanished|disappeared|double[- ]bit)\b|"
    r"\bdown\b|<inactive>|ERR!|err-?disabled|reset request|slow \w+|unable to|deconfig\w*|straggler|physical state: *polling|duplicate gpu",
    re.IGNORECASE,
)
_NO_LOG = re.compile(r"^\W*(?:frame #\d+|File \"|at |raise |return |def |import |assert |#|from )")
_IN_PASSING_SPEAKER = re.compile(
    r"^(?:\S{3} +\d+ [\d:]{8} \S+ |.{0,60}\d\d:\d\d:\d\d\S* \S+ |\[ *[\d.]+\] )?(?!kernel|nvidia|nv-|fabricm|slurm|kubelet|opensm|smartd|zed|mmfs|mcelog|rasdaemon|vobd|vmk)[a-z][\w.@/-]{2,30}\[\d+\]:? "
)
"""A daemon that only uses a component: what it could not do, once or twice, convicts no hardware."""

_STORAGE_FRAME = re.compile(
    r"\[(?:nfs\w*|sunrpc|lockd|zfs|spl|lustre|ptlrpc|obdclass|osc|lov|ceph|libceph|mmfs\w*|fuse|xfs|ext4|jbd2|btrfs|cifs|dm_\w+|md_mod|nvme\w*)\]|"
    r"\s\??\s?(?:nfs\d?_|nfsd|rpc_wait|svc_|xfs_|ext4_|btrfs_|zfs_|jbd2_|ceph_|fuse_|ll_|blk_mq)\w*\+0x"
)
_KERNEL_FRAME = re.compile(r"\s\??\s?[a-zA-Z_][\w.]*\+0x[0-9a-f]+/0x[0-9a-f]+")
_FRAMES_NEEDED = 5


def _row(fault: F, pattern: str, origin: Origin | None = None) -> tuple[re.Pattern[str], Signature]:
    name = f"{COMPONENT}{fault.value}"
    made = root(fault, name, "error", _ONE_LINE, _SOURCE, part=Part.GENERIC, origin=origin)
    return re.compile(pattern, re.IGNORECASE), made


_TABLE = (
    _row(F.NETWORK_LINK, r"\boper state set from up to down|\basync event\b.{0,20}\bport"),
    _row(F.STRAGGLER_SLOW, r"\bstraggler"),
    _row(F.NVLINK, r"\bnv-?link\b|nvswitch|\bsxid\b|^\s*Link \d+: *<inactive>"),
    _row(F.NUMERIC_NAN, r"\b(?:loss|grad\w*|reward|ppl|perplexity|iter\w*|step|epoch)\b.*\bnan\b|^\s*[\d.:]+(?:\s+\S+){1,12}\s+nan\s*$"),
    _row(F.GPU_OOM, r"\b(?:cuda|hip|gpu|device)\b.{0,40}\bout of memory|\bout of memory\b.{0,60}\b(?:on )?(?:device|gpu|cuda)\b"),
    _row(F.CPU_OOM, r"\bout of memory\b|\boom-?kill|cannot allocate memory|\bmemory limit\b"),
    _row(F.DISK_FULL, r"\bno space left\b|\bquota\b|\bdisk (?:is )?full\b|\bout of inodes"),
    _row(F.USER_CODE, r"\bCUDA error\b|\bcudaError\w+|\billegal (?:memory access|address)|device-side assert"),
    _row(F.DRIVER_FIRMWARE, r"\bprobe of \S+ failed|\bmlx[45]_core\b.{0,60}(?:_cap|load_one|init_one|firmware|fw)|\bfirmware\b.{0,40}\b(?:fail|error|timed? ?out)"),
    _row(F.GPU_MEMORY_ECC, r"\brow remap|\bpages? (?:retired|retirement)\b|\b(?:gpu|hbm|dram|sram|frame ?buffer)\b.{0,40}(?:\becc\b|uncorrect)"),
    _row(F.GPU_LOST, r"(?<![\w-])gpus?\b(?!-\w).{0,60}\b(?:lost|missing|not (?:found|detected|visible)|unreachable|offline|vanished|disappeared)|\bdevice handle\b|^\|.*\bERR!"),
    _row(F.DRIVER_FIRMWARE, r"\bnvrm\b|\bnvidia-(?:modeset|uvm|peermem|smi)\b|\bamdgpu\b|\bgsp\b|habanalabs|\bfabric-?manager|\bnouveau\b"),
    _row(F.NETWORK_SWITCH, r"\borchagent\b|\bsyncd\b|err-?disabled|\bMC-?LAG\b|spanning.tree|%[A-Z][A-Z_]+-[0-5]-"),
    _row(F.NETWORK_IB, r"\binfiniband\b|\bNET/IB\b|\bvendor err\b|physical state: *(?:polling|disabled|down)|\bibv?_\w+|\bmlx[45]_(?:\d|ib)|\bib\d+\b|\bopensm\b|SubnGet|\bsm_mad|\brdma|\broce\b|\bQP\b|LinkDownedCounter|PortXmit|\bhfi1\b"),
    _row(F.PCIE, r"\bpcieport\b|\bpcie? (?:bus|port|bridge|device|\d{4}:)|\bAER\b|\bbridge window\b|\bBAR ?\d|\bswitchtec\b"),
    _row(F.NETWORK_LINK, r"\b(?:link|carrier|cable|transceiver|optics?|interface|port)\b.{0,40}\b(?:down|lost|flap\w*|fault)\b"),
    _row(F.THERMAL_POWER, r"\bpower supply\b|\bpsu?\d?\b|\bfan\d*\b|temperature|\bthermal\w*|\b\w+_TEMP\b|\bvoltage\b|overheat|over-?temp"),
    _row(F.STORAGE_CHECKPOINT, r"\bnvme\d|\bsd[a-z]{1,2}\b|\bscsi|\braid\b|\bmd\d+\b|aacraid|megaraid|mpt\dsas|\bata\d|\bxfs\b|\bext4\b|\bbtrfs\b|\bzfs\b|\bzpool\b|\bnfsd?\b|\blustre|\bgpfs\b|\bmmfs|beegfs|\bceph(?:fs)?\b|\bmds[.\b]|\bosd\.\d|\bfuse\b|multipath|\biscsi|\b(?:gs|s3|abfss?|hdfs)://|\b(?:gcs|s3)fs\b|\bfile ?system\b|input/output error|block device"),
    _row(F.NETWORK_ETH, r"\beth\d|\ben[ops]\d\w*|\bvmnic\d|\buplink\b|\bbond\d|\bNETDEV\b|\bdns\b|\bnetwork partition|\btcp\b.{0,30}\bretransmi|getaddrinfo|\bBGP\b|no route to host|\bconnect(?:ion)?\b.{0,40}\b(?:refused|timed out|unreachable|reset by)"),
    _row(F.HOST_KERNEL, r"\bBUG:|\boops\b|\block-?up\b|\brcu(?:_\w+)?:|blocked for more than|general protection|hung_task"),
    _row(F.NODE_FAILURE, r"\bdimm(?!ing|ed\b|er\b)|\bmachine check|\bmce\b|\bedac\b|\bnode\b.{0,80}\b(?:dead|down|lost|unreachable|not responding)\b|hardware callout|\bdeconfig|\bnode failure\b|\bNotReady\b"),
    _row(F.DATA_LOADER, r"\btarfile\b|\bdataset\b|data ?loader|\bshard|tf_?record|\.tar\b|unexpected end of data"),
    _row(F.NCCL_CONFIG, r"\bNCCL_[A-Z]\w+|address family|\bAF_INET|\bduplicate GPU\b|\binvalid usage\b|peer access|\bMASTER_(?:ADDR|PORT)\b|\bIPC handle"),
    _row(F.ENVIRONMENT_MISMATCH, r"\bslurm(?:d|ctld|dbd)\b.{0,40}(?:fatal|unable to (?!open /proc)|config)|\.service\b|\bcontainerd\b|\bdockerd\b", Origin.INFRA),
    _row(F.ENVIRONMENT_MISMATCH, r"\bdocker\b|shared librar|driver version|runtime version"),
)  # fmt: skip
_FRAMES = {row.fault: row for _, row in _TABLE}


def component_event(
    lines: Mapping[int, str], source: str, is_known: Callable[[str], bool], needed: int = 1
) -> LogEvent | None:
    """What the one component that reports failures says first; None when none or several do.

    Args:
        lines: A log's lines by number.
        source: The log's name.
        is_known: Whether a rule already read a line: what is known is not guessed at.
        needed: Lines that have to speak of it.
    """
    looked_at = [(number, text[:_LENGTH]) for number, text in list(lines.items())[-_LINES:]]
    said: list[tuple[Signature, int, str]] = []
    for number, text in looked_at:
        row = _speaker(text)
        if row is not None and not is_known(text):
            said.append((row, number, text))
    if not said:
        return _event_of_frames(looked_at, source)
    said = [item for item in said if not _IN_PASSING_SPEAKER.search(item[2])] or said
    counts = Counter(row.name for row, _, _ in said)
    name, most = counts.most_common(1)[0]
    if 2 * most <= len(said) or most < needed:
        return None
    row, number, text = next(item for item in said if item[0].name == name)
    if most < _MANY and (not _PLAINLY.search(text) or _IN_PASSING_SPEAKER.search(text)):
        return LogEvent(replace(row, strength=_IN_PASSING), source, number, text, count=most)
    strength = _MANY_LINES if most >= _MANY else _ONE_LINE
    return LogEvent(replace(row, strength=strength), source, number, text, count=most)


def tells_of_failure(text: str) -> bool:
    """Whether a line says in plain words that something failed, and not that it did not."""
    text = text[:_LENGTH]
    return _FAILING.search(text) is not None and _WELL.search(text) is None


def _speaker(text: str) -> Signature | None:
    """The row of the component that reports a failure on a line."""
    if not tells_of_failure(text) or _NO_LOG.match(text):
        return None
    if is_settled(text) or is_below_warning(text):
        return None
    return next((row for pattern, row in _TABLE if pattern.search(text)), None)


def _event_of_frames(lines: list[tuple[int, str]], source: str) -> LogEvent | None:
    """A call trace of the kernel whose head is not in the log: nobody prints one when all is well."""
    frames = [(number, text) for number, text in lines if _KERNEL_FRAME.search(text)]
    if len(frames) < _FRAMES_NEEDED:
        return None
    number, text = frames[0]
    return LogEvent(_FRAMES[_waits_in(frames)], source, number, text, count=len(frames))


def _waits_in(frames: list[tuple[int, str]]) -> F:
    """A task that waits in a file system's code waits for storage; any other trace is the kernel's."""
    in_storage = sum(_STORAGE_FRAME.search(text) is not None for _, text in frames)
    return F.STORAGE_CHECKPOINT if 2 * in_storage > len(frames) else F.HOST_KERNEL
