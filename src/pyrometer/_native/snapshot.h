/* Snapshot: everything recorded so far, as plain Python values. */
#ifndef PYROMETER_SNAPSHOT_H
#define PYROMETER_SNAPSHOT_H

#include "suspended.h"

/* What holds for a whole snapshot. */
typedef struct {
    uint64_t now_ns;
    int counted; /* the kinds of allocations that were */
    int has_peaks;
} Survey;

static int
compare_buckets(const void *one, const void *other)
{
    const uint64_t *a = one, *b = other;
    return a[0] < b[0] ? -1 : a[0] > b[0];
}

static PyObject *
histogram_as_tuple(const Histogram *histogram)
{
    uint64_t *pairs = malloc((histogram->used + 1) * 2 * sizeof *pairs);
    PyObject *tuple = PyTuple_New(histogram->used);
    if (pairs == NULL || tuple == NULL) {
        free(pairs);
        Py_XDECREF(tuple);
        return PyErr_NoMemory();
    }
    size_t length = 0;
    for (uint32_t i = 0; i < histogram->capacity; i++) {
        if (histogram->keys[i]) {
            pairs[2 * length] = histogram->keys[i] - 1u;
            pairs[2 * length + 1] = histogram->counts[i];
            length++;
        }
    }
    qsort(pairs, length, 2 * sizeof *pairs, compare_buckets);
    for (size_t i = 0; i < length; i++) {
        PyObject *pair = Py_BuildValue("(KK)", (unsigned long long)pairs[2 * i],
                                       (unsigned long long)pairs[2 * i + 1]);
        if (pair == NULL) {
            Py_CLEAR(tuple);
            break;
        }
        PyTuple_SET_ITEM(tuple, (Py_ssize_t)i, pair);
    }
    free(pairs);
    return tuple;
}

/* Puts the time so far of everything open next to the nodes it belongs to; clears it afterwards. */
static void
note_open(Recorder *recorder, uint64_t now_ns, int note)
{
    for (Py_ssize_t i = 0; i < recorder->strand_count; i++) {
        Strand *strand = recorder->strands[i];
        uint64_t end_ns = strand->ended ? strand->ended_ns : now_ns;
        for (Py_ssize_t k = strand->depth; k > 0; k--) {
            frame_end_memory(&strand->frames[k]); /* so far */
            Frame *frame = &strand->frames[k];
            Node *node = frame->node;
            int counts = !frame->ghost && end_ns > frame->slice_start_ns;
            uint64_t slice_ns = counts ? end_ns - frame->slice_start_ns : 0;
            node->open_now = note ? node->open_now + 1 : 0;
            node->open_total_ns = note ? node->open_total_ns + slice_ns : 0;
        }
    }
    for (size_t i = 0; i < recorder->segment_capacity; i++) {
        for (Segment *segment = recorder->segments[i]; segment != NULL; segment = segment->next) {
            for (Py_ssize_t k = 0; k < segment->length; k++) {
                Frame *frame = &segment->frames[k];
                Node *node = frame->node;
                uint64_t gap_ns = now_ns > frame->suspended_at_ns ? now_ns - frame->suspended_at_ns : 0;
                node->open_now = note ? node->open_now + 1 : 0;
                node->open_suspended_ns = note ? node->open_suspended_ns + gap_ns : 0;
            }
        }
    }
}

/* What was allocated in each node with all below it. */
static void
sum_allocations(Node *node)
{
    node->allocated_inside = node->allocated;
    for (Node *child = node->first_child; child != NULL; child = child->next_sibling) {
        sum_allocations(child);
        counters_add(&node->allocated_inside, &child->allocated_inside);
    }
}

