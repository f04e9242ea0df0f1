/* A stand-in for NVIDIA's libnvidia-ml.so.1: every answer comes from a text file that can change
 * while programs run.
 *
 * The file named by BRCTL_FAKE_NVML_STATE holds `key=value` lines and is read again whenever its
 * inode, size or modification time changes. A key is looked up from special to general:
 *
 *     gpu3.nvlink5.state  gpu*.nvlink5.state  gpu3.nvlink*.state  gpu*.nvlink*.state  DEFAULTS below
 *
 * A value is a number, a text, or one of
 *
 *     !15          fail with that nvmlReturn_t (15: GPU is lost, 3: not supported)
 *     @5000:VALUE  wait 5000 ms first, as a hung driver does
 *
 * and `gpu4.*=!15` makes every call about GPU 4 fail. Struct layouts and numbers follow the public
 * NVML API as nvidia-ml-py 13 declares it; nothing here comes from NVIDIA's library.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <time.h>

#define API __attribute__((visibility("default"))) int
#define TEXT_SIZE 128
#define MAX_GPUS 64

enum {
    OK = 0, UNINITIALIZED = 1, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6,
    INSUFFICIENT_SIZE = 7, DRIVER_NOT_LOADED = 9, VERSION_MISMATCH = 25, UNKNOWN = 999
};

typedef struct { char key[64]; char value[TEXT_SIZE]; } entry_t;
typedef struct { int index; } device_t;
typedef unsigned long long u64;

/* Defaults: a healthy H100 SXM. */

static const struct { const char *key, *value; } DEFAULTS[] = {
    {"count", "8"}, {"driver", "570.148.08"}, {"nvml", "12.570.148.08"}, {"cuda", "12080"},
    {"name", "NVIDIA H100 80GB HBM3"}, {"vbios", "96.00.89.00.01"}, {"persistence", "1"},
    {"pci.device_id", "0x233010de"}, {"pci.subsystem_id", "0x16c110de"}, {"pstate", "0"},
    {"compute.major", "9"}, {"compute.minor", "0"}, {"brand", "14"}, {"architecture", "9"},
    {"ecc.mode", "1"}, {"ecc.pending_mode", "1"}, {"remap.corrected", "0"},
    {"remap.uncorrected", "0"}, {"remap.pending", "0"}, {"remap.failure", "0"},
    {"remap.histogram.max", "640"}, {"remap.histogram.high", "0"},
    {"remap.histogram.partial", "0"}, {"remap.histogram.low", "0"}, {"remap.histogram.none", "0"},
    {"sram.threshold_exceeded", "0"}, {"retired", "!3"}, {"retired.pending", "!3"},
    {"temp", "41"}, {"temp.memory", "48"}, {"temp.margin", "46"},
    {"threshold.shutdown", "95"}, {"threshold.slowdown", "92"}, {"threshold.memory_max", "95"},
    {"threshold.gpu_max", "87"}, {"threshold", "!3"},
    {"power.usage_mw", "412000"}, {"power.limit_mw", "700000"}, {"power.default_limit_mw", "700000"},
    {"power.enforced_limit_mw", "700000"}, {"power.min_limit_mw", "200000"},
    {"power.max_limit_mw", "700000"}, {"energy_mj", "9000000000"},
    {"clock.graphics", "1980"}, {"clock.sm", "1980"}, {"clock.memory", "2619"},
    {"clock.video", "1545"}, {"clock.max.graphics", "1980"}, {"clock.max.sm", "1980"},
    {"clock.max.memory", "2619"}, {"clock.max.video", "1545"}, {"clock.application.graphics", "1980"},
    {"clock.application.memory", "2619"}, {"clocks.reasons", "0"}, {"clocks.supported", "0x1ff"},
    {"pcie.gen", "5"}, {"pcie.gen.max", "5"}, {"pcie.width", "16"}, {"pcie.width.max", "16"},
    {"pcie.replay", "0"}, {"pcie.replay_rollover", "0"}, {"pcie.speed", "32000"},
    {"pcie.throughput", "1200"}, {"pcie.error", "0"},
    {"nvlink.count", "18"}, {"nvlink.state", "1"}, {"nvlink.version", "7"},
    {"nvlink.remote_type", "2"}, {"nvlink.error", "0"}, {"nvlink.capability", "1"},
    {"nvlink.speed_mbps", "26562"},
    {"memory.total", "85520809984"}, {"memory.reserved", "600000000"}, {"memory.used", "71000000000"},
    {"util.gpu", "98"}, {"util.memory", "61"}, {"processes", ""},
    {"gpm.supported", "1"}, {"gpm.tensor", "43.5"},
    {"fabric.state", "3"}, {"fabric.status", "0"}, {"fabric.clique", "0"},
    {"fabric.health_mask", "0x2"}, {"fabric.health_summary", "1"},
    {"mig.mode", "0"}, {"mig.pending_mode", "0"}, {"compute_mode", "0"}, {"display", "0"},
};

