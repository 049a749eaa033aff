/* Frames of suspended generators and coroutines: taken off their strand, and put back. */
#ifndef PYROMETER_SUSPENDED_H
#define PYROMETER_SUSPENDED_H

#include "strands.h"

static size_t
segment_slot(PyObject *owner, size_t capacity)
{
    return (size_t)((((uintptr_t)owner >> 4) * 0x9E3779B97F4A7C15u) >> 32) & (capacity - 1);
}

static Segment **
segment_link(Recorder *recorder, PyObject *owner)
{
    if (recorder->segment_capacity == 0)
        return NULL;
    Segment **link = &recorder->segments[segment_slot(owner, recorder->segment_capacity)];
    while (*link != NULL && (*link)->owner_address != owner)
        link = &(*link)->next;
    return *link == NULL ? NULL : link;
}

static int
owner_is_alive(const Segment *segment)
{
#if PY_VERSION_HEX >= 0x030D0000
    PyObject *owner = NULL;
    PyWeakref_GetRef(segment->weak, &owner);
    Py_XDECREF(owner);
    return owner != NULL;
#else
    return PyWeakref_GET_OBJECT(segment->weak) != Py_None;
#endif
}

/* Count frames that will never return as left open. */
static void
segment_give_up(Segment *segment, uint64_t now_ns)
{
    for (Py_ssize_t i = 0; i < segment->length; i++) {
        Frame *frame = &segment->frames[i];
        frame->node->suspended_ns +=
            now_ns > frame->suspended_at_ns ? now_ns - frame->suspended_at_ns : 0;
        frame->node->open_calls++;
        frame->node->references--;
    }
    Py_XDECREF(segment->weak);
    free(segment);
}

/* Owners that were dropped without closing their scopes. */
static void
recorder_give_up_dead_owners(Recorder *recorder)
{
    uint64_t now_ns = recorder_now_ns(recorder);
    for (size_t i = 0; i < recorder->segment_capacity; i++) {
        for (Segment **link = &recorder->segments[i]; *link != NULL;) {
            Segment *segment = *link;
            if (owner_is_alive(segment)) {
                link = &segment->next;
                continue;
            }
            *link = segment->next;
            recorder->segment_count--;
            segment_give_up(segment, now_ns);
        }
    }
}

static int
segments_grow(Recorder *recorder)
{
    recorder_give_up_dead_owners(recorder);
    if (recorder->segment_count * 2 < recorder->segment_capacity)
        return 0;
    size_t capacity = recorder->segment_capacity ? recorder->segment_capacity * 2 : 64;
    Segment **segments = calloc(capacity, sizeof *segments);
    if (segments == NULL)
        return -1;
    for (size_t i = 0; i < recorder->segment_capacity; i++) {
        for (Segment *segment = recorder->segments[i]; segment != NULL;) {
            Segment *next = segment->next;
            Segment **head = &segments[segment_slot(segment->owner_address, capacity)];
            segment->next = *head;
            *head = segment;
            segment = next;
        }
    }
    free(recorder->segments);
    recorder->segments = segments;
    recorder->segment_capacity = capacity;
    return 0;
}

/* Take the frames from index up off the strand and keep them for their owner. */
static void
recorder_take_off(Recorder *recorder, Strand *strand, Py_ssize_t index, uint64_t now_ns)
{
    strand_charge(strand);
    PyObject *owner = strand->frames[index].owner;
    SavedError error = save_error();
    /* One that is being dropped has had its weak references cleared: a new one would outlive it. */
    int dying = strand->frames[index].dying;
    /* On 3.11 a collection may run in here, and with it scopes on this very strand. */
    int collecting = PyGC_Disable();
    PyObject *weak = dying ? NULL : PyWeakref_NewRef(owner, NULL);
    if (collecting)
        PyGC_Enable();
    Py_ssize_t length = strand->depth - index + 1;
    Segment *segment = malloc(sizeof *segment + (size_t)length * sizeof(Frame));
    if (segment == NULL || weak == NULL ||
        (recorder->segment_count >= recorder->segment_capacity && segments_grow(recorder) < 0)) {
        /* Without memory: close them here, as open calls. */
        PyErr_Clear();
        Py_XDECREF(weak);
        free(segment);
        recorder->unseen_suspensions += !dying;
        while (strand->depth >= index)
            strand_close_top(strand, now_ns, 0);
        restore_error(error);
        return;
    }
    segment->owner_address = owner;
    segment->weak = weak;
    segment->length = length;
    /* No reference while suspended: ours must not keep a generator alive. Given back last, because
     * the last reference to a generator runs its clean-up, which may come back in here. */
    PyObject *held[length];
    for (Py_ssize_t i = length - 1; i >= 0; i--) {
        Frame *frame = &strand->frames[index + i];
        strand_log(strand, frame, now_ns);
        frame_end_slice(frame, now_ns);
        frame_end_memory(frame);
        frame->begin_bytes = strand->counted.kept_bytes - frame->begin_bytes;
        frame->suspended_at_ns = now_ns;
        frame->node->references += !frame->ghost;
        held[i] = frame->owner;
        strand->owned -= frame->owner != NULL;
        owned_frames -= frame->owner != NULL;
        segment->frames[i] = *frame;
        segment->frames[i].owner = NULL;
    }
    strand->depth = index - 1;
    Segment **head = &recorder->segments[segment_slot(owner, recorder->segment_capacity)];
    segment->next = *head;
    *head = segment;
    recorder->segment_count++;
    for (Py_ssize_t i = 0; i < length; i++)
        Py_XDECREF(held[i]);
    restore_error(error);
}

