/* Work whose counts are known, to find out counters that give a false 0. */
#ifndef PYROMETER_KNOWN_WORK_H
#define PYROMETER_KNOWN_WORK_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define KNOWN_ROUNDS 1000000
#define KNOWN_LINES 4096
#define KNOWN_LINE_BYTES 64

/* Two instructions a round, one of them a branch. */
static void
count_down(uint64_t rounds)
{
#if defined(__x86_64__)
    __asm__ volatile("1: decq %0\n\tjnz 1b" : "+r"(rounds) : : "cc");
#elif defined(__aarch64__)
    __asm__ volatile("1: subs %0, %0, #1\n\tb.ne 1b" : "+r"(rounds) : : "cc");
#else
    for (volatile uint64_t left = rounds; left > 0; left--)
        continue;
#endif
}

/* Branches that no processor foresees: by the bits of a pseudo-random sequence. */
static uint64_t
take_random_branches(uint64_t rounds)
{
    uint64_t random = 0x9E3779B97F4A7C15, taken = 0;
    for (; rounds > 0; rounds--) {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        if (random & 1)
            __asm__ volatile("" : "+r"(taken)); /* or it would be computed without a branch */
        else
            taken++;
    }
    return taken;
}

static inline void
leave_caches(const void *line)
{
#if defined(__x86_64__)
    __asm__ volatile("clflush (%0)" : : "r"(line) : "memory");
#elif defined(__aarch64__)
    __asm__ volatile("dc civac, %0" : : "r"(line) : "memory");
#endif
}

static void
miss_caches(volatile unsigned char *lines)
{
    for (size_t i = 0; i < KNOWN_LINES; i++)
        leave_caches((const void *)(lines + i * KNOWN_LINE_BYTES));
#if defined(__x86_64__)
    __asm__ volatile("mfence" : : : "memory");
#elif defined(__aarch64__)
    __asm__ volatile("dsb ish" : : : "memory");
#endif
    for (size_t i = 0; i < KNOWN_LINES; i++)
        (void)lines[i * KNOWN_LINE_BYTES];
}

static const char known_work_doc[] =
    "Do work of known size on the calling thread; returns the least number of instructions it takes.";

static PyObject *
known_work(PyObject *module, PyObject *nothing)
{
    unsigned char *lines = malloc((size_t)KNOWN_LINES * KNOWN_LINE_BYTES);
    if (lines == NULL)
        return PyErr_NoMemory();
    memset(lines, 1, (size_t)KNOWN_LINES * KNOWN_LINE_BYTES);
    count_down(KNOWN_ROUNDS);
    uint64_t taken = take_random_branches(KNOWN_ROUNDS / 10);
    miss_caches(lines);
    free(lines);
    (void)taken;
    return PyLong_FromLong(2 * KNOWN_ROUNDS);
}

#endif
