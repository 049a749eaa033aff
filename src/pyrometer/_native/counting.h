/* Switching the counting of allocations on and off, from Python. */
#ifndef PYROMETER_COUNTING_H
#define PYROMETER_COUNTING_H

#include "recorder.h"

PyDoc_STRVAR(count_allocations_doc,
"count_allocations()\n--\n\nCount what torch allocates for CPU tensors from now on; None, or why it cannot be counted.\n\n"
"To be called once torch is loaded. Nests: it takes as many stops to end it.");

static PyObject *
count_allocations(PyObject *module, PyObject *nothing)
{
    const char *reason = allocations_counted > 0 ? NULL : begin_counting();
    if (reason != NULL)
        return PyUnicode_FromString(reason);
    allocations_counted++;
    for (Recorder *recorder = alive_recorders; recorder != NULL; recorder = recorder->next_alive)
        recorder->has_allocations |= recorder->enabled;
    Py_RETURN_NONE;
}

PyDoc_STRVAR(stop_counting_allocations_doc,
"stop_counting_allocations()\n--\n\nUndo one count_allocations(); after the last, torch is as it was.");

static PyObject *
stop_counting_allocations(PyObject *module, PyObject *nothing)
{
    if (allocations_counted > 0 && --allocations_counted == 0)
        restore_slots();
    Py_RETURN_NONE;
}

PyDoc_STRVAR(allocation_totals_doc,
"allocation_totals()\n--\n\nBytes and calls the calling thread has allocated while counted; None when not counting.");

static PyObject *
allocation_totals(PyObject *module, PyObject *nothing)
{
    if (allocations_counted == 0)
        Py_RETURN_NONE;
    return Py_BuildValue("(KK)", (unsigned long long)thread_allocations.bytes,
                         (unsigned long long)thread_allocations.calls);
}

#endif
