/* The call tree: nodes, their histograms, the strands they stand in, and the frames open on them. */
#ifndef PYROMETER_TREE_H
#define PYROMETER_TREE_H

#include <Python.h>
#include <stdint.h>
#include <stdlib.h>

#include "allocations.h"

/* Recording happens while an exception may be on its way through the program: keep it. */
#if PY_VERSION_HEX >= 0x030C0000
typedef PyObject *SavedError;

static inline SavedError
save_error(void)
{
    return PyErr_GetRaisedException();
}

static inline void
restore_error(SavedError error)
{
    PyErr_SetRaisedException(error);
}
#else
typedef struct {
    PyObject *type, *value, *traceback;
} SavedError;

static inline SavedError
save_error(void)
{
    SavedError error;
    PyErr_Fetch(&error.type, &error.value, &error.traceback);
    return error;
}

static inline void
restore_error(SavedError error)
{
    PyErr_Restore(error.type, error.value, error.traceback);
}
#endif

/* An error of ours is not the program's; but Ctrl-C that came meanwhile is, and comes again. */
static inline void
swallow_error(void)
{
    if (PyErr_ExceptionMatches(PyExc_KeyboardInterrupt))
        PyErr_SetInterrupt();
    PyErr_Clear();
}

/* Sparse histogram: open addressing, keys are bucket + 1, 0 is empty. */
typedef struct {
    uint16_t *keys;
    uint64_t *counts;
    uint32_t capacity; /* a power of two */
    uint32_t used;
} Histogram;

/* How long at least one thread was inside a parallel scope, whichever thread it was. */
typedef struct Shared {
    PyObject *name;
    struct Shared *first_child, *next_sibling;
    uint64_t active, since_ns, wall_ns;
} Shared;

typedef struct Node {
    PyObject *name;
    Py_hash_t hash;
    uint64_t serial; /* no other node has had it */
    struct Node *parent, *first_child, *last_child, *next_sibling;
    struct Node *other;         /* where children that found no place are counted */
    Shared *shared;             /* set in strands that hang under a scope */
    Shared *parallel_children;  /* where threads started here share their wall time */
    uint64_t calls, open_calls, total_ns, min_ns, max_ns, suspended_ns;
    Counters allocated;         /* by its own code; the children's are theirs */
    int64_t peak_bytes;         /* the most one call has held, over what its thread had when it began */
    uint64_t open_now, open_total_ns, open_suspended_ns; /* used while a snapshot is taken */
    Counters allocated_inside; /* the children's included; used while a snapshot is taken */
    Py_ssize_t snapshot_strand, snapshot_index;
    uint64_t references; /* positions, strands and suspended frames that stand on this node */
    Histogram histogram;
    int is_other;
} Node;

/* One open call. absorbed counts scopes opened inside it that found no place. */
typedef struct {
    Node *node;
    PyObject *owner; /* strong while on a strand; none while suspended */
    uint64_t slice_start_ns, active_ns, suspended_at_ns;
    /* What the thread kept when the call began, and the most since, but for calls still open inside it;
     * begin_bytes of a suspended one: what it holds. */
    int64_t begin_bytes, highest_bytes;
    uint64_t absorbed;
    /* The delegate that throw() went straight to, compared only: resumed for it, suspended with it. */
    PyObject *passed_for;
    int dying;  /* its owner is being dropped: if it yields again nobody can resume it */
    int ghost;  /* found no place when it was resumed: open, but its time is not counted */
} Frame;

struct Recorder;

/* One thread's call tree under the scope that started it; frames[0] is the ground. */
typedef struct Strand {
    struct Recorder *recorder;
    unsigned long thread_id;
    PyObject *thread_name;
    Node *parent; /* the scope that started the thread, in another strand, or NULL */
    struct Strand *outer;
    Node *root;
    Node **table; /* child lookup by (parent, name): open addressing */
    size_t table_capacity, table_used;
    Frame *frames;
    Py_ssize_t depth, capacity;
    Py_ssize_t owned; /* frames that have an owner */
    Counters counted; /* the thread's counters when they were last looked at here */
    int mark;         /* the recorder's */
    uint64_t entries;
    uint64_t threads;
    int ended;
    uint64_t ended_ns;
} Strand;

/* 32 buckets to each power of two, exact below 64 ns: at most 1.6 % from a bucket's middle. */
static inline unsigned
bucket_of(uint64_t duration_ns)
{
    if (duration_ns < 32)
        return (unsigned)duration_ns;
    unsigned exponent = 63u - (unsigned)__builtin_clzll(duration_ns);
    return (exponent - 4) * 32 + (unsigned)((duration_ns >> (exponent - 5)) & 31);
}

