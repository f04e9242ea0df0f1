"""What management controllers record: power, cooling, memory, processors, slots and drives.

Two spellings. ipmitool prints columns, `Type Sensor | Event | Asserted`, with the sensor types and
events of the IPMI 2.0 specification (tables 42-2 and 42-3). Dell, HPE, Lenovo, Supermicro and
Redfish print sentences. An alarm that was deasserted or restored on the same sensor is over.
"""

# ruff: noqa: E501 - a pattern is read whole

from brctl.evidence.logs.signature import Part, Signature, aside, healthy, root
from brctl.model.fault import FaultClass

_SEL = "IPMI 2.0 sensor types and events as ipmitool prints them"
_TEXT = "iDRAC, iLO, XCC, Supermicro and OpenBMC event texts"
_STANDS = r"(?!.{0,160}(?:\bde-?assert|restored|returned to|within range|operating normally|has recovered|cleared|resolved))"
_CRITICAL = r"(?:(?:Lower|Upper) (?:Critical|Non-recoverable)|Transition to (?:Critical|Non-recoverable|Off ?Line|Degraded))"


def _sel(types: str, events: str) -> str:
    return rf"(?P<sensor>\b(?:{types})\b(?![^|]*watches)[^|]{{0,40}}?)\s*\|\s*[^|]{{0,24}}?(?:{events}){_STANDS}"


_COLUMNS = (
    root(FaultClass.THERMAL_POWER, "sel.power", ("power supply", "psu", "power unit", "ac lost", "redundancy lost", "voltage", "vrm", "current"), 0.85, _SEL,
         _sel(r"Power Supply|Power Unit|Power Module|PSU|Voltage|VRM|Current",
              rf"Failure detected|Predictive failure|AC lost|input lost|out[- ]of[- ]range|Inactive|Config Error|Redundancy (?:Lost|Degraded)|Non-Redundant|(?:240VA|Interlock) power down|Soft-?\s?power control failure|Limit Exceeded|State Asserted|{_CRITICAL}"), physical=True),
    root(FaultClass.THERMAL_POWER, "sel.temperature", ("temperature", "temp", "fan", "cooling", "thermal trip", "thermal", "overtemp", "over-temp"), 0.86, _SEL,
         _sel(r"Temperature|Temp|Fan|Cooling\w*|Cooling Device|Thermal|FAN\w*", rf"{_CRITICAL}|Redundancy (?:Lost|Degraded)|Device (?:Removed|Absent)|Limit Exceeded|[Ff]ail") + r"|\|\s*(?:Thermal Trip|Critical Overtemp\w*)" + _STANDS, physical=True),
    root(FaultClass.PCIE, "sel.bus", ("critical interrupt", "slot", "pci serr", "pci perr", "add-in card", "bus fatal"), 0.87, _SEL,
         _sel(r"Critical Interrupt|Slot|Slot / Connector|Add-in Card|PCI\w*", r"Bus (?:Fatal|Uncorrectable|Timeout|Degraded)|PCI (?:SERR|PERR)|Fatal NMI|Front panel NMI|I/O Channel check|Fault Status|Slot Power is Off|EISA failsafe timeout"), physical=True),
    root(FaultClass.NODE_FAILURE, "sel.memory-cpu", ("uncorrectable", "processor", "ierr", "cat_err", "caterr", "machine check", "frb", "configuration error", "memory", "system firmware", "system event", "system hardware"), 0.94, _SEL,
         _sel(r"Processor|CPU\w*|Memory|System Firmware\w*|System Event|Module|Board|Chip ?Set", r"IERR|FRB\d|BIST|Configuration Error|Uncorrectable|Parity|Multi-bit|Machine Check Exception|Memory (?:Scrub Failed|Device Disabled)|Undetermined system hardware failure|Unrecoverable|No (?:usable )?system memory|BIOS corruption|Firmware corruption|voltage mismatch|CPU-complex|Transition to (?:Critical|Non-recoverable)")
         + r"|\b(?:CATERR|CAT_ERR|IERR|MCERR)\b" + _STANDS, physical=True),
    root(FaultClass.NODE_FAILURE, "sel.memory-limit", ("logging limit",), 0.62, _SEL, _sel("Memory", r"Correctable ECC logging limit"), physical=True),
    root(FaultClass.NODE_FAILURE, "sel.correctable-storm", ("correctable ecc", "correctable machine check"), 0.6, _SEL, _sel("Memory|Processor", r"\bCorrectable (?:ECC|machine check)"), physical=True, per_minute=10),
    root(FaultClass.PCIE, "sel.bus-correctable-storm", ("bus correctable",), 0.6, _SEL, _sel("Critical Interrupt", r"Bus Correctable"), physical=True, per_minute=10),
    root(FaultClass.NODE_FAILURE, "sel.watchdog", ("watchdog", "os stop", "os critical stop"), 0.72, _SEL,
         _sel(r"Watchdog\s*\d?", r"Hard reset|Power (?:down|cycle)|Timer expired|OS (?:Reset|Power)") + r"|OS (?:Critical )?Stop\b.{0,40}(?:Run-time|critical stop|graceless|Error during)" + _STANDS, physical=True),
    root(FaultClass.STORAGE_CHECKPOINT, "sel.drive", ("drive slot", "drive bay", "drive fault", "hdd", "in critical array", "in failed array"), 0.8, _SEL,
         _sel(r"Drive Slot|Drive Bay|Drive|HDD\w*", r"Drive Fault|Predictive Failure|In (?:Critical|Failed) Array|Rebuild Aborted|[Ff]ault"), physical=True),
    root(FaultClass.THERMAL_POWER, "sel.reading", ("| nr", "| cr", "| lcr", "| ucr", "| lnr", "| unr"), 0.76, "ipmitool sensor and sdr: a reading beyond its critical threshold",
         r"^\s*(?P<sensor>(?:\w*(?:FAN|Temp|PSU?\d|Power|VRM|12V|5V|3\.3V|Vcpu|DIMM)\w*|[\w ]{1,24} Temp)[\w .+-]{0,20}?)\s*\|[^|]{1,30}\|(?:[^|]{1,20}\|)?\s*(?:[lu]?nr|[lu]?cr)\b", physical=True),
    root(FaultClass.THERMAL_POWER, "sel.reading-elist", ("| cr", "| nr", "| lcr", "| ucr", "| lnr", "| unr"), 0.76, "ipmitool sdr elist: a reading beyond its critical threshold",
         r"^\s*(?P<sensor>(?:PSU?\d|PS|Fan|FAN|Power|Temp|CPU\d Temp|Inlet|VRM|P?\d+V)[\w .+-]{0,20}?)\s*\|\s*[0-9A-Fa-f]{2}h\s*\|\s*[lu]?(?:nr|cr)\s*\|", physical=True),
    root(FaultClass.UNKNOWN, "sel.powered-off", ("power off/down", "soft-off", "g3: mechanical off"), 0.55, _SEL, _sel("Power Unit", "Power off/down") + r"|S4/S5: soft-off"),
)  # fmt: skip

