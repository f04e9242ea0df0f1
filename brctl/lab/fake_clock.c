/* Shift the wall clock of the processes of one lab node, live.
 *
 * Preloaded into every process of the node. The file named by BRCTL_LAB_CLOCK holds one int64: the
 * offset in nanoseconds. It is mapped, so a change is seen by running programs at once and reading
 * it costs no system call. Monotonic clocks stay true, as they do on a machine whose NTP is wrong.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define SECOND 1000000000LL

typedef int (*clock_gettime_t)(clockid_t, struct timespec *);

static const volatile int64_t *offset_ns;
static clock_gettime_t real_clock_gettime;

__attribute__((constructor)) static void start(void) {
    real_clock_gettime = (clock_gettime_t)dlsym(RTLD_NEXT, "clock_gettime");
    const char *path = getenv("BRCTL_LAB_CLOCK");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0) return;
    void *mapped = mmap(NULL, sizeof *offset_ns, PROT_READ, MAP_SHARED, file, 0);
    close(file);
    if (mapped != MAP_FAILED) offset_ns = mapped;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    if (real_clock_gettime == NULL) start();
    int status = real_clock_gettime(clock, now);
    if (status != 0 || offset_ns == NULL) return status;
    if (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE) return status;
    int64_t shifted = now->tv_sec * SECOND + now->tv_nsec + *offset_ns;
    now->tv_sec = shifted / SECOND;
    now->tv_nsec = shifted % SECOND;
    return 0;
}

int gettimeofday(struct timeval *now, void *zone) {
    struct timespec precise;
    (void)zone;
    int status = clock_gettime(CLOCK_REALTIME, &precise);
    now->tv_sec = precise.tv_sec;
    now->tv_usec = precise.tv_nsec / 1000;
    return status;
}

time_t time(time_t *out) {
    struct timespec precise;
    clock_gettime(CLOCK_REALTIME, &precise);
    if (out != NULL) *out = precise.tv_sec;
    return precise.tv_sec;
}
