/* The sampler: a thread that looks at the stacks of the others and never takes the GIL.
 *
 * Nothing it reads holds still: threads run, end and free what they used. So everything of the
 * interpreter's, and of the recorders', is copied by safe reads and believed only if it makes sense;
 * a stack that does not is dropped and counted. What the sampler has put together is its own, behind
 * its lock.
 */
#ifndef PYROMETER_SAMPLER_H
#define PYROMETER_SAMPLER_H

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>

#include "code_table.h"
#include "native_leaf.h"
#include "sampled_places.h"
#include "stack_tree.h"
#include "thread_status.h"

#if STACKS_CAN_BE_READ

#define MAX_SAMPLED_THREADS 1024
#define MAX_FRAMES 4000     /* looked at; a stack that goes on is taken for one that makes no sense */
#define MAX_FRAMES_AT_ONCE (MAX_READ_PARTS / 2 - 1) /* whose functions are read */
#define MAX_STATES_AT_ONCE 8 /* of threads, that are read before it is clear that they are still there */
#define MAX_ENDS 128        /* frames kept at each end of a deeper stack */
#define MAX_CHUNK 262144    /* bytes of a thread's own stack of frames that are copied at once */
#define MAX_THREADS_APART 256 /* further ones are seen together, as the last */
#define RESTS_LONG 16       /* looks at a thread that does not run, before it is looked at less often */
#define MAX_OWN_THREADS 16
#define LEFT_OUT (NO_CODE - 1) /* stands for the frames in the middle of a very deep stack */

typedef struct {
    const void *code;
    const _Py_CODEUNIT *instruction;
} RawFrame;

typedef struct {
    const PyThreadState *address;
    uint64_t id;
    unsigned long thread_id, native_id;
    uint32_t number; /* among the threads seen */
    int met;         /* in this tick */
    int is_running;
    KeptFile status_file;
    unsigned rested; /* looks since it ran, as far as its clock tells */
    int frames; /* of the stack it had last */
    uint32_t stack;
    int is_native;
    uint64_t wall_ns, cpu_ns;
    Standing standings[RECORDERS];
    uint32_t places[RECORDERS]; /* where it stood when its stack was read */
} SampledThread;

typedef union {
    PyThreadState state;
    char bytes[sizeof(PyThreadState)];
} CopiedState;

typedef struct Sampler {
    PyObject_HEAD
    Recorder *recorders[RECORDERS];
    PyInterpreterState *interpreter;
    uint64_t interval_ns;
    unsigned char is_native[256]; /* by instruction: runs code that is not Python's */
    int by_file; /* memory is read by a file, as where the system call is refused */
    Reader reader;
    pthread_t worker;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    int running;  /* the worker is there */
    int stopping;
    pid_t process; /* that started it: a forked child has no worker */
    uint64_t random;
    uint64_t own_threads[MAX_OWN_THREADS]; /* our own, which are not looked at; the oldest go first */
    unsigned own_thread_count;
    SampledThread threads[MAX_SAMPLED_THREADS];
    size_t thread_count;
    int status_files; /* that are kept open */
    cpu_set_t busy;   /* processors on which threads have run since the tick before */
    unsigned long thread_ids[MAX_THREADS_APART + 1]; /* of the threads seen, by number; 0 of the last */
    uint64_t ran_ns[MAX_THREADS_APART + 1]; /* by their own clocks */
    size_t seen_count;
    CodeTable codes;
    int names_native; /* native functions are asked for */
    NativeLeaves leaves;
    StackTree tree;
    KnownNode known_nodes[KNOWN_NODES];
    uint64_t ticks, samples, dropped, unseen, cpu_ns; /* unseen: ticks with more threads than are looked at */
    RawFrame frames[MAX_FRAMES]; /* of the stack that is being read, innermost first */
    uint32_t frame_codes[MAX_FRAMES];
    union {
        PyCodeObject code;
        char bytes[sizeof(PyCodeObject)];
    } code_copies[MAX_FRAMES_AT_ONCE];
    PyASCIIObject name_copies[MAX_FRAMES_AT_ONCE];
    unsigned char instruction[2]; /* that the innermost frame is at */
    const PyThreadState *states[MAX_STATES_AT_ONCE]; /* of the threads of the last tick */
    CopiedState state_copies[MAX_STATES_AT_ONCE];
    char chunk[MAX_CHUNK];
} Sampler;