static int
histogram_grow(Histogram *histogram)
{
    uint32_t capacity = histogram->capacity ? histogram->capacity * 2 : 8;
    uint64_t *counts = calloc(capacity, sizeof *counts + sizeof(uint16_t));
    if (counts == NULL)
        return -1;
    uint16_t *keys = (uint16_t *)(counts + capacity);
    for (uint32_t i = 0; i < histogram->capacity; i++) {
        if (histogram->keys[i]) {
            uint32_t at = (histogram->keys[i] * 2654435761u) & (capacity - 1);
            while (keys[at])
                at = (at + 1) & (capacity - 1);
            keys[at] = histogram->keys[i];
            counts[at] = histogram->counts[i];
        }
    }
    free(histogram->counts);
    histogram->counts = counts;
    histogram->keys = keys;
    histogram->capacity = capacity;
    return 0;
}

static inline void
histogram_add(Histogram *histogram, unsigned bucket, uint64_t calls)
{
    uint16_t key = (uint16_t)(bucket + 1);
    if (LIKELY(histogram->capacity)) {
        uint32_t mask = histogram->capacity - 1;
        uint32_t at = (key * 2654435761u) & mask;
        while (histogram->keys[at] && histogram->keys[at] != key)
            at = (at + 1) & mask;
        if (LIKELY(histogram->keys[at])) {
            histogram->counts[at] += calls;
            return;
        }
    }
    if (histogram->used * 2 >= histogram->capacity && histogram_grow(histogram) < 0)
        return;
    uint32_t mask = histogram->capacity - 1;
    uint32_t at = (key * 2654435761u) & mask;
    while (histogram->keys[at])
        at = (at + 1) & mask;
    histogram->keys[at] = key;
    histogram->counts[at] = calls;
    histogram->used++;
}

static Shared *
shared_child(Shared *shared, PyObject *name)
{
    for (Shared *child = shared->first_child; child != NULL; child = child->next_sibling)
        if (child->name == name || PyUnicode_Compare(child->name, name) == 0)
            return child;
    Shared *child = calloc(1, sizeof *child);
    if (child == NULL)
        return NULL;
    child->name = Py_NewRef(name);
    child->next_sibling = shared->first_child;
    shared->first_child = child;
    return child;
}

static void shared_free(Shared *shared);

static void
shared_clear(Shared *shared)
{
    for (Shared *child = shared->first_child; child != NULL;) {
        Shared *next = child->next_sibling;
        shared_free(child);
        child = next;
    }
    shared->first_child = NULL;
    shared->active = shared->since_ns = shared->wall_ns = 0;
}

static void
shared_free(Shared *shared)
{
    if (shared == NULL)
        return;
    shared_clear(shared);
    Py_XDECREF(shared->name);
    free(shared);
}

static inline void
shared_enter(Shared *shared, uint64_t now_ns)
{
    if (shared->active++ == 0)
        shared->since_ns = now_ns;
}

static inline void
shared_leave(Shared *shared, uint64_t now_ns)
{
    if (--shared->active == 0 && now_ns > shared->since_ns)
        shared->wall_ns += now_ns - shared->since_ns;
}

static inline uint64_t
shared_wall_at(const Shared *shared, uint64_t now_ns)
{
    int running = shared->active > 0 && now_ns > shared->since_ns;
    return shared->wall_ns + (running ? now_ns - shared->since_ns : 0);
}

/* Where the threads started in this scope share their wall time. */
static Shared *
node_shared_for_strands(Node *node)
{
    if (node->shared != NULL)
        return node->shared;
    if (node->parallel_children == NULL)
        node->parallel_children = calloc(1, sizeof(Shared));
    return node->parallel_children;
}

static Node *
node_new(PyObject *name, Py_hash_t hash, Node *parent, Shared *shared)
{
    Node *node = calloc(1, sizeof *node);
    if (node == NULL)
        return NULL;
    static uint64_t made;
    node->serial = ++made;
    node->name = Py_NewRef(name);
    node->hash = hash;
    node->parent = parent;
    node->shared = shared;
    return node;
}

/* Frees the node alone; its children have a new parent or are freed by the caller. */
static void
node_free(Node *node)
{
    Py_DECREF(node->name);
    free(node->histogram.counts);
    shared_free(node->parallel_children);
    free(node);
}

static void
node_free_tree(Node *node)
{
    for (Node *child = node->first_child; child != NULL;) {
        Node *next = child->next_sibling;
        node_free_tree(child);
        child = next;
    }
    node_free(node);
}

static void
node_append_child(Node *parent, Node *child)
{
    child->parent = parent;
    child->next_sibling = NULL;
    if (parent->last_child != NULL)
        parent->last_child->next_sibling = child;
    else
        parent->first_child = child;
    parent->last_child = child;
    if (child->is_other)
        parent->other = child;
}

