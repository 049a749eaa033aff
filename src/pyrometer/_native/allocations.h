/* What a process allocates, counted for each thread: torch's CPU tensors, and the rest of the heap.
 *
 * The functions that count stand in slots.h's places and are in heap.h. Here is what they count into.
 * A thread's counters only ever grow while they are counted, and are its own to write. What is live
 * belongs to the process, since a block may be freed by another thread than the one that asked for it:
 * each thread tells it in parts, so it is exact to UNTOLD_BYTES a thread, and at once for larger blocks.
 */
#ifndef PYROMETER_ALLOCATIONS_H
#define PYROMETER_ALLOCATIONS_H

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "compiler.h"

#define UNTOLD_BYTES 65536
#define HIGH_MARKS 3

typedef struct {
    uint64_t bytes, calls;
} Allocations;

/* Blocks that are freed or kept are as large as they stand in the heap, with the word before them: a
 * little more than was asked for. */
typedef struct {
    uint64_t allocations; /* of all three kinds */
    uint64_t heap_bytes;
    uint64_t frees;
    uint64_t freed_bytes;
    int64_t kept_bytes; /* allocated less freed */
    Allocations tensors, python;
} Counters;

enum { UNKNOWN_THREAD = 0, KNOWN_THREAD, ENDED_THREAD };

/* How a thread stood when it began work of the profiler's, to which it returns. */
typedef struct {
    Counters counters;
    int64_t until_sample;
} BeforeOwnWork;

/* So much that the first block that is freed has it told, and the thread become known. */
#define UNMET_BYTES (INT64_MAX / 2)

/* What nearly every allocation looks at comes first, in one line of the cache. */
typedef struct {
    _Alignas(64) int64_t until_sample; /* bytes to go */
    int64_t told_bytes;                /* of kept_bytes, what the process's figure has; or UNMET_BYTES */
    int state;
    int is_sampling;
    Counters counters;
    /* The most kept_bytes has been since whoever holds the mark last looked, told as what is live is. */
    int64_t highest[HIGH_MARKS];
    BeforeOwnWork *before_own_work; /* NULL while it is at the program's */
} ThreadMemory;

THREAD_LOCAL ThreadMemory thread_memory = {.told_bytes = UNMET_BYTES};

/* How often counting was switched on and not yet off; 0: the counters stand still. */
static unsigned allocations_counted;
/* What is counted, for those who record it. */
enum { COUNTS_HEAP = 1, COUNTS_TENSORS = 2, COUNTS_PYTHON = 4 };
static int counted_kinds;

typedef struct {
    pthread_mutex_t lock; /* of the threads, and of what those had that have ended */
    pthread_key_t ends;
    int is_ready;
    ThreadMemory **threads;
    size_t thread_count, thread_capacity;
    Counters ended, before; /* before: what does not count, since the last reset */
    int64_t live_bytes, peak_bytes, phase_peak_bytes;
    int64_t own_bytes; /* that the profiler's own work keeps; never less than 0 */
    /* By mmap: memory of the process's own, and files and what is shared with other processes. */
    Allocations mapped, mapped_shared, unmapped;
} ProcessMemory;

static ProcessMemory process_memory = {.lock = PTHREAD_MUTEX_INITIALIZER};

static inline void
counters_add(Counters *sum, const Counters *more)
{
    sum->allocations += more->allocations;
    sum->tensors.bytes += more->tensors.bytes;
    sum->tensors.calls += more->tensors.calls;
    sum->heap_bytes += more->heap_bytes;
    sum->frees += more->frees;
    sum->python.bytes += more->python.bytes;
    sum->python.calls += more->python.calls;
    sum->freed_bytes += more->freed_bytes;
    sum->kept_bytes += more->kept_bytes;
}

static inline void
counters_subtract(Counters *sum, const Counters *less)
{
    sum->allocations -= less->allocations;
    sum->tensors.bytes -= less->tensors.bytes;
    sum->tensors.calls -= less->tensors.calls;
    sum->heap_bytes -= less->heap_bytes;
    sum->frees -= less->frees;
    sum->python.bytes -= less->python.bytes;
    sum->python.calls -= less->python.calls;
    sum->freed_bytes -= less->freed_bytes;
    sum->kept_bytes -= less->kept_bytes;
}

/* Adds what the calling thread has counted since. */
static inline void
counters_charge(Counters *charged, const Counters *since)
{
    counters_add(charged, &thread_memory.counters);
    counters_subtract(charged, since);
}