static const char *PCI_BUSES[] = {"18", "2a", "3a", "5d", "9a", "ab", "ba", "db"};
static const char *SWITCH_BUSES[] = {"05", "06", "07", "08"};
static const char *THRESHOLDS[] = {"shutdown", "slowdown", "memory_max", "gpu_max"};
static const char *CLOCKS[] = {"graphics", "sm", "memory", "video"};
static const char *ECC_TYPES[] = {"corrected", "uncorrected"};
static const char *ECC_PERIODS[] = {"volatile", "aggregate"};
static const char *ECC_PLACES[] = {"l1", "l2", "dram", "register", "texture", "shm", "cbu", "sram"};
static const char *LINK_ERRORS[] = {"replay", "recovery", "crc_flit", "crc_data", "ecc_data"};
static const char *RETURNS[] = {
    "Success", "Uninitialized", "Invalid Argument", "Not Supported", "Insufficient Permissions",
    "Already Initialized", "Not Found", "Insufficient Size", "Insufficient External Power",
    "Driver Not Loaded", "Timeout", "Interrupt Request Issue", "NVML Shared Library Not Found",
    "Function Not Found", "Corrupted infoROM", "GPU is lost", "GPU requires reset",
    "The operating system has blocked the request.", "RM has detected an NVML/RM version mismatch.",
    "In use by another client", "Insufficient Memory", "No data", "vGPU ECC not supported",
    "Insufficient Resources", "Frequency not supported", "Argument version mismatch",
};

/* The state file. */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static entry_t *entries;
static size_t entry_count;
static struct stat seen;
static int initialised;
static device_t devices[MAX_GPUS];

static int unchanged(const struct stat *now) {
    return now->st_ino == seen.st_ino && now->st_size == seen.st_size
        && now->st_mtim.tv_sec == seen.st_mtim.tv_sec && now->st_mtim.tv_nsec == seen.st_mtim.tv_nsec;
}

static void keep_line(char *line) {
    char *equals = strchr(line, '=');
    if (line[0] == '#' || equals == NULL) return;
    *equals = '\0';
    entry_t *grown = realloc(entries, (entry_count + 1) * sizeof *entries);
    if (grown == NULL) return;
    entries = grown;
    snprintf(entries[entry_count].key, sizeof entries->key, "%.63s", line);
    snprintf(entries[entry_count].value, sizeof entries->value, "%.127s", equals + 1);
    entry_count++;
}

static void reload(void) {
    const char *path = getenv("BRCTL_FAKE_NVML_STATE");
    struct stat now;
    if (path == NULL || stat(path, &now) != 0 || unchanged(&now)) return;
    FILE *file = fopen(path, "r");
    if (file == NULL) return;
    char line[256];
    entry_count = 0;
    while (fgets(line, sizeof line, file)) {
        line[strcspn(line, "\r\n")] = '\0';
        keep_line(line);
    }
    fclose(file);
    seen = now;
}

static const char *find(const char *key) {
    for (size_t i = entry_count; i-- > 0;)
        if (strcmp(entries[i].key, key) == 0) return entries[i].value;
    return NULL;
}

static const char *find_default(const char *key) {
    for (size_t i = 0; i < sizeof DEFAULTS / sizeof *DEFAULTS; i++)
        if (strcmp(DEFAULTS[i].key, key) == 0) return DEFAULTS[i].value;
    return NULL;
}

static void sleep_ms(long milliseconds) {
    struct timespec wait = {milliseconds / 1000, milliseconds % 1000 * 1000000L};
    nanosleep(&wait, NULL);
}

/* Strip `@ms:` and honour it, turn `!n` into a return code, leave the rest in text. */
static int settle(const char *value, char *text) {
    snprintf(text, TEXT_SIZE, "%s", value);
    pthread_mutex_unlock(&lock);
    if (text[0] == '@') {
        char *rest = NULL;
        sleep_ms(strtol(text + 1, &rest, 10));
        memmove(text, *rest == ':' ? rest + 1 : rest, strlen(*rest == ':' ? rest + 1 : rest) + 1);
    }
    return text[0] == '!' ? atoi(text + 1) : OK;
}

/* The value of a key of the machine. */
static int system_text(const char *key, char *text) {
    pthread_mutex_lock(&lock);
    reload();
    const char *value = find(key);
    if (value == NULL) value = find_default(key);
    return settle(value ? value : "!3", text);
}

static const char *find_gpu(int gpu, const char *key) {
    char full[96];
    const char *value = NULL;
    snprintf(full, sizeof full, "gpu%d.*", gpu);
    if ((value = find(full))) return value;
    snprintf(full, sizeof full, "gpu%d.%s", gpu, key);
    if ((value = find(full))) return value;
    snprintf(full, sizeof full, "gpu*.%s", key);
    return find(full);
}

