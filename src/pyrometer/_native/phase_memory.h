/* What was allocated and freed in each phase, and the most that was live in it. */
#ifndef PYROMETER_PHASE_MEMORY_H
#define PYROMETER_PHASE_MEMORY_H

#include <Python.h>

#include "allocations.h"

typedef struct {
    Counters counters;
    int64_t peak_bytes;
} PhaseMemory;

/* The calling thread's, since the counters stood at `since`. The peak is the process's: where several
 * threads are in phases at a time, the one that asks first has it. */
static void
phase_memory_charge(PhaseMemory *memory, const Counters *since)
{
    counters_charge(&memory->counters, since);
    int64_t peak_bytes = take_phase_peak();
    if (peak_bytes > memory->peak_bytes)
        memory->peak_bytes = peak_bytes;
}

static void
phase_memory_add(PhaseMemory *sum, const PhaseMemory *more, int count)
{
    for (int i = 0; i < count; i++) {
        counters_add(&sum[i].counters, &more[i].counters);
        if (more[i].peak_bytes > sum[i].peak_bytes)
            sum[i].peak_bytes = more[i].peak_bytes;
    }
}

/* By phase: tensors, heap, freed, kept, peak, small Python objects. */
static PyObject *
phase_memory_as_list(const PhaseMemory *memory, int count)
{
    PyObject *rows = PyList_New(count);
    for (int i = 0; i < count && rows != NULL; i++) {
        const Counters *counters = &memory[i].counters;
        PyObject *row = Py_BuildValue(
            "(KKKKKLLKK)", (unsigned long long)counters->tensors.bytes, (unsigned long long)counters->tensors.calls,
            (unsigned long long)counters->heap_bytes, (unsigned long long)counters_heap_calls(counters),
            (unsigned long long)counters->freed_bytes, (long long)counters->kept_bytes,
            (long long)memory[i].peak_bytes, (unsigned long long)counters->python.bytes,
            (unsigned long long)counters->python.calls);
        if (row == NULL)
            Py_CLEAR(rows);
        else
            PyList_SET_ITEM(rows, i, row);
    }
    return rows;
}

#endif