static inline uint64_t
counters_heap_calls(const Counters *counters)
{
    return counters->allocations - counters->tensors.calls - counters->python.calls;
}

/* When it has not changed, nothing has. */
static inline uint64_t
counters_events(const Counters *counters)
{
    return counters->allocations + counters->frees;
}

/* What is live. */

static inline void
raise_to(int64_t *highest, int64_t value)
{
    int64_t seen = __atomic_load_n(highest, __ATOMIC_RELAXED);
    while (value > seen &&
           !__atomic_compare_exchange_n(highest, &seen, value, 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
}

static void meet_thread(void);

/* Tell the process what the calling thread keeps. */
static inline void
tell_kept(void)
{
    if (thread_memory.before_own_work != NULL)
        return;
    if (thread_memory.told_bytes == UNMET_BYTES) {
        if (counters_events(&thread_memory.counters) == 0)
            return; /* counting may never have begun, and there be no key for threads yet */
        meet_thread();
    }
    int64_t change = thread_memory.counters.kept_bytes - thread_memory.told_bytes;
    if (change == 0 || thread_memory.told_bytes == UNMET_BYTES)
        return;
    thread_memory.told_bytes = thread_memory.counters.kept_bytes;
    int64_t live = __atomic_add_fetch(&process_memory.live_bytes, change, __ATOMIC_RELAXED);
    if (change > 0) {
        raise_to(&process_memory.peak_bytes, live);
        raise_to(&process_memory.phase_peak_bytes, live);
        for (int i = 0; i < HIGH_MARKS; i++)
            if (thread_memory.told_bytes > thread_memory.highest[i])
                thread_memory.highest[i] = thread_memory.told_bytes;
    }
}

/* The most the calling thread has kept since the mark was last taken. */
static inline int64_t
take_highest(int mark)
{
    int64_t kept = thread_memory.counters.kept_bytes, highest = thread_memory.highest[mark];
    thread_memory.highest[mark] = kept;
    return highest > kept ? highest : kept;
}

/* The most that was live since it was last asked. */
static inline int64_t
take_phase_peak(void)
{
    tell_kept();
    int64_t live = __atomic_load_n(&process_memory.live_bytes, __ATOMIC_RELAXED);
    return __atomic_exchange_n(&process_memory.phase_peak_bytes, live, __ATOMIC_RELAXED);
}

/* Maps are few, and belong to the process. */
static inline void
note_map(Allocations *kind, size_t size)
{
    if (thread_memory.before_own_work != NULL)
        return;
    __atomic_add_fetch(&kind->bytes, size, __ATOMIC_RELAXED);
    __atomic_add_fetch(&kind->calls, 1, __ATOMIC_RELAXED);
}

static void
forget_maps(void)
{
    memset(&process_memory.mapped, 0, sizeof process_memory.mapped);
    memset(&process_memory.mapped_shared, 0, sizeof process_memory.mapped_shared);
    memset(&process_memory.unmapped, 0, sizeof process_memory.unmapped);
}

/* Threads. */

/* What counts of a thread's counters. */
static inline const Counters *
program_counters(const ThreadMemory *thread)
{
    return thread->before_own_work == NULL ? &thread->counters : &thread->before_own_work->counters;
}

/* What the calling thread allocates and frees from now on is the profiler's: it is not counted. Called
 * with the GIL. Whether it was not so already. */
static int
begin_own_work(void)
{
    BeforeOwnWork *before = thread_memory.before_own_work == NULL ? malloc(sizeof *before) : NULL;
    if (before == NULL)
        return 0;
    tell_kept();
    *before = (BeforeOwnWork){thread_memory.counters, thread_memory.until_sample};
    thread_memory.before_own_work = before;
    return 1;
}

/* What the profiler's own work has freed beyond what it had allocated was counted as allocated: notes that
 * torch's profiler makes inside the program's operators. So it counts as freed. */
static void
end_own_work(void)
{
    BeforeOwnWork *before = thread_memory.before_own_work;
    if (before == NULL)
        return;
    pthread_mutex_lock(&process_memory.lock);
    int64_t own_bytes = process_memory.own_bytes + thread_memory.counters.kept_bytes - before->counters.kept_bytes;
    process_memory.own_bytes = own_bytes > 0 ? own_bytes : 0;
    thread_memory.counters = before->counters;
    thread_memory.until_sample = before->until_sample;
    thread_memory.before_own_work = NULL;
    if (own_bytes < 0) {
        thread_memory.counters.frees++;
        thread_memory.counters.freed_bytes += (uint64_t)-own_bytes;
        thread_memory.counters.kept_bytes += own_bytes;
    }
    pthread_mutex_unlock(&process_memory.lock);
    tell_kept();
    free(before);
}

static void
memory_of_thread_ended(void *thread)
{
    (void)thread;
    tell_kept();
    pthread_mutex_lock(&process_memory.lock);
    for (size_t i = 0; i < process_memory.thread_count; i++)
        if (process_memory.threads[i] == &thread_memory) {
            process_memory.threads[i] = process_memory.threads[--process_memory.thread_count];
            break;
        }
    counters_add(&process_memory.ended, program_counters(&thread_memory));
    pthread_mutex_unlock(&process_memory.lock);
    free(thread_memory.before_own_work);
    thread_memory.before_own_work = NULL;
    memset(&thread_memory.counters, 0, sizeof thread_memory.counters);
    thread_memory.told_bytes = UNMET_BYTES;
    thread_memory.state = ENDED_THREAD;
}

/* A thread that counts for the first time. What it still does at its very end is told at once. */
static void
meet_thread(void)
{
    if (thread_memory.told_bytes == UNMET_BYTES)
        thread_memory.told_bytes = 0;
    if (thread_memory.state == ENDED_THREAD) {
        memory_of_thread_ended(NULL);
        return;
    }
    thread_memory.state = KNOWN_THREAD; /* first: a signal's handler may come in here */
    pthread_mutex_lock(&process_memory.lock);
    if (process_memory.thread_count == process_memory.thread_capacity) {
        size_t capacity = process_memory.thread_capacity ? process_memory.thread_capacity * 2 : 64;
        ThreadMemory **threads = realloc(process_memory.threads, capacity * sizeof *threads);
        if (threads != NULL) {
            process_memory.threads = threads;
            process_memory.thread_capacity = capacity;
        }
    }
    int has_room = process_memory.thread_count < process_memory.thread_capacity;
    if (has_room)
        process_memory.threads[process_memory.thread_count++] = &thread_memory;
    pthread_mutex_unlock(&process_memory.lock);
    if (has_room)
        pthread_setspecific(process_memory.ends, &thread_memory);
    else
        thread_memory.state = ENDED_THREAD;
}

/* What all threads have counted since the last reset. Those that go on counting are read as they are. */
static Counters
process_counters(void)
{
    pthread_mutex_lock(&process_memory.lock);
    Counters sum = process_memory.ended;
    for (size_t i = 0; i < process_memory.thread_count; i++)
        counters_add(&sum, program_counters(process_memory.threads[i]));
    counters_subtract(&sum, &process_memory.before);
    pthread_mutex_unlock(&process_memory.lock);
    return sum;
}

static void
process_memory_reset(void)
{
    tell_kept();
    Counters sum = process_counters();
    pthread_mutex_lock(&process_memory.lock);
    counters_add(&process_memory.before, &sum);
    process_memory.own_bytes = 0;
    forget_maps();
    pthread_mutex_unlock(&process_memory.lock);
    __atomic_store_n(&process_memory.live_bytes, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&process_memory.peak_bytes, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&process_memory.phase_peak_bytes, 0, __ATOMIC_RELAXED);
}

static void allocation_sites_forked(void);

/* Of all threads only the one that forked is there, and what was counted is the parent's. */
static void
memory_forked(void)
{
    pthread_mutex_init(&process_memory.lock, NULL);
    process_memory.thread_count = 0;
    memset(&process_memory.ended, 0, sizeof process_memory.ended);
    process_memory.before = *program_counters(&thread_memory);
    if (thread_memory.state == KNOWN_THREAD)
        process_memory.threads[process_memory.thread_count++] = &thread_memory;
    if (thread_memory.told_bytes != UNMET_BYTES)
        thread_memory.told_bytes = program_counters(&thread_memory)->kept_bytes;
    process_memory.live_bytes = process_memory.peak_bytes = process_memory.phase_peak_bytes = 0;
    process_memory.own_bytes = 0;
    forget_maps();
    thread_memory.is_sampling = 0;
    allocation_sites_forked();
}

static int
process_memory_prepare(void)
{
    if (process_memory.is_ready)
        return 0;
    if (pthread_key_create(&process_memory.ends, memory_of_thread_ended) != 0 ||
        pthread_atfork(NULL, NULL, memory_forked) != 0)
        return -1;
    process_memory.is_ready = 1;
    return 0;
}

#endif
