/* Strands: which one the calling thread records on, and the places in its tree. */
#ifndef PYROMETER_STRANDS_H
#define PYROMETER_STRANDS_H

#include "recorder.h"

/* Allocations. */

/* Charge what the thread has allocated since it was last looked at to the scope now open. Called by
 * the strand's own thread before anything is opened, closed, suspended or resumed: so what a node
 * and those below it were charged is what was allocated while it was open. */
static inline void
strand_charge(Strand *strand)
{
    uint64_t events = counters_events(&thread_memory.counters), counted = counters_events(&strand->counted);
    if (LIKELY(events == counted))
        return;
    /* A strand that is taken over by another thread of the same id begins with that one's counters. */
    if (events > counted) {
        Py_ssize_t top = strand->depth;
        while (strand->frames[top].ghost)
            top--;
        Frame *frame = &strand->frames[top];
        counters_charge(&frame->node->allocated, &strand->counted);
        int64_t highest_bytes = LIKELY(strand->mark >= 0) ? take_highest(strand->mark) : 0;
        if (highest_bytes > frame->highest_bytes)
            frame->highest_bytes = highest_bytes;
    }
    strand->counted = thread_memory.counters;
}

/* The calling thread begins to record here. */
static inline void
strand_begin_counting(Strand *strand)
{
    strand->counted = thread_memory.counters;
    if (strand->mark >= 0)
        take_highest(strand->mark);
}

/* The counters of another thread cannot be read: what it allocated since its last scope is not seen. */
static inline void
strand_charge_if_own(Strand *strand)
{
    if (strand->thread_id == PyThread_get_thread_ident())
        strand_charge(strand);
}

/* Frames. */

static inline void
frame_begin_slice(Frame *frame, uint64_t now_ns)
{
    frame->slice_start_ns = now_ns;
    if (UNLIKELY(frame->node->shared != NULL && !frame->ghost))
        shared_enter(frame->node->shared, now_ns);
}

static inline void
frame_end_slice(Frame *frame, uint64_t now_ns)
{
    if (UNLIKELY(frame->ghost))
        return;
    uint64_t slice_ns = LIKELY(now_ns > frame->slice_start_ns) ? now_ns - frame->slice_start_ns : 0;
    frame->active_ns += slice_ns;
    frame->node->total_ns += slice_ns;
    if (UNLIKELY(frame->node->shared != NULL))
        shared_leave(frame->node->shared, now_ns);
}

/* What a call held at most goes to its node, and is in what the call around it held. */
static inline void
frame_end_memory(Frame *frame)
{
    if (UNLIKELY(frame->ghost))
        return;
    node_raise_peak(frame->node, frame->highest_bytes - frame->begin_bytes);
    if (frame[-1].highest_bytes < frame->highest_bytes)
        frame[-1].highest_bytes = frame->highest_bytes;
}

/* A new frame on top, or NULL without memory. */
static inline Frame *
strand_push(Strand *strand, Node *node, PyObject *owner)
{
    if (UNLIKELY(strand->depth + 1 >= strand->capacity)) {
        Py_ssize_t capacity = strand->capacity * 2;
        Frame *frames = realloc(strand->frames, (size_t)capacity * sizeof *frames);
        if (frames == NULL)
            return NULL;
        strand->frames = frames;
        strand->capacity = capacity;
    }
    strand_charge(strand);
    Frame *frame = &strand->frames[++strand->depth];
    frame->node = node;
    frame->owner = owner;
    frame->begin_bytes = frame->highest_bytes = strand->counted.kept_bytes;
    frame->active_ns = 0;
    frame->absorbed = 0;
    frame->passed_for = NULL;
    frame->ghost = 0;
    frame->dying = 0;
    if (UNLIKELY(owner != NULL)) {
        Py_INCREF(owner);
        strand->owned++;
        owned_frames++;
    }
    return frame;
}

/* What the frame has been at since its slice began, if single calls are asked for. */
static inline void
strand_log(const Strand *strand, const Frame *frame, uint64_t now_ns)
{
    CallLog *log = LIKELY(strand->recorder != NULL) ? strand->recorder->log : NULL;
    if (UNLIKELY(log != NULL && !frame->ghost))
        call_log_add(log, frame->node->name, strand->thread_id, frame - strand->frames,
                     frame->slice_start_ns, now_ns);
}