_SENTENCES = (
    root(FaultClass.THERMAL_POWER, "bmc.power", ("power suppl", "psu", "power input", "input power", "going low", "going high", "ac input"), 0.84, _TEXT,
         r"(?:\bpower suppl(?:y|ies)\b|\bPSU\b|\bPSU(?=\d)|\bpower input\b)(?:\W{0,3}(?P<sensor>\d{1,2})\b)?.{0,70}?\b(?:fail(?:ed|ure(?!=0)|s)?|fault(?:ed)?|lost|loss|unplugged|not redundant|redundancy (?:is )?(?:lost|degraded)|predictive failure|out[- ]of[- ]range|incorrectly configured)\b" + _STANDS
         + r"|Numeric sensor .{0,40} going (?:low|high) \((?:lower|upper) (?:critical|non-?recoverable)" + _STANDS + r"|\bvoltage (?:is )?(?:out of|outside (?:of )?(?:the )?)\s?range", physical=True),
    root(FaultClass.THERMAL_POWER, "bmc.openbmc", "openbmc_project.", 0.8, "OpenBMC event names",
         r"openbmc_project\.(?:Power\.Fault\.Error|Sensor\.Threshold\.Error\.\w*Critical|State\.Shutdown\.(?:ThermalEvent|Power)|Fan\w*\.Error)" + _STANDS, physical=True),
    root(FaultClass.THERMAL_POWER, "bmc.cooling", ("fan", "temperature", "overheat", "thermal trip", "leak", "coolant", "cooling"), 0.84, _TEXT,
         r"\bfans? ?(?:RPM|redundancy|module|\w{0,8}\d\w{0,3})?\b(?!-)[^|]{0,40}?\b(?:fail(?:ed|ure)|fault(?:ed)?|less than the lower critical|redundancy (?:is )?lost|stopped|is (?:removed|missing|not (?:working|spinning)))\b" + _STANDS
         + r"|\btemperature\b.{0,60}(?:greater than the upper (?:critical|non)|less than the lower (?:critical|non)|critical threshold|above the (?:critical|shutdown))" + _STANDS
         + r"|System Overheating|\bthermal[- ]trip\b(?! points?\b)|(?:coolant|liquid) .{0,20}leak(?! sensor ok)|(?<!\bmemory )(?<!\bresource )(?<!\bhandle )(?<!\bthread )(?<!\bconnection )\bleak detected|FanFailed|\btemp\w*\b.{0,24}\babove upper (?:critical|non-?recoverable)|(?<!\w)THERMTRIP\W{0,3}asserted" + _STANDS, physical=True),
    root(FaultClass.NODE_FAILURE, "bmc.memory-cpu", ("dimm", "multi-bit", "machine check", "memory device", "internal error (ierr", "unrecoverable system error", "system nmi", "memory error threshold"), 0.935, _TEXT,
         r"(?:uncorrect(?:able|ed)|multi-?bit|fatal)\b.{0,40}\b(?:memory|ECC)\b.{0,90}\b(?:\w*DIMM|memory device|memory module)|"
         r"\b\w*DIMM\w*\b.{0,60}\b(?:uncorrect(?:able|ed)\b(?!\W{0,3}(?:errors?)?\W{0,3}0)|multi-?bit|mapped out|is disabled|failing|failed|failure|(?:has|is|was) degraded)|Memory error detected on transaction at DIMM|"
         r"\bCPU ?\d+\b.{0,60}(?:internal error|\bIERR|machine check error|protocol error)|Uncorrectable Machine Check|Unrecoverable System Error|Uncorrectable Memory Error|[Mm]ulti-bit memory errors", physical=True),
    root(FaultClass.NODE_FAILURE, "bmc.memory-rate", ("correctable memory error",), 0.66, _TEXT, r"(?<!un)correctable memory error.{0,40}(?:rate exceeded|logging disabled|logging limit|threshold)" + _STANDS, physical=True),
    root(FaultClass.PCIE, "bmc.bus", ("on a component at", "pci express error", "pci parity", "link training", "pcie fatal", "fatal pcie", "pci system error", "bus fatal error"), 0.86, _TEXT,
         r"(?<!non-)(?:fatal|uncorrectable|parity) error (?:was |is )?(?:detected )?on a component at|Uncorrectable PCI ?(?:Express|e) Error|(?<!NMI: )PCI (?:parity|system) error|PCIe? .{0,40}link training (?:failed|failure)|link training failure is observed|(?:fatal PCIe|PCIe fatal|bus fatal) error", physical=True),
    root(FaultClass.STORAGE_CHECKPOINT, "bmc.drive", ("fault detected on", "drive bay", "physical disk", "disk drive"), 0.78, _TEXT,
         r"Fault detected on (?:physical )?(?:disk|drive)|(?:physical disk|disk drive|drive \d+ in)\b.{0,60}(?:failed|fault|removed|predictive failure)" + _STANDS, physical=True),
)  # fmt: skip