/* The value of a key of one GPU; fallback is used when neither file nor DEFAULTS know it. */
static int gpu_text_or(const device_t *device, const char *key, const char *fallback, char *text) {
    if (!initialised) return UNINITIALIZED;
    if (device < devices || device >= devices + MAX_GPUS) return INVALID_ARGUMENT;
    pthread_mutex_lock(&lock);
    reload();
    const char *value = find_gpu(device->index, key);
    if (value == NULL) value = find_default(key);
    return settle(value ? value : fallback, text);
}

static int gpu_text(const device_t *device, const char *key, char *text) {
    return gpu_text_or(device, key, "!3", text);
}

static int gpu_number_or(const device_t *d, const char *key, const char *fallback, u64 *number) {
    char text[TEXT_SIZE];
    int status = gpu_text_or(d, key, fallback, text);
    if (status == OK) *number = strtoull(text, NULL, 0);
    return status;
}

static int gpu_number(const device_t *device, const char *key, u64 *number) {
    return gpu_number_or(device, key, "!3", number);
}

static int gpu_unsigned(const device_t *device, const char *key, unsigned *number) {
    u64 wide = 0;
    int status = number ? gpu_number(device, key, &wide) : INVALID_ARGUMENT;
    if (status == OK) *number = (unsigned)wide;
    return status;
}

/* The value of one NVLink: `nvlink5.KEY`, then `nvlink*.KEY`, then the default `nvlink.DEFAULT`. */
static int link_number(const device_t *d, unsigned link, const char *key, const char *otherwise,
                       u64 *number) {
    char specific[64], general[64], fallback[64];
    u64 links = 0;
    int status = gpu_number(d, "nvlink.count", &links);
    if (status != OK) return status;
    if (link >= links) return INVALID_ARGUMENT;
    snprintf(specific, sizeof specific, "nvlink%u.%s", link, key);
    snprintf(general, sizeof general, "nvlink*.%s", key);
    snprintf(fallback, sizeof fallback, "nvlink.%s", otherwise);
    status = gpu_number_or(d, specific, "", number);
    pthread_mutex_lock(&lock);
    int named = find_gpu(d->index, specific) != NULL;
    int starred = find_gpu(d->index, general) != NULL;
    pthread_mutex_unlock(&lock);
    if (status != OK || named) return status;
    return gpu_number(d, starred ? general : fallback, number);
}

static int copy(const char *text, char *out, unsigned size) {
    if (strlen(text) + 1 > size) return INSUFFICIENT_SIZE;
    strcpy(out, text);
    return OK;
}

static int gpu_copy(const device_t *device, const char *key, char *out, unsigned size) {
    char text[TEXT_SIZE];
    int status = gpu_text(device, key, text);
    return status == OK ? copy(text, out, size) : status;
}

/* The system's own calls. */

API nvmlInitWithFlags(unsigned flags) {
    char text[TEXT_SIZE];
    (void)flags;
    pthread_mutex_lock(&lock);
    reload();
    const char *value = find("init");
    int status = settle(value ? value : "0", text);
    if (status != OK) return status;
    for (int i = 0; i < MAX_GPUS; i++) devices[i].index = i;
    initialised = 1;
    return OK;
}
API nvmlInit_v2(void) { return nvmlInitWithFlags(0); }
API nvmlInit(void) { return nvmlInitWithFlags(0); }
API nvmlShutdown(void) { return initialised ? (initialised = 0, OK) : UNINITIALIZED; }

__attribute__((visibility("default"))) const char *nvmlErrorString(int status) {
    int known = status >= 0 && status < (int)(sizeof RETURNS / sizeof *RETURNS);
    return known ? RETURNS[status] : "Unknown Error";
}

#define SYSTEM_TEXT(function, key)                              \
    API function(char *out, unsigned size) {                    \
        char text[TEXT_SIZE];                                   \
        int status = initialised ? system_text(key, text) : UNINITIALIZED; \
        return status == OK ? copy(text, out, size) : status;   \
    }
SYSTEM_TEXT(nvmlSystemGetDriverVersion, "driver")
SYSTEM_TEXT(nvmlSystemGetNVMLVersion, "nvml")

static int system_number(const char *key, u64 *number) {
    char text[TEXT_SIZE];
    int status = initialised ? system_text(key, text) : UNINITIALIZED;
    if (status == OK) *number = strtoull(text, NULL, 0);
    return status;
}

API nvmlSystemGetCudaDriverVersion(int *version) {
    u64 number = 0;
    int status = system_number("cuda", &number);
    if (status == OK) *version = (int)number;
    return status;
}
API nvmlSystemGetCudaDriverVersion_v2(int *v) { return nvmlSystemGetCudaDriverVersion(v); }

API nvmlDeviceGetCount_v2(unsigned *count) {
    u64 number = 0;
    int status = system_number("count", &number);
    if (status == OK) *count = number > MAX_GPUS ? MAX_GPUS : (unsigned)number;
    return status;
}
API nvmlDeviceGetCount(unsigned *count) { return nvmlDeviceGetCount_v2(count); }

/* Identity. */

static void default_uuid(int index, char *out) {
    snprintf(out, TEXT_SIZE, "GPU-00000000-0000-4000-8000-%012d", index);
}