/* Clocks. */

static uint64_t
clock_ns(clockid_t clock)
{
    struct timespec now;
    return clock_gettime(clock, &now) == 0 ? (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec : 0;
}

/* What a thread of this process has run: the kernel's clock for it, by its number. */
static inline uint64_t
thread_cpu_ns(unsigned long native_id)
{
    return clock_ns((clockid_t)(~(unsigned)native_id << 3 | 6));
}

/* Stacks. */

static int
is_in_copy(const void *frame, const char *base, size_t size)
{
    /* A frame that changes while it is read may point anywhere, up to the end of all addresses. */
    uintptr_t at = (uintptr_t)frame, begin = (uintptr_t)base;
    return size >= FRAME_SIZE && at >= begin && at - begin <= size - FRAME_SIZE;
}

#define UNREADABLE (-1)

/* The frames of a thread, innermost first. Their number, or UNREADABLE if they make no sense. */
static int
read_frames(Sampler *sampler, const PyThreadState *copied, const PyThreadState *original)
{
    const Reader *reader = &sampler->reader;
    const void *frame = NULL;
    const char *base = (const char *)copied->datastack_chunk, *top = (const char *)copied->datastack_top;
    size_t size = base != NULL && top > base ? (size_t)(top - base) : 0;
    if (size > MAX_CHUNK) {
        base += size - MAX_CHUNK;
        size = MAX_CHUNK;
    }
    ReadPart parts[] = {{innermost_frame_place(copied, original), &frame, sizeof frame},
                        {base, sampler->chunk, size}};
    if (!reader_read_parts(reader, parts, size > 0 ? 2 : 1))
        return UNREADABLE;
    int count = 0;
    for (int i = 0; frame != NULL; i++) {
        if (i == MAX_FRAMES || (uintptr_t)frame % sizeof(void *) != 0)
            return UNREADABLE;
        union {
            _PyInterpreterFrame frame;
            char bytes[sizeof(_PyInterpreterFrame)];
        } here;
        if (is_in_copy(frame, base, size))
            memcpy(here.bytes, sampler->chunk + ((const char *)frame - base), FRAME_SIZE);
        else if (!reader_read(reader, frame, here.bytes, FRAME_SIZE))
            return UNREADABLE;
        if (!is_between_runs(&here.frame))
            sampler->frames[count++] =
                (RawFrame){copied_frame_code(&here.frame), copied_frame_instruction(&here.frame)};
        frame = here.frame.previous;
    }
    return count;
}

/* Whether these frames, at most MAX_FRAMES_AT_ONCE, run code that is in the table now. Read along with it are
 * names, where they were last time, and the instruction that the first of the frames is at. */
static int
find_some_codes(Sampler *sampler, const RawFrame *frames, int count, uint32_t *codes)
{
    ReadPart parts[MAX_READ_PARTS];
    for (int i = 0; i < count; i++) {
        const void *name = code_table_expected_name(&sampler->codes, frames[i].code);
        parts[2 * i] = (ReadPart){frames[i].code, &sampler->code_copies[i], CODE_SIZE};
        parts[2 * i + 1] = (ReadPart){name, &sampler->name_copies[i], sizeof(PyASCIIObject)};
    }
    parts[2 * count] = (ReadPart){frames[0].instruction, sampler->instruction, sizeof sampler->instruction};
    reader_read_what_is_there(&sampler->reader, parts, 2 * count + 1);
    int others = 0;
    for (int i = 0; i < count; i++) {
        const PyCodeObject *copied = &sampler->code_copies[i].code;
        if (!is_code(copied))
            return 0;
        if (copied->co_qualname != parts[2 * i + 1].from)
            parts[others++] = (ReadPart){copied->co_qualname, &sampler->name_copies[i], sizeof(PyASCIIObject)};
    }
    if (others > 0 && !reader_read_parts(&sampler->reader, parts, others))
        return 0;
    for (int i = 0; i < count; i++) {
        codes[i] = code_table_find(&sampler->codes, &sampler->reader, frames[i].code,
                                   &sampler->code_copies[i].code, &sampler->name_copies[i]);
        if (codes[i] == NO_CODE)
            return 0;
    }
    return 1;
}

/* The outermost first: at the end the instruction is that of the innermost. */
static int
find_codes(Sampler *sampler, int count)
{
    for (int rest = count; rest > 0;) {
        int some = rest < MAX_FRAMES_AT_ONCE ? rest : MAX_FRAMES_AT_ONCE, first = rest -= some;
        if (!find_some_codes(sampler, sampler->frames + first, some, sampler->frame_codes + first))
            return 0;
    }
    return 1;
}

static uint32_t
add_frame(Sampler *sampler, uint32_t parent, uint32_t code, const _Py_CODEUNIT *instruction)
{
    return stack_tree_node(&sampler->tree, parent, code, code_line(&sampler->codes.entries[code], instruction));
}

static void
look_at_status(Sampler *sampler, SampledThread *thread, int has_run)
{
    int processor;
    sampler->status_files -= thread->status_file.number != 0;
    thread->is_running = thread_is_running(&thread->status_file, thread->native_id,
                                           has_run && sampler->status_files < MAX_STATUS_FILES, &processor);
    sampler->status_files += thread->status_file.number != 0;
    if (has_run && processor >= 0 && processor < CPU_SETSIZE)
        CPU_SET(processor, &sampler->busy);
}

/* Puts the thread's stack into the tree. The number of its frames, or UNREADABLE. */
static int
read_stack(Sampler *sampler, SampledThread *thread, const PyThreadState *copied, int has_run)
{
    int count = read_frames(sampler, copied, thread->address);
    /* Before all else: the thread goes on, and may soon run, wait or stand elsewhere. */
    look_at_status(sampler, thread, has_run);
    if (count <= 0)
        return count;
    find_places(&sampler->reader, &sampler->tree, sampler->known_nodes, sampler->recorders, thread->standings,
                thread->thread_id, thread->places);
    if (!find_codes(sampler, count))
        return UNREADABLE;
    uint32_t node = NOWHERE;
    for (int i = count - 1; i >= 0; i--) {
        if (count > 2 * MAX_ENDS && i == count - 1 - MAX_ENDS) {
            node = stack_tree_node(&sampler->tree, node, LEFT_OUT, -1);
            i = MAX_ENDS - 1;
        }
        node = add_frame(sampler, node, sampler->frame_codes[i], sampler->frames[i].instruction);
    }
    thread->stack = node;
    thread->is_native = sampler->is_native[sampler->instruction[0]];
    return count;
}

/* Threads. */

static SampledThread *
find_thread(Sampler *sampler, const PyThreadState *address, const PyThreadState *copied)
{
    for (size_t i = 0; i < sampler->thread_count; i++) {
        SampledThread *thread = &sampler->threads[i];
        /* A state bears the numbers of the thread that made it until its own begins to run. */
        if (thread->address == address && thread->id == copied->id &&
            thread->native_id == copied->native_thread_id)
            return thread;
    }
    if (sampler->thread_count == MAX_SAMPLED_THREADS)
        return NULL; /* so many at a time are not looked for either */
    size_t number = sampler->seen_count;
    if (number < MAX_THREADS_APART)
        sampler->thread_ids[number] = copied->thread_id;
    if (number <= MAX_THREADS_APART)
        sampler->seen_count++;
    else
        number = MAX_THREADS_APART;
    SampledThread *thread = &sampler->threads[sampler->thread_count++];
    *thread = (SampledThread){.address = address,
                              .id = copied->id,
                              .thread_id = copied->thread_id,
                              .native_id = copied->native_thread_id,
                              .number = (uint32_t)number};
    return thread;
}

static int
is_our_own(const Sampler *sampler, uint64_t id)
{
    for (int i = 0; i < MAX_OWN_THREADS; i++)
        if (sampler->own_threads[i] == id)
            return 1;
    return 0;
}

/* What a thread ran between two looks it may have run anywhere, and its clock moves in leaps. So a look
 * at a thread that runs counts in full; what it really ran in all is kept beside, to scale them by. */
static void
add_sample(Sampler *sampler, SampledThread *thread, uint64_t wall_ns, int is_running)
{
    ObservationKey key = {.stack = thread->stack,
                          .thread = thread->number,
                          .leaf = NOWHERE,
                          .scope = thread->places[0],
                          .call = thread->places[1]};
    if (sampler->leaves.signal != 0 && thread->is_native && is_running)
        key.leaf = find_leaf(&sampler->leaves, sampler->process, (pid_t)thread->native_id);
    Observation *observation = stack_tree_observation(&sampler->tree, key);
    if (observation == NULL) {
        sampler->dropped++;
        return;
    }
    sampler->samples++;
    observation->samples++;
    observation->wall_ns += wall_ns;
    if (!is_running) {
        observation->waiting++;
        return;
    }
    observation->native += thread->is_native != 0;
    observation->running_ns += wall_ns;
}

static void
sample_thread(Sampler *sampler, const PyThreadState *address, const PyThreadState *copied, uint64_t now_ns)
{
    SampledThread *thread = find_thread(sampler, address, copied);
    if (thread == NULL)
        return;
    thread->met = 1;
    uint64_t cpu_ns = thread_cpu_ns(thread->native_id);
    int is_first = thread->wall_ns == 0, has_run = cpu_ns > thread->cpu_ns;
    thread->rested = has_run || thread->is_running ? 0 : thread->rested + 1;
    /* One that has rested for long most likely rests where it did. */
    if (is_first || thread->rested < RESTS_LONG || thread->rested % RESTS_LONG == 0 ||
        thread->frames == UNREADABLE) {
        thread->frames = read_stack(sampler, thread, copied, !is_first && has_run);
    }
    if (thread->frames == UNREADABLE && !is_first) {
        sampler->dropped++;
        return; /* its time goes to the next stack that can be read */
    }
    if (!is_first && has_run)
        sampler->ran_ns[thread->number] += cpu_ns - thread->cpu_ns;
    /* A thread at its beginning or end, or at work for something else than Python, has no frames. */
    if (!is_first && thread->frames > 0)
        add_sample(sampler, thread, now_ns - thread->wall_ns, thread->is_running);
    thread->wall_ns = now_ns;
    thread->cpu_ns = cpu_ns;
}

static void
forget_ended_threads(Sampler *sampler)
{
    size_t kept = 0;
    for (size_t i = 0; i < sampler->thread_count; i++) {
        SampledThread *thread = &sampler->threads[i];
        if (!thread->met) {
            sampler->status_files -= thread->status_file.number != 0;
            kept_file_close(&thread->status_file);
            continue;
        }
        thread->met = 0;
        if (kept != i)
            sampler->threads[kept] = *thread;
        kept++;
    }
    sampler->thread_count = kept;
}

static void
forget_all_threads(Sampler *sampler)
{
    for (size_t i = 0; i < sampler->thread_count; i++)
        kept_file_close(&sampler->threads[i].status_file);
    sampler->thread_count = 0;
    sampler->status_files = 0;
}

/* The states of the threads that were there at the last tick, all at once. */
static void
read_known_states(Sampler *sampler)
{
    ReadPart parts[MAX_STATES_AT_ONCE];
    for (int i = 0; i < MAX_STATES_AT_ONCE; i++)
        parts[i] = (ReadPart){sampler->states[i], sampler->state_copies[i].bytes, THREAD_STATE_SIZE};
    reader_read_what_is_there(&sampler->reader, parts, MAX_STATES_AT_ONCE);
}

/* Whether the state of the thread that comes so far in their list is the copy there now. */
static int
read_state(Sampler *sampler, const PyThreadState *state, int index, CopiedState *copied)
{
    if (index >= MAX_STATES_AT_ONCE || sampler->states[index] != state)
        return reader_read(&sampler->reader, state, copied->bytes, THREAD_STATE_SIZE);
    *copied = sampler->state_copies[index];
    return 1;
}

static void
sample_all(Sampler *sampler)
{
    CopiedState copied;
    uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
    CPU_ZERO(&sampler->busy);
    read_known_states(sampler);
    const PyThreadState *state = PyInterpreterState_ThreadHead(sampler->interpreter);
    for (int i = 0; state != NULL && i < MAX_SAMPLED_THREADS; i++) {
        if (!read_state(sampler, state, i, &copied) || copied.state.interp != sampler->interpreter)
            break;
        if (i < MAX_STATES_AT_ONCE)
            sampler->states[i] = state;
        if (copied.state.native_thread_id != 0 && !is_our_own(sampler, copied.state.id))
            sample_thread(sampler, state, &copied.state, now_ns);
        state = copied.state.next;
        sampler->unseen += state != NULL && i == MAX_SAMPLED_THREADS - 1;
    }
    forget_ended_threads(sampler);
    sampler->ticks++;
}

/* The worker. */

/* From half the interval to one and a half, so that nothing periodic is always or never met. */
static uint64_t
next_wait_ns(Sampler *sampler)
{
    sampler->random ^= sampler->random << 13;
    sampler->random ^= sampler->random >> 7;
    sampler->random ^= sampler->random << 17;
    return sampler->interval_ns / 2 + sampler->random % (sampler->interval_ns + 1);
}

/* Asks to be let in at once and for a moment only, where all processors are busy: else the look is put
 * off until a thread goes to sleep, and sees just that. Linux before 6.12 does not listen. */
static void
ask_for_short_slices(void)
{
    struct {
        uint32_t size, policy;
        uint64_t flags;
        int32_t nice;
        uint32_t priority;
        uint64_t runtime_ns, deadline_ns, period_ns;
    } wanted = {.size = sizeof wanted, .runtime_ns = 100000};
    wanted.nice = getpriority(PRIO_PROCESS, 0);
    if (sched_getscheduler(0) == SCHED_OTHER)
        syscall(SYS_sched_setattr, 0, &wanted, 0);
}

/* A thread that sleeps for a time is woken up to 50 us early if its processor has an interrupt then. So
 * where ours comes on that processor, too many looks would see it awake; and one that runs there would be
 * put off by us. If another processor is free, we go there, and are most likely woken there. */
static void
keep_off_busy_processors(const Sampler *sampler)
{
    int own = sched_getcpu();
    cpu_set_t allowed, quiet;
    if (own < 0 || own >= CPU_SETSIZE || !CPU_ISSET(own, &sampler->busy) ||
        sched_getaffinity(0, sizeof allowed, &allowed) != 0)
        return;
    CPU_AND(&quiet, &allowed, &sampler->busy);
    CPU_XOR(&quiet, &allowed, &quiet);
    if (CPU_COUNT(&quiet) > 0 && sched_setaffinity(0, sizeof quiet, &quiet) == 0)
        sched_setaffinity(0, sizeof allowed, &allowed);
}

/* From now on this thread's files have numbers of their own. In the process's table each that it opens
 * would have, for a moment, the number that the program's next file is to get. What the program has open
 * is let go of at once: it is the program that says when its pipes and sockets are closed. Where it cannot
 * be, nothing is changed. */
static void
have_own_files(const Reader *reader)
{
#ifdef SYS_close_range
    if (reader->memory_file.number != 0 || syscall(SYS_close_range, ~0u, ~0u, 0) != 0 ||
        unshare(CLONE_FILES) != 0)
        return;
    syscall(SYS_close_range, 0u, ~0u, 0);
    int first = open("/dev/null", O_RDONLY | O_CLOEXEC); /* 0, which means none */
    (void)first;
#endif
}

static void *
sampler_work(void *argument)
{
    Sampler *sampler = argument;
    have_own_files(&sampler->reader);
    ask_for_short_slices();
    prctl(PR_SET_TIMERSLACK, 1ul, 0, 0, 0); /* not when other threads are due, but when we are */
    pthread_mutex_lock(&sampler->lock);
    while (!sampler->stopping) {
        uint64_t until_ns = clock_ns(CLOCK_MONOTONIC) + next_wait_ns(sampler);
        struct timespec until = {(time_t)(until_ns / 1000000000u), (long)(until_ns % 1000000000u)};
        int woken = 0;
        while (!sampler->stopping && woken == 0)
            woken = pthread_cond_timedwait(&sampler->wake, &sampler->lock, &until);
        if (!sampler->stopping) {
            sample_all(sampler);
            keep_off_busy_processors(sampler);
        }
        sampler->cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    }
    pthread_mutex_unlock(&sampler->lock);
    return NULL;
}

#endif
#endif
