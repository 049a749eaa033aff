/* What a recorder is made of, and its clock. twin.py is the specification of all of it. */
#ifndef PYROMETER_RECORDER_H
#define PYROMETER_RECORDER_H

#include "call_log.h"
#include "clock.h"
#include "tree.h"

#include "owner.h"

#define STRANDS_KEPT 64
#define MAX_STRANDS 4096
#define MAX_NAME_LENGTH 1000

/* The frames a suspended generator or coroutine took along. */
typedef struct Segment {
    PyObject *owner_address; /* compared, never followed: weak tells whether it still lives */
    PyObject *weak;
    struct Segment *next;
    Py_ssize_t length;
    Frame frames[];
} Segment;

typedef struct Recorder {
    PyObject_HEAD
    int enabled;
    uint64_t starts;
    uint64_t run; /* changes whenever what is open is left: a call open since before is not left again */
    PyObject *clock; /* a Python callable, or NULL for the machine's clock */
    uint64_t max_nodes, node_count;
    Py_ssize_t max_depth;
    uint64_t generation; /* changes when nodes may have been freed: scopes forget their place */
    uint64_t epoch;      /* changes at reset: positions of before are void */
    uint64_t started_ns, profiled_ns;
    Strand **strands;
    Py_ssize_t strand_count, strand_capacity;
    Segment **segments; /* suspended frames by owner: a chained hash table */
    size_t segment_capacity, segment_count;
    uint64_t entries; /* of strands folded away */
    uint64_t places_lost, depth_lost, strands_lost;
    uint64_t out_of_order, unmatched_exits, unseen_suspensions;
    Shared *ground;          /* where threads that hang nowhere share their wall time */
    unsigned long home_thread_id; /* the thread that switched the recorder on first */
    int has_home;
    int suspends; /* its scopes may be inside generators and coroutines that stop and go on */
    int counted_kinds; /* of allocations, at some time while it was on */
    int mark;          /* its own in each thread's highest[] while it is on; -1: none */
    int lacks_peaks;   /* at some time while it was on too many others were */
    CallLog *log; /* single calls, while they are asked for; or NULL */
    struct Recorder *next_started, *next_alive;
} Recorder;

typedef struct {
    PyObject_HEAD
    Recorder *recorder;
    Node *node;
    uint64_t epoch;
} Position;

typedef struct Scope {
    PyObject_HEAD
    Recorder *recorder;
    PyObject *name;
    Py_hash_t hash;
    Node *cached_parent, *cached_node;
    uint64_t cached_generation;
} Scope;

static PyTypeObject Position_Type;
static Recorder *started_recorders;
static Recorder *alive_recorders;
static Py_ssize_t owned_frames; /* of all strands: while there is none, generators may come and go unseen */
static PyObject *other_name;
static PyObject *ellipsis;
static PyObject *describe_current_thread; /* from threads.py */

THREAD_LOCAL Strand *current_strand;  /* the strand the thread last recorded on */
THREAD_LOCAL uint64_t ended_state_id; /* the thread state whose end was noted: it records no more */

static uint64_t
python_clock_ns(Recorder *recorder)
{
    SavedError error = save_error();
    uint64_t now_ns = 0;
    PyObject *now = PyObject_CallNoArgs(recorder->clock);
    if (now != NULL) {
        now_ns = PyLong_AsUnsignedLongLong(now);
        Py_DECREF(now);
    }
    if (PyErr_Occurred())
        PyErr_WriteUnraisable(recorder->clock);
    restore_error(error);
    return now_ns;
}

static inline uint64_t
recorder_now_ns(Recorder *recorder)
{
    return LIKELY(recorder->clock == NULL) ? clock_now_ns() : python_clock_ns(recorder);
}

#endif