/* Ends the innermost open call: counted, or as one that was left open. Returns the frame's
 * reference to its owner, if it has one, for the caller to give back. */
static inline PyObject *
strand_pop(Strand *strand, uint64_t now_ns, int completed)
{
    Frame *frame = &strand->frames[strand->depth--];
    strand_log(strand, frame, now_ns);
    frame_end_slice(frame, now_ns);
    frame_end_memory(frame);
    if (LIKELY(completed))
        node_record_call(frame->node, frame->active_ns);
    else
        frame->node->open_calls++;
    if (UNLIKELY(frame->ghost))
        frame->node->references--;
    PyObject *owner = frame->owner;
    if (UNLIKELY(owner != NULL)) {
        strand->owned--;
        owned_frames--;
        frame->owner = NULL;
    }
    return owner;
}

static inline void
strand_close_top(Strand *strand, uint64_t now_ns, int completed)
{
    strand_charge(strand);
    Py_XDECREF(strand_pop(strand, now_ns, completed));
}

/* Owners to let go of once an update is complete: the last reference runs the program's code. */
typedef struct {
    PyObject **owners;
    size_t count, capacity;
} Released;

static void
release_later(Released *released, PyObject *owner)
{
    if (owner == NULL)
        return;
    if (released->count == released->capacity) {
        size_t capacity = released->capacity ? released->capacity * 2 : 16;
        PyObject **owners = realloc(released->owners, capacity * sizeof *owners);
        if (owners == NULL)
            return; /* leaked rather than run in the middle */
        released->owners = owners;
        released->capacity = capacity;
    }
    released->owners[released->count++] = owner;
}

static void
release_now(Released *released)
{
    for (size_t i = 0; i < released->count; i++)
        Py_DECREF(released->owners[i]);
    free(released->owners);
}

/* Count everything open as left open at now_ns. */
static void
strand_close_all(Strand *strand, uint64_t now_ns, Released *released)
{
    strand_charge_if_own(strand);
    while (strand->depth > 0)
        release_later(released, strand_pop(strand, now_ns, 0));
    strand->frames[0].absorbed = 0;
}

/* Strands. */

static Strand *
strand_new(Recorder *recorder, unsigned long thread_id, PyObject *thread_name, Node *parent)
{
    Strand *strand = calloc(1, sizeof *strand);
    Frame *frames = calloc(8, sizeof *frames);
    Node *root = node_new(other_name, 0, NULL, NULL);
    if (strand == NULL || frames == NULL || root == NULL) {
        free(strand);
        free(frames);
        if (root != NULL)
            node_free(root);
        return NULL;
    }
    if (parent != NULL) {
        root->shared = node_shared_for_strands(parent);
        parent->references++;
    }
    else if (!recorder->has_home || thread_id != recorder->home_thread_id) {
        /* Threads that hang nowhere share the ground, but for the one that switched it on. */
        root->shared = recorder->ground;
    }
    frames[0].node = root;
    strand->recorder = recorder;
    strand->mark = recorder->mark;
    strand->thread_id = thread_id;
    strand->thread_name = Py_NewRef(thread_name);
    strand->parent = parent;
    strand->root = root;
    strand->frames = frames;
    strand->capacity = 8;
    strand_begin_counting(strand);
    strand->threads = 1;
    return strand;
}

static void
strand_drop_frames(Strand *strand, Released *released)
{
    while (strand->depth > 0) {
        Frame *frame = &strand->frames[strand->depth--];
        release_later(released, frame->owner);
        frame->owner = NULL;
    }
    owned_frames -= strand->owned;
    strand->owned = 0;
    strand->frames[0].absorbed = 0;
}

/* Frees the strand with its nodes. The parent's node, which may be gone already, is not touched. */
static void
strand_free(Strand *strand, Released *released)
{
    strand_drop_frames(strand, released);
    node_free_tree(strand->root);
    Py_CLEAR(strand->thread_name);
    free(strand->table);
    free(strand->frames);
    free(strand);
}

