/* Where in the program memory is allocated: the Python stacks of a fair choice of all allocations.
 *
 * Every byte below LARGE_BYTES has the same chance to be chosen, one in sampled_bytes: the bytes to go
 * until the next are drawn anew each time, from an exponential distribution, so nothing regular in the
 * program can be always or never met. Each stands for sampled_bytes. An allocation from LARGE_BYTES on is
 * always noted, as itself. The stack is that of the allocating thread, read by itself: while it is in
 * here nothing else changes it, with the GIL or without.
 */
#ifndef PYROMETER_ALLOCATION_SITES_H
#define PYROMETER_ALLOCATION_SITES_H

#include "allocations.h"
#include "code_table.h"
#include "stack_tree.h"

#define LARGE_BYTES 1048576
#define ASK_AGAIN_BYTES (64 << 20) /* while stacks are not noted: after so much it is asked whether they are */
#define MAX_SITE_FRAMES 256 /* the innermost ones */
#define MAX_KNOWN_STACKS 16384

typedef struct {
    uint64_t samples, large_bytes, large_calls;
} Site;

typedef struct {
    const PyCodeObject *code;
    const _Py_CODEUNIT *instruction;
} SiteFrame;

/* A stack that was met before, by what tells it from others. */
typedef struct {
    uint64_t hash;
    uint32_t node;
} KnownStack;

#if STACKS_CAN_BE_READ
typedef struct {
    pthread_mutex_t lock;
    uint64_t sampled_bytes; /* 0: stacks are not noted */
    uint64_t random;
    Reader reader;
    CodeTable codes;
    StackTree tree;
    Site *sites; /* by node of the tree */
    size_t site_capacity;
    KnownStack known[MAX_KNOWN_STACKS];
    size_t known_count;
    Site elsewhere; /* on threads that run no Python */
    Site missed;    /* while another thread was noted, or a stack found no room */
} AllocationSites;

static AllocationSites allocation_sites = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Drawing. */

static double
natural_log(double value)
{
    union {
        double value;
        uint64_t bits;
    } parts = {value};
    int exponent = (int)(parts.bits >> 52 & 2047) - 1023;
    parts.bits = (parts.bits & 0xFFFFFFFFFFFFFu) | (uint64_t)1023 << 52;
    double z = (parts.value - 1) / (parts.value + 1), square = z * z, sum = 0, power = z;
    for (int i = 1; i < 24; i += 2, power *= square)
        sum += power / i;
    return exponent * 0.69314718055994530942 + 2 * sum;
}

/* Bytes until the next sample. */
static int64_t
draw_interval(void)
{
    uint64_t bits = __atomic_add_fetch(&allocation_sites.random, 0x9E3779B97F4A7C15u, __ATOMIC_RELAXED);
    bits = (bits ^ bits >> 30) * 0xBF58476D1CE4E5B9u;
    bits = (bits ^ bits >> 27) * 0x94D049BB133111EBu;
    double chance = (double)(((bits ^ bits >> 31) >> 11) + 1) * 0x1p-53;
    return (int64_t)(-natural_log(chance) * (double)allocation_sites.sampled_bytes + 0.5);
}

/* Stacks. */

static inline const _PyInterpreterFrame *
own_innermost_frame(void)
{
    /* Of this thread, whoever has the GIL; NULL where it has never run Python. */
    const PyThreadState *state = PyGILState_GetThisThreadState();
    return state == NULL ? NULL : *(_PyInterpreterFrame *const *)innermost_frame_place(state, state);
}

static int
read_own_frames(SiteFrame *frames, uint64_t *hash)
{
    int count = 0;
    *hash = 1;
    for (const _PyInterpreterFrame *frame = own_innermost_frame(); frame != NULL && count < MAX_SITE_FRAMES;
         frame = frame->previous) {
        if (is_between_runs(frame))
            continue;
        const PyCodeObject *code = copied_frame_code(frame);
        frames[count] = (SiteFrame){code, copied_frame_instruction(frame)};
        /* Another function may come to live at the same address, and its name where the other's was. */
        *hash = mix(mix(*hash, (uintptr_t)frames[count].instruction),
                    (uint64_t)((const PyASCIIObject *)code->co_qualname)->hash);
        count++;
    }
    return count;
}

static uint32_t
add_stack(const SiteFrame *frames, int count)
{
    AllocationSites *all = &allocation_sites;
    uint32_t node = NOWHERE;
    for (int i = count - 1; i >= 0; i--) {
        uint32_t code = code_table_find(&all->codes, &all->reader, frames[i].code, frames[i].code,
                                        (const PyASCIIObject *)frames[i].code->co_qualname);
        if (code == NO_CODE)
            return NOWHERE;
        node = stack_tree_node(&all->tree, node, code,
                               code_line(&all->codes.entries[code], frames[i].instruction));
        if (node == NOWHERE)
            return NOWHERE;
    }
    if (node != NOWHERE && node >= all->site_capacity) {
        size_t capacity = all->tree.node_capacity;
        Site *sites = realloc(all->sites, capacity * sizeof *sites);
        if (sites == NULL)
            return NOWHERE;
        memset(sites + all->site_capacity, 0, (capacity - all->site_capacity) * sizeof *sites);
        all->sites = sites;
        all->site_capacity = capacity;
    }
    return node;
}