static int uuid_of(const device_t *device, char *text) {
    char fallback[TEXT_SIZE];
    default_uuid(device->index, fallback);
    return gpu_text_or(device, "uuid", fallback, text);
}

static int pci_of(const device_t *device, char *text) {
    char fallback[TEXT_SIZE];
    snprintf(fallback, sizeof fallback, "0000:%s:%02x.0", PCI_BUSES[device->index % 8],
             device->index / 8);
    return gpu_text_or(device, "pci", fallback, text);
}

/* A lost GPU has no handle either: that is how nvidia-smi comes to fail for the whole machine. */
API nvmlDeviceGetHandleByIndex_v2(unsigned index, device_t **device) {
    unsigned count = 0;
    char text[TEXT_SIZE];
    int status = nvmlDeviceGetCount_v2(&count);
    if (status != OK) return status;
    if (index >= count) return INVALID_ARGUMENT;
    status = gpu_text_or(&devices[index], "handle", "", text);
    if (status == OK) *device = &devices[index];
    return status;
}
API nvmlDeviceGetHandleByIndex(unsigned i, device_t **d) { return nvmlDeviceGetHandleByIndex_v2(i, d); }

typedef int (*identity_t)(const device_t *, char *);

static int by_identity(identity_t identity, const char *wanted, device_t **device) {
    unsigned count = 0;
    char text[TEXT_SIZE];
    int status = nvmlDeviceGetCount_v2(&count);
    for (unsigned i = 0; status == OK && i < count; i++)
        if (identity(&devices[i], text) == OK && strcasecmp(text, wanted) == 0)
            return nvmlDeviceGetHandleByIndex_v2(i, device);
    return status == OK ? NOT_FOUND : status;
}
API nvmlDeviceGetHandleByUUID(const char *uuid, device_t **d) { return by_identity(uuid_of, uuid, d); }
API nvmlDeviceGetHandleByPciBusId_v2(const char *pci, device_t **d) {
    const char *tail = strlen(pci) > 12 ? pci + strlen(pci) - 12 : pci; /* 00000000:18:00.0 too */
    return by_identity(pci_of, tail, d);
}

API nvmlDeviceGetIndex(const device_t *device, unsigned *index) {
    char text[TEXT_SIZE];
    int status = gpu_text_or(device, "index", "", text);
    if (status == OK) *index = (unsigned)device->index;
    return status;
}
API nvmlDeviceGetMinorNumber(const device_t *d, unsigned *n) { return nvmlDeviceGetIndex(d, n); }

API nvmlDeviceGetUUID(const device_t *device, char *out, unsigned size) {
    char text[TEXT_SIZE];
    int status = uuid_of(device, text);
    return status == OK ? copy(text, out, size) : status;
}

API nvmlDeviceGetSerial(const device_t *device, char *out, unsigned size) {
    char text[TEXT_SIZE], fallback[TEXT_SIZE];
    snprintf(fallback, sizeof fallback, "16501230%05d", device->index);
    int status = gpu_text_or(device, "serial", fallback, text);
    return status == OK ? copy(text, out, size) : status;
}

#define GPU_TEXT(function, key) \
    API function(const device_t *d, char *out, unsigned size) { return gpu_copy(d, key, out, size); }
GPU_TEXT(nvmlDeviceGetName, "name")
GPU_TEXT(nvmlDeviceGetVbiosVersion, "vbios")

typedef struct {
    char bus_id_legacy[16];
    unsigned domain, bus, device, device_id, subsystem_id;
    char bus_id[32];
} pci_t;

static int fill_pci(const char *text, pci_t *pci) {
    memset(pci, 0, sizeof *pci);
    if (sscanf(text, "%x:%x:%x", &pci->domain, &pci->bus, &pci->device) != 3) return UNKNOWN;
    snprintf(pci->bus_id, sizeof pci->bus_id, "%08X:%02X:%02X.0", pci->domain, pci->bus, pci->device);
    snprintf(pci->bus_id_legacy, sizeof pci->bus_id_legacy, "%04X:%02X:%02X.0", pci->domain & 0xffff,
             pci->bus & 0xff, pci->device & 0xff);
    return OK;
}

API nvmlDeviceGetPciInfo_v3(const device_t *device, pci_t *pci) {
    char text[TEXT_SIZE];
    int status = pci_of(device, text);
    if (status == OK) status = fill_pci(text, pci);
    if (status == OK) status = gpu_unsigned(device, "pci.device_id", &pci->device_id);
    return status == OK ? gpu_unsigned(device, "pci.subsystem_id", &pci->subsystem_id) : status;
}

/* One number per function. */

#define GPU_UNSIGNED(function, key) \
    API function(const device_t *d, unsigned *out) { return gpu_unsigned(d, key, out); }