/* Forget what was recorded but stay valid for the thread that holds this strand. */
static void
strand_empty(Strand *strand, Released *released)
{
    strand_drop_frames(strand, released);
    Node *root = strand->root;
    for (Node *child = root->first_child; child != NULL;) {
        Node *next = child->next_sibling;
        node_free_tree(child);
        child = next;
    }
    root->first_child = root->last_child = root->other = NULL;
    root->shared = NULL;
    free(strand->table);
    strand->table = NULL;
    strand->table_capacity = strand->table_used = 0;
    strand->entries = 0;
    strand->parent = NULL;
}

static void
recorder_fold_finished_strands(Recorder *recorder)
{
    Py_ssize_t kept = 0;
    Released none = {0}; /* a finished strand has no frames */
    for (Py_ssize_t i = 0; i < recorder->strand_count; i++) {
        Strand *strand = recorder->strands[i];
        Strand *target = NULL;
        if (strand->ended && !node_is_referenced(strand->root)) {
            for (Py_ssize_t k = 0; k < kept && target == NULL; k++) {
                Strand *other = recorder->strands[k];
                if (other->ended && other->parent == strand->parent)
                    target = other;
            }
        }
        if (target == NULL) {
            recorder->strands[kept++] = strand;
            continue;
        }
        target->threads += strand->threads;
        recorder->entries += strand->entries;
        if (strand->parent != NULL)
            strand->parent->references--;
        recorder->node_count -= node_absorb(target, target->root, strand->root) - 1;
        strand->root = node_new(other_name, 0, NULL, NULL); /* absorbed; strand_free wants one */
        if (strand->root != NULL)
            strand_free(strand, &none);
    }
    recorder->strand_count = kept;
    recorder->generation++;
}

static void
thread_ended(PyObject *capsule)
{
    unsigned long thread_id = (unsigned long)(uintptr_t)PyCapsule_GetContext(capsule);
    Released released = {0};
    for (Recorder *recorder = alive_recorders; recorder != NULL; recorder = recorder->next_alive) {
        for (Py_ssize_t i = 0; i < recorder->strand_count; i++) {
            Strand *strand = recorder->strands[i];
            if (strand->thread_id == thread_id && !strand->ended) {
                strand->ended = 1;
                strand->ended_ns = recorder_now_ns(recorder);
                strand_close_all(strand, strand->ended_ns, &released);
            }
        }
    }
    if (thread_id == PyThread_get_thread_ident()) {
        current_strand = NULL;
        ended_state_id = PyThreadState_GetID(PyThreadState_Get());
    }
    release_now(&released);
}

/* Leave word to be told when the thread ends: an object that dies with the thread's state. */
static void
watch_thread_end(unsigned long thread_id)
{
    PyObject *storage = PyThreadState_GetDict(); /* borrowed */
    if (storage == NULL)
        return;
    if (PyDict_GetItemString(storage, "pyrometer.thread_end") != NULL)
        return;
    PyObject *capsule = PyCapsule_New(&alive_recorders, "pyrometer.thread_end", thread_ended);
    if (capsule != NULL) {
        PyCapsule_SetContext(capsule, (void *)(uintptr_t)thread_id);
        PyDict_SetItemString(storage, "pyrometer.thread_end", capsule);
        Py_DECREF(capsule);
    }
}

/* The strand the calling thread records on, or NULL if it has none yet. */
static Strand *
recorder_find_strand(Recorder *recorder)
{
    Strand *strand = current_strand;
    if (LIKELY(strand != NULL && strand->recorder == recorder))
        return strand;
    unsigned long thread_id = PyThread_get_thread_ident();
    /* The newest is the innermost: enter_position appends, leave_position ends. */
    Strand *found = NULL;
    for (Py_ssize_t i = 0; i < recorder->strand_count; i++) {
        strand = recorder->strands[i];
        if (strand->thread_id == thread_id && !strand->ended &&
            strand != found && (found == NULL || strand->outer == found)) {
            found = strand;
            i = -1; /* a reused strand stands before the one it is in: look again from the start */
        }
    }
    if (found != NULL)
        current_strand = found;
    return found;
}

/* The node at a position of this record; NULL for one of before a reset, or of another recorder. */
static Node *
position_node(Recorder *recorder, PyObject *object)
{
    if (!Py_IS_TYPE(object, &Position_Type))
        return NULL;
    Position *position = (Position *)object;
    return position->recorder == recorder && position->epoch == recorder->epoch ? position->node : NULL;
}