static int
node_is_referenced(const Node *node)
{
    if (node->references > 0)
        return 1;
    for (const Node *child = node->first_child; child != NULL; child = child->next_sibling)
        if (node_is_referenced(child))
            return 1;
    return 0;
}

static inline void
node_record_call(Node *node, uint64_t duration_ns)
{
    if (node->calls++ == 0 || duration_ns < node->min_ns)
        node->min_ns = duration_ns;
    if (duration_ns > node->max_ns)
        node->max_ns = duration_ns;
    histogram_add(&node->histogram, bucket_of(duration_ns), 1);
}

static inline void
node_raise_peak(Node *node, int64_t peak_bytes)
{
    if (UNLIKELY(peak_bytes > node->peak_bytes))
        node->peak_bytes = peak_bytes;
}

/* Child lookup. */

static inline int
node_is_named(const Node *node, PyObject *name, Py_hash_t hash)
{
    return node->name == name ||
           (node->hash == hash && PyUnicode_Compare(node->name, name) == 0);
}

static inline size_t
table_slot(const Node *parent, Py_hash_t hash, size_t mask)
{
    uint64_t mixed = ((uint64_t)(uintptr_t)parent >> 4) * 0x9E3779B97F4A7C15u ^ (uint64_t)hash;
    return (size_t)(mixed ^ (mixed >> 29)) & mask;
}

static Node *
strand_find(const Strand *strand, const Node *parent, PyObject *name, Py_hash_t hash)
{
    if (strand->table_capacity == 0)
        return NULL;
    size_t mask = strand->table_capacity - 1;
    for (size_t at = table_slot(parent, hash, mask);; at = (at + 1) & mask) {
        Node *node = strand->table[at];
        if (node == NULL)
            return NULL;
        if (node->parent == parent && node_is_named(node, name, hash))
            return node;
    }
}

static void
table_put(Node **table, size_t capacity, Node *node)
{
    size_t mask = capacity - 1;
    size_t at = table_slot(node->parent, node->hash, mask);
    while (table[at] != NULL)
        at = (at + 1) & mask;
    table[at] = node;
}

static int
strand_index(Strand *strand, Node *node)
{
    if ((strand->table_used + 1) * 2 > strand->table_capacity) {
        size_t capacity = strand->table_capacity ? strand->table_capacity * 2 : 32;
        Node **table = calloc(capacity, sizeof *table);
        if (table == NULL)
            return -1;
        for (size_t i = 0; i < strand->table_capacity; i++)
            if (strand->table[i] != NULL)
                table_put(table, capacity, strand->table[i]);
        free(strand->table);
        strand->table = table;
        strand->table_capacity = capacity;
    }
    table_put(strand->table, strand->table_capacity, node);
    strand->table_used++;
    return 0;
}

/* Add a finished strand's node to its twin in the strand kept; returns how many nodes that freed. */
static uint64_t
node_absorb(Strand *strand, Node *node, Node *twin)
{
    if (twin->calls) {
        if (node->calls == 0 || twin->min_ns < node->min_ns)
            node->min_ns = twin->min_ns;
        if (twin->max_ns > node->max_ns)
            node->max_ns = twin->max_ns;
    }
    node->calls += twin->calls;
    node->open_calls += twin->open_calls;
    node->total_ns += twin->total_ns;
    node->suspended_ns += twin->suspended_ns;
    counters_add(&node->allocated, &twin->allocated);
    node_raise_peak(node, twin->peak_bytes);
    for (uint32_t i = 0; i < twin->histogram.capacity; i++)
        if (twin->histogram.keys[i])
            histogram_add(&node->histogram, twin->histogram.keys[i] - 1u, twin->histogram.counts[i]);
    uint64_t freed = 1;
    for (Node *child = twin->first_child; child != NULL;) {
        Node *next = child->next_sibling;
        Node *same = child->is_other ? node->other
                                     : strand_find(strand, node, child->name, child->hash);
        if (same != NULL) {
            freed += node_absorb(strand, same, child);
        }
        else {
            node_append_child(node, child);
            if (!child->is_other)
                strand_index(strand, child);
            /* Its descendants keep their parent, but must be found in this strand's table. */
            for (Node *each = child->first_child; each != NULL;) {
                if (!each->is_other)
                    strand_index(strand, each);
                if (each->first_child != NULL) {
                    each = each->first_child;
                    continue;
                }
                while (each != child && each->next_sibling == NULL)
                    each = each->parent;
                each = each == child ? NULL : each->next_sibling;
            }
        }
        child = next;
    }
    node_free(twin);
    return freed;
}

#endif