GPU_UNSIGNED(nvmlDeviceGetPersistenceMode, "persistence")
GPU_UNSIGNED(nvmlDeviceGetPowerUsage, "power.usage_mw")
GPU_UNSIGNED(nvmlDeviceGetPowerManagementLimit, "power.limit_mw")
GPU_UNSIGNED(nvmlDeviceGetPowerManagementDefaultLimit, "power.default_limit_mw")
GPU_UNSIGNED(nvmlDeviceGetEnforcedPowerLimit, "power.enforced_limit_mw")
GPU_UNSIGNED(nvmlDeviceGetCurrPcieLinkGeneration, "pcie.gen")
GPU_UNSIGNED(nvmlDeviceGetMaxPcieLinkGeneration, "pcie.gen.max")
GPU_UNSIGNED(nvmlDeviceGetGpuMaxPcieLinkGeneration, "pcie.gen.max")
GPU_UNSIGNED(nvmlDeviceGetCurrPcieLinkWidth, "pcie.width")
GPU_UNSIGNED(nvmlDeviceGetMaxPcieLinkWidth, "pcie.width.max")
GPU_UNSIGNED(nvmlDeviceGetPcieReplayCounter, "pcie.replay")
GPU_UNSIGNED(nvmlDeviceGetPcieSpeed, "pcie.speed")
GPU_UNSIGNED(nvmlDeviceGetPerformanceState, "pstate")
GPU_UNSIGNED(nvmlDeviceGetBrand, "brand")
GPU_UNSIGNED(nvmlDeviceGetArchitecture, "architecture")
GPU_UNSIGNED(nvmlDeviceGetComputeMode, "compute_mode")
GPU_UNSIGNED(nvmlDeviceGetDisplayMode, "display")
GPU_UNSIGNED(nvmlDeviceGetDisplayActive, "display")
GPU_UNSIGNED(nvmlDeviceGetRetiredPagesPendingStatus, "retired.pending")

#define GPU_WIDE(function, key) \
    API function(const device_t *d, u64 *out) { return gpu_number(d, key, out); }
GPU_WIDE(nvmlDeviceGetCurrentClocksEventReasons, "clocks.reasons")
GPU_WIDE(nvmlDeviceGetCurrentClocksThrottleReasons, "clocks.reasons")
GPU_WIDE(nvmlDeviceGetSupportedClocksEventReasons, "clocks.supported")
GPU_WIDE(nvmlDeviceGetSupportedClocksThrottleReasons, "clocks.supported")
GPU_WIDE(nvmlDeviceGetTotalEnergyConsumption, "energy_mj")

#define GPU_PAIR(function, first, second)                             \
    API function(const device_t *d, unsigned *one, unsigned *two) {   \
        int status = gpu_unsigned(d, first, one);                     \
        return status == OK ? gpu_unsigned(d, second, two) : status;  \
    }
GPU_PAIR(nvmlDeviceGetEccMode, "ecc.mode", "ecc.pending_mode")
GPU_PAIR(nvmlDeviceGetMigMode, "mig.mode", "mig.pending_mode")
GPU_PAIR(nvmlDeviceGetPowerManagementLimitConstraints, "power.min_limit_mw", "power.max_limit_mw")
GPU_PAIR(nvmlDeviceGetCudaComputeCapability, "compute.major", "compute.minor")

/* Temperature, clocks, throughput. */

API nvmlDeviceGetTemperature(const device_t *device, unsigned sensor, unsigned *celsius) {
    return sensor == 0 ? gpu_unsigned(device, "temp", celsius) : INVALID_ARGUMENT;
}

typedef struct { unsigned version, sensor; int celsius; } temperature_t;

API nvmlDeviceGetTemperatureV(const device_t *device, temperature_t *out) {
    if (out->version != 0x100000c) return VERSION_MISMATCH;
    return nvmlDeviceGetTemperature(device, out->sensor, (unsigned *)&out->celsius);
}

typedef struct { unsigned version; int celsius; } margin_t;

API nvmlDeviceGetMarginTemperature(const device_t *device, margin_t *out) {
    return gpu_unsigned(device, "temp.margin", (unsigned *)&out->celsius);
}

static int named(const device_t *d, const char *prefix, const char *const *names, size_t count,
                 unsigned which, unsigned *out) {
    char key[64];
    if (which >= count) return NOT_SUPPORTED;
    snprintf(key, sizeof key, "%s.%s", prefix, names[which]);
    return gpu_unsigned(d, key, out);
}

#define GPU_NAMED(function, prefix, names)                                                        \
    API function(const device_t *d, unsigned which, unsigned *out) {                              \
        return named(d, prefix, names, sizeof names / sizeof *names, which, out);                 \
    }
GPU_NAMED(nvmlDeviceGetTemperatureThreshold, "threshold", THRESHOLDS)
GPU_NAMED(nvmlDeviceGetClockInfo, "clock", CLOCKS)
GPU_NAMED(nvmlDeviceGetMaxClockInfo, "clock.max", CLOCKS)
GPU_NAMED(nvmlDeviceGetApplicationsClock, "clock.application", CLOCKS)
GPU_NAMED(nvmlDeviceGetDefaultApplicationsClock, "clock.application", CLOCKS)