static Strand *
recorder_add_strand(Recorder *recorder, unsigned long thread_id, PyObject *thread_name,
                    Node *parent)
{
    for (Py_ssize_t i = 0; i < recorder->strand_count; i++) {
        Strand *strand = recorder->strands[i];
        if (strand->ended && strand->thread_id == thread_id &&
            PyUnicode_Compare(strand->thread_name, thread_name) == 0 &&
            strand->parent == parent) {
            strand->ended = 0;
            strand->outer = NULL;
            strand_begin_counting(strand);
            return strand;
        }
    }
    if (recorder->strand_count >= STRANDS_KEPT)
        recorder_fold_finished_strands(recorder);
    if (recorder->strand_count >= MAX_STRANDS) {
        recorder->strands_lost++;
        return NULL;
    }
    if (recorder->strand_count == recorder->strand_capacity) {
        Py_ssize_t capacity = recorder->strand_capacity ? recorder->strand_capacity * 2 : 8;
        Strand **strands = realloc(recorder->strands, (size_t)capacity * sizeof *strands);
        if (strands == NULL)
            return NULL;
        recorder->strands = strands;
        recorder->strand_capacity = capacity;
    }
    Strand *strand = strand_new(recorder, thread_id, thread_name, parent);
    if (strand != NULL)
        recorder->strands[recorder->strand_count++] = strand;
    return strand;
}

/* A strand for the calling thread under position, or where the thread was started. Swallows
 * errors: recording never raises into the program. */
static Strand *
recorder_make_strand(Recorder *recorder, PyObject *position)
{
    if (ended_state_id != 0 && ended_state_id == PyThreadState_GetID(PyThreadState_Get())) {
        recorder->strands_lost++;
        return NULL;
    }
    SavedError error = save_error();
    Strand *strand = NULL;
    PyObject *description = PyObject_CallNoArgs(describe_current_thread);
    PyObject *thread_name, *started_at;
    unsigned long thread_id;
    if (description != NULL &&
        PyArg_ParseTuple(description, "kUO", &thread_id, &thread_name, &started_at)) {
        Node *parent = position_node(recorder, position == NULL ? started_at : position);
        strand = recorder_add_strand(recorder, thread_id, thread_name, parent);
        watch_thread_end(thread_id);
    }
    if (PyErr_Occurred()) {
        recorder->strands_lost++;
        swallow_error();
    }
    Py_XDECREF(description);
    restore_error(error);
    return strand;
}

static inline Strand *
recorder_strand(Recorder *recorder)
{
    Strand *strand = current_strand;
    if (LIKELY(strand != NULL && strand->recorder == recorder))
        return strand;
    strand = recorder_find_strand(recorder);
    if (strand == NULL) {
        strand = recorder_make_strand(recorder, NULL);
        if (strand != NULL)
            current_strand = strand;
    }
    return strand;
}

/* Places in the tree. */

static Node *
recorder_add_node(Recorder *recorder, Strand *strand, Node *parent, PyObject *name, Py_hash_t hash,
                  int is_other)
{
    Shared *shared = parent->shared == NULL ? NULL : shared_child(parent->shared, name);
    Node *node = node_new(name, hash, parent, shared);
    if (node == NULL)
        return NULL;
    node->is_other = is_other;
    if (!is_other && strand_index(strand, node) < 0) {
        node_free(node);
        return NULL;
    }
    node_append_child(parent, node);
    recorder->node_count++;
    return node;
}

/* The node for a scope of this name, made if there is room; else "(other)", else NULL. */
static Node *
recorder_place(Recorder *recorder, Strand *strand, Node *parent, PyObject *name, Py_hash_t hash)
{
    Node *node = strand_find(strand, parent, name, hash);
    if (node != NULL)
        return node;
    int too_deep = strand->depth >= recorder->max_depth;
    /* One node in twenty is kept back for the "(other)" of places that overflow. */
    if (!too_deep && !parent->is_other &&
        recorder->node_count < recorder->max_nodes - recorder->max_nodes / 20)
        return recorder_add_node(recorder, strand, parent, name, hash, 0);
    if (too_deep)
        recorder->depth_lost++;
    else
        recorder->places_lost++;
    if (parent->is_other)
        return NULL;
    if (parent->other == NULL && recorder->node_count < recorder->max_nodes)
        return recorder_add_node(recorder, strand, parent, other_name, 0, 1);
    return parent->other;
}

#endif