static int
flatten(Node *node, Py_ssize_t parent, Py_ssize_t strand, const Survey *survey, PyObject *nodes)
{
    node->snapshot_strand = strand;
    node->snapshot_index = PyList_GET_SIZE(nodes);
    PyObject *buckets = histogram_as_tuple(&node->histogram);
    if (buckets == NULL)
        return -1;
    const Counters *inside = &node->allocated_inside;
    int tensors = survey->counted & COUNTS_TENSORS, heap = survey->counted & COUNTS_HEAP,
        python = survey->counted & COUNTS_PYTHON;
    PyObject *raw = Py_BuildValue(
        "(nOKKKLLKLNLLLLLLLLL)", parent, node->name, (unsigned long long)node->calls,
        (unsigned long long)(node->open_calls + node->open_now),
        (unsigned long long)(node->total_ns + node->open_total_ns),
        node->calls ? (long long)node->min_ns : -1LL, node->calls ? (long long)node->max_ns : -1LL,
        (unsigned long long)(node->suspended_ns + node->open_suspended_ns),
        node->shared == NULL ? -1LL : (long long)shared_wall_at(node->shared, survey->now_ns), buckets,
        tensors ? (long long)inside->tensors.bytes : -1LL, tensors ? (long long)inside->tensors.calls : -1LL,
        heap ? (long long)inside->heap_bytes : -1LL,
        heap ? (long long)counters_heap_calls(inside) : -1LL,
        heap ? (long long)inside->freed_bytes : -1LL, heap ? (long long)inside->kept_bytes : 0LL,
        python ? (long long)inside->python.bytes : -1LL, python ? (long long)inside->python.calls : -1LL,
        heap && survey->has_peaks ? (long long)node->peak_bytes : -1LL);
    if (raw == NULL)
        return -1;
    int failed = PyList_Append(nodes, raw);
    Py_DECREF(raw);
    Py_ssize_t index = node->snapshot_index;
    for (Node *child = node->first_child; child != NULL && !failed; child = child->next_sibling)
        failed = flatten(child, index, strand, survey, nodes);
    return failed;
}

static PyObject *
strand_as_tuple(Strand *strand, Py_ssize_t index, const Survey *survey)
{
    PyObject *nodes = PyList_New(0);
    if (nodes == NULL)
        return NULL;
    for (Node *child = strand->root->first_child; child != NULL; child = child->next_sibling) {
        if (flatten(child, -1, index, survey, nodes) < 0) {
            Py_DECREF(nodes);
            return NULL;
        }
    }
    PyObject *parent;
    if (strand->parent == NULL) {
        parent = Py_NewRef(Py_None);
    }
    else {
        parent = Py_BuildValue("(nn)", strand->parent->snapshot_strand,
                               strand->parent->snapshot_index);
    }
    if (parent == NULL) {
        Py_DECREF(nodes);
        return NULL;
    }
    return Py_BuildValue("(kONKN)", strand->thread_id, strand->thread_name, parent,
                         (unsigned long long)strand->threads, nodes);
}

static PyObject *
recorder_strands_as_list(Recorder *self, const Survey *survey)
{
    PyObject *strands = PyList_New(0);
    for (Py_ssize_t i = 0; i < self->strand_count && strands != NULL; i++) {
        if (self->strands[i]->root->first_child == NULL)
            continue;
        PyObject *raw = strand_as_tuple(self->strands[i], PyList_GET_SIZE(strands), survey);
        if (raw == NULL || PyList_Append(strands, raw) < 0)
            Py_CLEAR(strands);
        Py_XDECREF(raw);
    }
    return strands;
}

static PyObject *
recorder_snapshot(Recorder *self, PyObject *nothing)
{
    uint64_t now_ns = recorder_now_ns(self);
    /* No collection may run Python code between noting what is open and reading it. */
    int collecting = PyGC_Disable();
    for (Py_ssize_t i = 0; i < self->strand_count; i++) {
        strand_charge_if_own(self->strands[i]);
        sum_allocations(self->strands[i]->root);
    }
    note_open(self, now_ns, 1);
    Survey survey = {.now_ns = now_ns, .counted = self->counted_kinds, .has_peaks = !self->lacks_peaks};
    PyObject *strands = recorder_strands_as_list(self, &survey);
    note_open(self, now_ns, 0);
    if (collecting)
        PyGC_Enable();
    if (strands == NULL)
        return NULL;
    uint64_t entries = self->entries;
    for (Py_ssize_t i = 0; i < self->strand_count; i++)
        entries += self->strands[i]->entries;
    uint64_t profiled_ns = self->profiled_ns + (self->enabled ? now_ns - self->started_ns : 0);
    return Py_BuildValue(
        "{sKsKsNs{sKsKsKsKsKsK}}", "profiled_ns", (unsigned long long)profiled_ns, "entries",
        (unsigned long long)entries, "strands", strands, "losses", "places",
        (unsigned long long)self->places_lost, "depth", (unsigned long long)self->depth_lost, "threads",
        (unsigned long long)self->strands_lost, "out_of_order", (unsigned long long)self->out_of_order,
        "unmatched_exits", (unsigned long long)self->unmatched_exits, "unseen_suspensions",
        (unsigned long long)self->unseen_suspensions);
}

#endif