API nvmlDeviceGetPcieThroughput(const device_t *d, unsigned counter, unsigned *kib_per_s) {
    return counter < 2 ? gpu_unsigned(d, "pcie.throughput", kib_per_s) : INVALID_ARGUMENT;
}

/* ECC, rows. */

API nvmlDeviceGetTotalEccErrors(const device_t *d, unsigned type, unsigned period, u64 *count) {
    char key[64];
    if (type > 1 || period > 1) return INVALID_ARGUMENT;
    snprintf(key, sizeof key, "ecc.%s.%s", ECC_TYPES[type], ECC_PERIODS[period]);
    return gpu_number_or(d, key, "0", count);
}

API nvmlDeviceGetMemoryErrorCounter(const device_t *d, unsigned type, unsigned period, unsigned place,
                                    u64 *count) {
    char key[64];
    if (type > 1 || period > 1 || place > 7) return INVALID_ARGUMENT;
    snprintf(key, sizeof key, "ecc.%s.%s.%s", ECC_TYPES[type], ECC_PERIODS[period], ECC_PLACES[place]);
    return gpu_number_or(d, key, "0", count);
}

typedef struct {
    unsigned version;
    u64 counters[11];
    unsigned threshold_exceeded;
} sram_t;

static const char *SRAM_KEYS[] = {
    "sram.aggregate.parity", "sram.aggregate.secded", "sram.aggregate.corrected",
    "sram.volatile.parity", "sram.volatile.secded", "sram.volatile.corrected",
    "sram.bucket.l2", "sram.bucket.sm", "sram.bucket.pcie", "sram.bucket.mcu", "sram.bucket.other",
};

API nvmlDeviceGetSramEccErrorStatus(const device_t *device, sram_t *out) {
    if (out->version != 0x1000068) return VERSION_MISMATCH;
    for (size_t i = 0; i < sizeof SRAM_KEYS / sizeof *SRAM_KEYS; i++) {
        int status = gpu_number_or(device, SRAM_KEYS[i], "0", &out->counters[i]);
        if (status != OK) return status;
    }
    return gpu_unsigned(device, "sram.threshold_exceeded", &out->threshold_exceeded);
}

API nvmlDeviceGetRemappedRows(const device_t *d, unsigned *corrected, unsigned *uncorrected,
                              unsigned *pending, unsigned *failure) {
    int status = gpu_unsigned(d, "remap.corrected", corrected);
    if (status == OK) status = gpu_unsigned(d, "remap.uncorrected", uncorrected);
    if (status == OK) status = gpu_unsigned(d, "remap.pending", pending);
    return status == OK ? gpu_unsigned(d, "remap.failure", failure) : status;
}

API nvmlDeviceGetRowRemapperHistogram(const device_t *d, unsigned *out) {
    static const char *const BUCKETS[] = {"max", "high", "partial", "low", "none"};
    int status = OK;
    for (unsigned i = 0; i < 5 && status == OK; i++)
        status = named(d, "remap.histogram", BUCKETS, 5, i, &out[i]);
    return status;
}

API nvmlDeviceGetRetiredPages(const device_t *d, unsigned cause, unsigned *count, u64 *addresses) {
    char text[TEXT_SIZE];
    (void)cause, (void)addresses;
    int status = gpu_text(d, "retired", text);
    if (status == OK) *count = 0;
    return status;
}
API nvmlDeviceGetRetiredPages_v2(const device_t *d, unsigned cause, unsigned *count, u64 *addresses,
                                 u64 *timestamps) {
    (void)timestamps;
    return nvmlDeviceGetRetiredPages(d, cause, count, addresses);
}

/* NVLink. */

static int link_unsigned(const device_t *d, unsigned link, const char *key, unsigned *out) {
    u64 wide = 0;
    int status = link_number(d, link, key, key, &wide);
    if (status == OK) *out = (unsigned)wide;
    return status;
}

#define LINK_UNSIGNED(function, key) \
    API function(const device_t *d, unsigned link, unsigned *out) { return link_unsigned(d, link, key, out); }
LINK_UNSIGNED(nvmlDeviceGetNvLinkState, "state")
LINK_UNSIGNED(nvmlDeviceGetNvLinkVersion, "version")
LINK_UNSIGNED(nvmlDeviceGetNvLinkRemoteDeviceType, "remote_type")

API nvmlDeviceGetNvLinkCapability(const device_t *d, unsigned link, unsigned which, unsigned *out) {
    (void)which;
    return link_unsigned(d, link, "capability", out);
}

API nvmlDeviceGetNvLinkErrorCounter(const device_t *d, unsigned link, unsigned which, u64 *count) {
    char key[64];
    if (which >= sizeof LINK_ERRORS / sizeof *LINK_ERRORS) return INVALID_ARGUMENT;
    snprintf(key, sizeof key, "error.%s", LINK_ERRORS[which]);
    return link_number(d, link, key, "error", count);
}

