/* The clock: the time-stamp counter where it can be trusted, else clock_gettime.
 *
 * Reading the counter takes about half as long as clock_gettime, and a scope reads it twice.
 */
#ifndef PYROMETER_CLOCK_H
#define PYROMETER_CLOCK_H

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#include <cpuid.h>
#include <x86intrin.h>
#define HAS_COUNTER 1
#else
#define HAS_COUNTER 0
#endif

/* Long enough that 100 ns of uncertainty at either end is 0.01 %. */
#define CALIBRATION_NS 2000000

static int clock_uses_counter;
static int clock_calibrated;
static uint64_t clock_base_ticks;
static uint64_t clock_base_ns;
static uint64_t clock_ns_per_tick_32; /* in units of 2**-32 ns */

static uint64_t
system_clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

#if HAS_COUNTER
static uint64_t
counter_ticks(void)
{
    return __rdtsc();
}

/* Constant rate, not stopping in sleep states, and not found unstable by the kernel. */
static int
counter_is_trustworthy(void)
{
    unsigned int a, b, c, d;
    if (!__get_cpuid(0x80000007u, &a, &b, &c, &d) || !(d & (1u << 8)))
        return 0;
    FILE *file = fopen("/sys/devices/system/clocksource/clocksource0/current_clocksource", "r");
    if (file == NULL)
        return 1;
    char source[64] = "";
    int known = fgets(source, sizeof source, file) != NULL;
    fclose(file);
    return known && (strncmp(source, "tsc", 3) == 0 || strncmp(source, "kvm-clock", 9) == 0 ||
                     strncmp(source, "hyperv", 6) == 0);
}

/* The counter and the system clock at one instant: the tightest of several pairs of reads. */
static void
read_both(uint64_t *ticks, uint64_t *ns)
{
    uint64_t tightest = UINT64_MAX;
    for (int i = 0; i < 16; i++) {
        uint64_t before = counter_ticks();
        uint64_t system_ns = system_clock_ns();
        uint64_t after = counter_ticks();
        if (after - before < tightest) {
            tightest = after - before;
            *ticks = before + (after - before) / 2;
            *ns = system_ns;
        }
    }
}
#else
static int
counter_is_trustworthy(void)
{
    return 0;
}
#endif

static void
clock_prepare(void)
{
    clock_uses_counter = counter_is_trustworthy();
#if HAS_COUNTER
    if (clock_uses_counter)
        read_both(&clock_base_ticks, &clock_base_ns);
#endif
}

/* Once, before the first measurement; waits only if the module was loaded just now. */
static void
clock_calibrate(void)
{
    if (clock_calibrated)
        return;
    clock_calibrated = 1;
#if HAS_COUNTER
    if (!clock_uses_counter)
        return;
    while (system_clock_ns() - clock_base_ns < CALIBRATION_NS)
        ;
    uint64_t ticks = 0, ns = 0;
    read_both(&ticks, &ns);
    double ns_per_tick = (double)(ns - clock_base_ns) / (double)(ticks - clock_base_ticks);
    if (ticks <= clock_base_ticks || ns_per_tick < 0.1 || ns_per_tick > 10.0) {
        clock_uses_counter = 0;
        return;
    }
    clock_ns_per_tick_32 = (uint64_t)(ns_per_tick * 4294967296.0);
#endif
}

static inline uint64_t
clock_now_ns(void)
{
#if HAS_COUNTER
    if (__builtin_expect(clock_uses_counter, 1)) {
        uint64_t ticks = counter_ticks() - clock_base_ticks;
        return (uint64_t)(((unsigned __int128)ticks * clock_ns_per_tick_32) >> 32);
    }
#endif
    return system_clock_ns();
}

#endif