static Site *
find_site(void)
{
    AllocationSites *all = &allocation_sites;
    SiteFrame frames[MAX_SITE_FRAMES];
    uint64_t hash;
    int count = read_own_frames(frames, &hash);
    if (count == 0)
        return &all->elsewhere;
    size_t at = hash & (MAX_KNOWN_STACKS - 1);
    for (; all->known[at].hash != 0; at = (at + 1) & (MAX_KNOWN_STACKS - 1))
        if (all->known[at].hash == hash)
            return &all->sites[all->known[at].node];
    uint32_t node = add_stack(frames, count);
    if (node == NOWHERE)
        return &all->missed;
    if (all->known_count < MAX_KNOWN_STACKS / 2 && hash != 0) {
        all->known[at] = (KnownStack){hash, node};
        all->known_count++;
    }
    return &all->sites[node];
}

static void
note_site(uint64_t samples, size_t large_bytes)
{
    Site more = {samples, large_bytes, large_bytes > 0};
    Site *site = &allocation_sites.missed;
    /* Not waited for: the thread may be in here already, below a signal's handler. */
    int is_free = !thread_memory.is_sampling && pthread_mutex_trylock(&allocation_sites.lock) == 0;
    if (is_free) {
        thread_memory.is_sampling = 1;
        site = find_site();
    }
    __atomic_add_fetch(&site->samples, more.samples, __ATOMIC_RELAXED);
    __atomic_add_fetch(&site->large_bytes, more.large_bytes, __ATOMIC_RELAXED);
    __atomic_add_fetch(&site->large_calls, more.large_calls, __ATOMIC_RELAXED);
    if (is_free) {
        thread_memory.is_sampling = 0;
        pthread_mutex_unlock(&allocation_sites.lock);
    }
}

/* Called when a sample is due, or may be. */
static void
sample_allocation(size_t size)
{
    if (allocation_sites.sampled_bytes == 0) {
        thread_memory.until_sample = ASK_AGAIN_BYTES;
        return;
    }
    if (thread_memory.until_sample == -(int64_t)size)
        thread_memory.until_sample += draw_interval(); /* the thread's first allocation */
    if (size >= LARGE_BYTES) {
        thread_memory.until_sample += (int64_t)size;
        note_site(0, size);
        return;
    }
    uint64_t samples = 0;
    for (; thread_memory.until_sample < 0; samples++)
        thread_memory.until_sample += draw_interval() + 1;
    if (samples > 0)
        note_site(samples, 0);
}

/* In a forked child: what is half done there stays so. */
static void
allocation_sites_forked(void)
{
    AllocationSites *all = &allocation_sites;
    pthread_mutex_init(&all->lock, NULL);
    memset(&all->codes, 0, sizeof all->codes);
    memset(&all->tree, 0, sizeof all->tree);
    memset(all->known, 0, sizeof all->known);
    all->sites = NULL;
    all->site_capacity = all->known_count = 0;
    all->elsewhere = all->missed = (Site){0};
    all->reader.process = getpid();
}

/* NULL, or why stacks cannot be noted. */
static const char *
allocation_sites_begin(uint64_t sampled_bytes)
{
    AllocationSites *all = &allocation_sites;
    const char *reason = sampled_bytes == 0 || all->sampled_bytes > 0 ? NULL : reader_open(&all->reader, 0);
    if (reason == NULL && sampled_bytes > 0 && all->sampled_bytes == 0) {
        all->random ^= (uint64_t)getpid() << 32 ^ (uint64_t)(uintptr_t)&reason;
        all->sampled_bytes = sampled_bytes;
        thread_memory.until_sample = draw_interval();
    }
    return reason;
}

static void
allocation_sites_end(void)
{
    allocation_sites.sampled_bytes = 0;
    reader_close(&allocation_sites.reader);
}

static void
allocation_sites_reset(void)
{
    AllocationSites *all = &allocation_sites;
    pthread_mutex_lock(&all->lock);
    code_table_clear(&all->codes);
    stack_tree_clear(&all->tree);
    free(all->sites);
    memset(all->known, 0, sizeof all->known);
    all->sites = NULL;
    all->site_capacity = all->known_count = 0;
    all->elsewhere = all->missed = (Site){0};
    pthread_mutex_unlock(&all->lock);
}
#else
static void
sample_allocation(size_t size)
{
    thread_memory.until_sample = ASK_AGAIN_BYTES;
}

static void
allocation_sites_forked(void)
{
}

static const char *
allocation_sites_begin(uint64_t sampled_bytes)
{
    return sampled_bytes == 0 ? NULL : "stacks cannot be read in this version of Python, or on this system";
}

static void
allocation_sites_end(void)
{
}

static void
allocation_sites_reset(void)
{
}
#endif

#endif