/* The owner has just yielded: its frames, and all above them, leave the strand. */
static void
recorder_suspend(Recorder *recorder, PyObject *owner)
{
    Strand *strand = recorder_find_strand(recorder);
    if (strand == NULL || strand->owned == 0)
        return;
    for (Py_ssize_t i = 1; i <= strand->depth; i++) {
        if (strand->frames[i].owner == owner) {
            recorder_take_off(recorder, strand, i, recorder_now_ns(recorder));
            break;
        }
    }
}

/* The owner is about to run again: its frames return, under the scope now open.
 *
 * dying: it is running right now, so even a dead weak reference is its own: it is being dropped. */
static void
recorder_resume(Recorder *recorder, PyObject *owner, int dying)
{
    if (segment_link(recorder, owner) == NULL)
        return;
    /* Both may run Python code, and with it anything: so before the segment is taken out. */
    Strand *strand = recorder_strand(recorder);
    uint64_t now_ns = recorder_now_ns(recorder);
    Segment **link = segment_link(recorder, owner);
    if (link == NULL || !recorder->enabled)
        return;
    Segment *segment = *link;
    *link = segment->next;
    recorder->segment_count--;
    if (strand == NULL || !(dying || owner_is_alive(segment))) {
        /* Another generator at the address of one that is gone. */
        segment_give_up(segment, now_ns);
        return;
    }
    int dropped = !PyAsyncGen_CheckExact(owner) && !owner_is_alive(segment);
    for (Py_ssize_t i = 0; i < segment->length; i++) {
        Frame *kept = &segment->frames[i];
        Node *node = kept->node;
        Node *parent = strand->frames[strand->depth].node;
        node->references--;
        node->suspended_ns += now_ns > kept->suspended_at_ns ? now_ns - kept->suspended_at_ns : 0;
        /* Under the scope now open; where there is no room, its time stays with that scope. */
        int ghost = strand->frames[strand->depth].ghost;
        if (ghost || node->parent != parent) {
            Node *place =
                ghost ? NULL : recorder_place(recorder, strand, parent, node->name, node->hash);
            ghost = place == NULL;
            node = ghost ? node : place;
        }
        if (ghost)
            node->references++; /* it may stand in another strand, which must not be folded */
        Frame *frame = strand_push(strand, node, owner);
        if (frame == NULL)
            break;
        frame->ghost = ghost;
        frame->dying = dropped;
        frame->active_ns = kept->active_ns;
        frame->absorbed = kept->absorbed;
        frame->begin_bytes -= kept->begin_bytes;
        frame_begin_slice(frame, now_ns);
    }
    Py_DECREF(segment->weak);
    free(segment);
}

/* Put right what was not announced: an owner that stopped or came back unseen.
 *
 * leaving: a scope is being left, so the owner entered it before, and any older generator at the
 * same address was given up then. */
static void
recorder_settle(Recorder *recorder, Strand *strand, PyObject *owner, int leaving)
{
    for (Py_ssize_t i = strand->depth; i > 0 && strand->owned > 0; i--) {
        PyObject *on_strand = strand->frames[i].owner;
        if (on_strand != NULL && on_strand != owner && !generator_is_running(on_strand)) {
            recorder->unseen_suspensions++;
            recorder_take_off(recorder, strand, i, recorder_now_ns(recorder));
        }
    }
    if (owner != NULL && recorder->segment_count > 0)
        recorder_resume(recorder, owner, leaving || PyObject_GC_IsFinalized(owner));
}

#endif