API nvmlDeviceGetNvLinkRemotePciInfo_v2(const device_t *d, unsigned link, pci_t *pci) {
    char text[TEXT_SIZE], key[64], fallback[TEXT_SIZE];
    u64 links = 0;
    int status = gpu_number(d, "nvlink.count", &links);
    if (status != OK) return status;
    if (link >= links) return INVALID_ARGUMENT;
    snprintf(key, sizeof key, "nvlink%u.remote", link);
    snprintf(fallback, sizeof fallback, "0000:%s:00.0", SWITCH_BUSES[link % 4]);
    status = gpu_text_or(d, key, fallback, text);
    return status == OK ? fill_pci(text, pci) : status;
}

/* Memory, utilization, processes, fabric. */

typedef struct { u64 total, free, used; } memory_t;
typedef struct { unsigned version; u64 total, reserved, free, used; } memory_v2_t;

API nvmlDeviceGetMemoryInfo(const device_t *device, memory_t *out) {
    int status = gpu_number(device, "memory.total", &out->total);
    if (status == OK) status = gpu_number(device, "memory.used", &out->used);
    out->free = out->total - out->used;
    return status;
}

API nvmlDeviceGetMemoryInfo_v2(const device_t *device, memory_v2_t *out) {
    if (out->version != 0x2000028) return VERSION_MISMATCH;
    int status = gpu_number(device, "memory.total", &out->total);
    if (status == OK) status = gpu_number(device, "memory.reserved", &out->reserved);
    if (status == OK) status = gpu_number(device, "memory.used", &out->used);
    out->free = out->total - out->reserved - out->used;
    return status;
}

API nvmlDeviceGetBAR1MemoryInfo(const device_t *device, memory_t *out) {
    return nvmlDeviceGetMemoryInfo(device, out);
}

typedef struct { unsigned gpu, memory; } utilization_t;

API nvmlDeviceGetUtilizationRates(const device_t *device, utilization_t *out) {
    int status = gpu_unsigned(device, "util.gpu", &out->gpu);
    return status == OK ? gpu_unsigned(device, "util.memory", &out->memory) : status;
}

/* GPU performance monitoring: a sample remembers whose it is, the state file says what it shows. */

typedef struct { unsigned version, supported; } gpm_support_t;
typedef struct { const device_t *device; } gpm_sample_t;
typedef struct { unsigned id; int status; double value; const char *names[3]; } gpm_metric_t;
typedef struct {
    unsigned version, count;
    const gpm_sample_t *before, *after;
    gpm_metric_t metrics[];
} gpm_metrics_t;

enum { GPM_TENSOR = 5 };

API nvmlGpmQueryDeviceSupport(const device_t *device, gpm_support_t *out) {
    if (out->version != 1) return VERSION_MISMATCH;
    return gpu_unsigned(device, "gpm.supported", &out->supported);
}

API nvmlGpmSampleAlloc(gpm_sample_t **sample) {
    *sample = calloc(1, sizeof **sample);
    return *sample ? OK : UNKNOWN;
}

API nvmlGpmSampleFree(gpm_sample_t *sample) {
    free(sample);
    return OK;
}

API nvmlGpmSampleGet(const device_t *device, gpm_sample_t *sample) {
    unsigned supported = 0;
    int status = gpu_unsigned(device, "gpm.supported", &supported);
    if (status == OK && !supported) return NOT_SUPPORTED;
    sample->device = device;
    return status;
}

API nvmlGpmMetricsGet(gpm_metrics_t *asked) {
    const device_t *device = asked->after->device;
    if (asked->version != 1) return VERSION_MISMATCH;
    if (asked->before == asked->after || asked->before->device != device) return INVALID_ARGUMENT;
    for (unsigned i = 0; i < asked->count; i++) {
        char text[TEXT_SIZE];
        gpm_metric_t *metric = &asked->metrics[i];
        metric->status = metric->id == GPM_TENSOR ? gpu_text(device, "gpm.tensor", text) : NOT_SUPPORTED;
        if (metric->status == OK) metric->value = strtod(text, NULL);
    }
    return OK;
}

typedef struct { unsigned pid; u64 used_bytes; unsigned gpu_instance, compute_instance; } process_t;

/* `processes=4711:1073741824,4712:...`: process id and bytes of GPU memory. */
API nvmlDeviceGetComputeRunningProcesses_v3(const device_t *device, unsigned *count, process_t *out) {
    char text[TEXT_SIZE];
    unsigned room = *count, found = 0;
    int status = gpu_text(device, "processes", text);
    if (status != OK) return status;
    for (char *save = NULL, *item = strtok_r(text, ",", &save); item; item = strtok_r(NULL, ",", &save)) {
        process_t one = {0, 0, 0xffffffff, 0xffffffff};
        if (sscanf(item, "%u:%llu", &one.pid, &one.used_bytes) != 2) continue;
        if (out != NULL && found < room) out[found] = one;
        found++;
    }
    *count = found;
    return found > room ? INSUFFICIENT_SIZE : OK;
}
API nvmlDeviceGetGraphicsRunningProcesses_v3(const device_t *device, unsigned *count, process_t *out) {
    (void)out;
    *count = 0;
    return gpu_copy(device, "name", (char[TEXT_SIZE]){0}, TEXT_SIZE);
}