_ALARMS = tuple(row.name for row in (*_COLUMNS, *_SENTENCES) if row.fault is not FaultClass.UNKNOWN)
"""What a restored state ends; a machine that was switched off was off, though it is on again."""

_OVER = (
    healthy("over.sel", ("deassert", "fully redundant", "repaired"), 0.5, _SEL, r"(?P<sensor>\b[A-Z][^|]{2,60}?)\s*\|[^|]{3,60}\|\s*Deasserted|\bhas deasserted\b|(?P<sensor2>\b[A-Z][^|]{2,60}?)\s*\|\s*Fully Redundant\b|^[\d/:. -]{0,24}[ \t]*Repaired\b", settles=_ALARMS),
    healthy("over.bmc", ("has been restored", "are redundant", "redundancy restored", "redundancy is restored", "supplies redundant", "operating normally", "within range", "returned to normal", "returned to ok"), 0.5, _TEXT,
            r"power (?:supply )?(?P<sensor>\d{1,2})?\b.{0,40}(?:has been restored|operating normally)|supplies (?:are )?redundant|redundancy (?:is |has been )?restored|\b(?:is|are) within range|returned to (?:normal|ok)\b",
            settles=(*_ALARMS, "kernel.thermal")),
)  # fmt: skip

_WELL = (
    healthy("well.sel-boot", ("firmware progress", "boot completed", "system boot initiated"), 0.6, _SEL,
            r"(?:System )?Firmware Progress\b.{0,40}\|\s*(?:Motherboard|Memory|(?:Primary|Secondary) CPU|System boot|PCI|Starting OS|Video|Keyboard|Option ROM|Hard-?disk|Management|USB|SMBus)\b.{0,60}\|\s*Asserted|\|\s*(?:\w: )?boot completed\s*\|"),
)  # fmt: skip

_HARMLESS = (
    aside(Part.BENIGN, "sel.harmless", ("chassis intru", "session audit", "log area", "timestamp clock", "event logging disabled", "presence detected", "fully redundant", "system boot", "entity presence", "boot completed", "s0/g0", "ac regained", "drive present", "device installed", "change detected", "os graceful", "hot spare", "pef action", "log almost full"), _SEL,
          r"(?:Physical Security|Session Audit|Log area (?:reset|cleared)|Timestamp Clock|Event Logging Disabled|Presence [Dd]etected(?!, ?(?:Failure|Predictive|AC))|Fully Redundant|System Boot Initiated|Entity [Pp]resen|S0/G0).{0,80}|\|\s*(?:\w: |PXE |ROM )?(?:boot completed|Drive Present|Device Installed|(?:Hardware|Firmware or software) change detected|OS graceful \w+|Hot Spare|PEF Action|Log (?:almost )?full)\s*\|"),
)  # fmt: skip

SIGNATURES: tuple[Signature, ...] = (*_COLUMNS, *_SENTENCES, *_OVER, *_WELL, *_HARMLESS)
