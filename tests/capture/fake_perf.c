/* In place of the kernel's perf events, by LD_PRELOAD: each event has a count of its own, twice that
 * where threads are inherited.
 *
 *   FAKE_PERF_ERROR=13         no event can be opened
 *   FAKE_PERF_LACKS=0.3        that event, type and config, is not there
 *   FAKE_PERF_ZERO=0.0         that one always reads 0
 *   FAKE_PERF_SHARE=50         each is counted that share of the time, in %
 *   FAKE_PERF_OLD_KERNEL=1     threads cannot be told from processes
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MARK (1 << 20)
#define ENABLED_NS 1000000

static const struct {
    const char *event;
    uint64_t count;
} counts[] = {
    {"0.1", 4000000}, {"0.0", 2000000}, {"0.2", 100000},  {"0.3", 5000},  {"0.4", 1250000},
    {"0.5", 12500},   {"3.0", 1000000}, {"3.65536", 40000}, {"3.2", 50000}, {"3.65538", 10000},
};

static int
is_set_to(const char *variable, const char *value)
{
    const char *set = getenv(variable);
    return set != NULL && strcmp(set, value) == 0;
}

static long
refuse(int error)
{
    errno = error;
    return -1;
}

/* A file whose size says which event it stands for: a copy of its descriptor says so too. */
static long
open_event(const struct perf_event_attr *attributes)
{
    char event[64];
    snprintf(event, sizeof event, "%u.%llu", attributes->type, (unsigned long long)attributes->config);
    if (getenv("FAKE_PERF_ERROR") != NULL)
        return refuse(atoi(getenv("FAKE_PERF_ERROR")));
    if (is_set_to("FAKE_PERF_LACKS", event))
        return refuse(ENOENT);
    if (attributes->inherit_thread && getenv("FAKE_PERF_OLD_KERNEL") != NULL)
        return refuse(EINVAL);
    if (!attributes->exclude_kernel || !attributes->exclude_hv)
        return refuse(EACCES);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        if (strcmp(counts[i].event, event) == 0) {
            int file = memfd_create("fake_perf", MFD_CLOEXEC);
            if (ftruncate(file, (off_t)(MARK + 2 * i + attributes->inherit)) != 0)
                abort();
            return file;
        }
    }
    return refuse(ENOENT);
}

long
syscall(long number, ...)
{
    static long (*real)(long, ...);
    if (real == NULL)
        *(void **)&real = dlsym(RTLD_NEXT, "syscall");
    va_list rest;
    va_start(rest, number);
    long a = va_arg(rest, long), b = va_arg(rest, long), c = va_arg(rest, long);
    long d = va_arg(rest, long), e = va_arg(rest, long), f = va_arg(rest, long);
    va_end(rest);
    if (number == SYS_perf_event_open)
        return open_event((const struct perf_event_attr *)a);
    return real(number, a, b, c, d, e, f);
}

ssize_t
read(int file, void *to, size_t size)
{
    static ssize_t (*real)(int, void *, size_t);
    if (real == NULL)
        *(void **)&real = dlsym(RTLD_NEXT, "read");
    struct stat found;
    if (size != 24 || fstat(file, &found) != 0 || found.st_size < MARK ||
        (size_t)found.st_size >= MARK + 2 * sizeof counts / sizeof *counts)
        return real(file, to, size);
    size_t which = (size_t)(found.st_size - MARK);
    uint64_t share = getenv("FAKE_PERF_SHARE") == NULL ? 100 : (uint64_t)atoi(getenv("FAKE_PERF_SHARE"));
    uint64_t count = is_set_to("FAKE_PERF_ZERO", counts[which / 2].event) ? 0 : counts[which / 2].count;
    uint64_t seen[3] = {count * (1 + which % 2) * share / 100, ENABLED_NS, ENABLED_NS * share / 100};
    memcpy(to, seen, sizeof seen);
    return sizeof seen;
}