typedef struct {
    unsigned version;
    unsigned char cluster_uuid[16];
    unsigned status, clique;
    unsigned char state_bytes[4]; /* the state's own width is one byte, padded */
    unsigned health_mask;
    unsigned char health_summary;
} fabric_t;

API nvmlDeviceGetGpuFabricInfoV(const device_t *device, fabric_t *out) {
    int with_summary = out->version == 0x3000028;
    unsigned state = 0, summary = 0;
    if (!with_summary && out->version != 0x2000024) return VERSION_MISMATCH;
    memset(out->cluster_uuid, 0, sizeof out->cluster_uuid);
    int status = gpu_unsigned(device, "fabric.state", &state);
    if (status == OK) status = gpu_unsigned(device, "fabric.status", &out->status);
    if (status == OK) status = gpu_unsigned(device, "fabric.clique", &out->clique);
    if (status == OK) status = gpu_unsigned(device, "fabric.health_mask", &out->health_mask);
    if (status == OK && with_summary) {
        status = gpu_unsigned(device, "fabric.health_summary", &summary);
        out->health_summary = (unsigned char)summary;
    }
    memcpy(out->state_bytes, &state, sizeof out->state_bytes);
    return status;
}

/* Field values. */

typedef struct {
    unsigned id, scope;
    long long timestamp, latency_us;
    unsigned type;
    int status;
    union { double d; unsigned u; u64 ull; } value;
} field_t;

enum { FIELD_UNSIGNED = 1, FIELD_WIDE = 3 };

/* Fields by number; `link` keys use the scope of the request as link number. */
static const struct { unsigned id, type; const char *key, *fallback; int link; } FIELDS[] = {
    {1, FIELD_UNSIGNED, "ecc.mode", "1", 0}, {2, FIELD_UNSIGNED, "ecc.pending_mode", "1", 0},
    {3, FIELD_WIDE, "ecc.corrected.volatile", "0", 0},
    {4, FIELD_WIDE, "ecc.uncorrected.volatile", "0", 0},
    {5, FIELD_WIDE, "ecc.corrected.aggregate", "0", 0},
    {6, FIELD_WIDE, "ecc.uncorrected.aggregate", "0", 0},
    {82, FIELD_UNSIGNED, "temp.memory", "48", 0}, {91, FIELD_UNSIGNED, "nvlink.count", "18", 0},
    {90, FIELD_UNSIGNED, "nvlink.speed_mbps", "26562", 0}, {94, FIELD_UNSIGNED, "pcie.replay", "0", 0},
    {95, FIELD_UNSIGNED, "pcie.replay_rollover", "0", 0},
    {142, FIELD_UNSIGNED, "remap.corrected", "0", 0}, {143, FIELD_UNSIGNED, "remap.uncorrected", "0", 0},
    {144, FIELD_UNSIGNED, "remap.pending", "0", 0}, {145, FIELD_UNSIGNED, "remap.failure", "0", 0},
    {161, FIELD_WIDE, "error.replay", "error", 1}, {162, FIELD_WIDE, "error.recovery", "error", 1},
    {163, FIELD_WIDE, "error.crc_flit", "error", 1}, {164, FIELD_UNSIGNED, "speed_mbps", "speed_mbps", 1},
    {165, FIELD_UNSIGNED, "state", "state", 1}, {166, FIELD_UNSIGNED, "version", "version", 1},
    {173, FIELD_UNSIGNED, "pcie.error.correctable", "0", 0},
    {179, FIELD_UNSIGNED, "pcie.error.non_fatal", "0", 0},
    {180, FIELD_UNSIGNED, "pcie.error.fatal", "0", 0},
    {219, FIELD_WIDE, "error.effective", "error", 1}, {221, FIELD_WIDE, "error.symbol", "error", 1},
};

static void fill_field(const device_t *device, field_t *field) {
    field->status = NOT_SUPPORTED;
    for (size_t i = 0; i < sizeof FIELDS / sizeof *FIELDS; i++) {
        if (FIELDS[i].id != field->id) continue;
        field->type = FIELDS[i].type;
        field->status = FIELDS[i].link
            ? link_number(device, field->scope, FIELDS[i].key, FIELDS[i].fallback, &field->value.ull)
            : gpu_number_or(device, FIELDS[i].key, FIELDS[i].fallback, &field->value.ull);
        return;
    }
}

API nvmlDeviceGetFieldValues(const device_t *device, int count, field_t *fields) {
    char text[TEXT_SIZE];
    int status = gpu_text(device, "name", text);
    for (int i = 0; status == OK && i < count; i++) fill_field(device, &fields[i]);
    return status;
}
