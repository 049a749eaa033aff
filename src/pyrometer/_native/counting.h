/* Switching the counting of allocations on and off, and what was counted, from Python. */
#ifndef PYROMETER_COUNTING_H
#define PYROMETER_COUNTING_H

#include "heap.h"
#include "python_memory.h"
#include "recorder.h"

static void
tell_recorders(void)
{
    for (Recorder *recorder = alive_recorders; recorder != NULL; recorder = recorder->next_alive)
        if (recorder->enabled)
            recorder->counted_kinds |= counted_kinds;
}

static PyObject *
reason_or_none(const char *reason)
{
    return reason == NULL ? Py_NewRef(Py_None) : PyUnicode_FromString(reason);
}

PyDoc_STRVAR(count_allocations_doc,
"count_allocations()\n--\n\nCount what is allocated from now on; None, or why it cannot be counted.\n\n"
"Nests: it takes as many stops to end it.");

static PyObject *
count_allocations(PyObject *module, PyObject *nothing)
{
    const char *reason = NULL;
    if (allocations_counted == 0)
        reason = begin_counting();
    else
        count_in_new_libraries();
    if (reason != NULL)
        return PyUnicode_FromString(reason);
    allocations_counted++;
    tell_recorders();
    Py_RETURN_NONE;
}

PyDoc_STRVAR(stop_counting_allocations_doc,
"stop_counting_allocations()\n--\n\nUndo one count_allocations(); after the last, all libraries are as they were.");

static PyObject *
stop_counting_allocations(PyObject *module, PyObject *nothing)
{
    if (allocations_counted > 0 && --allocations_counted == 0)
        end_counting();
    Py_RETURN_NONE;
}

PyDoc_STRVAR(count_in_libraries_doc,
"count_in_libraries()\n--\n\nCount in the libraries that were loaded since the last look too; whether there were any.");

static PyObject *
count_in_libraries(PyObject *module, PyObject *nothing)
{
    int found = count_in_new_libraries();
    if (found)
        tell_recorders();
    return PyBool_FromLong(found);
}

PyDoc_STRVAR(why_tensors_are_uncounted_doc,
"why_tensors_are_uncounted()\n--\n\nNone while torch's CPU tensors are counted.");

static PyObject *
why_tensors_are_uncounted(PyObject *module, PyObject *nothing)
{
    if (allocations_counted == 0)
        return PyUnicode_FromString("allocations are not counted");
    return reason_or_none(uncounted_tensors());
}

PyDoc_STRVAR(count_objects_doc,
"count_objects()\n--\n\nCount small Python objects too; None, or why they cannot be counted. Nests.");

static PyObject *
count_objects(PyObject *module, PyObject *nothing)
{
    const char *reason = python_counted > 0 ? NULL : begin_counting_objects();
    if (reason == NULL) {
        python_counted++;
        counted_kinds |= COUNTS_PYTHON;
        tell_recorders();
    }
    return reason_or_none(reason);
}

PyDoc_STRVAR(stop_counting_objects_doc, "stop_counting_objects()\n--\n\nUndo one count_objects().");

static PyObject *
stop_counting_objects(PyObject *module, PyObject *nothing)
{
    if (python_counted > 0 && --python_counted == 0) {
        end_counting_objects();
        counted_kinds &= ~COUNTS_PYTHON;
    }
    Py_RETURN_NONE;
}

PyDoc_STRVAR(note_allocation_sites_doc,
"note_allocation_sites(sampled_bytes)\n--\n\nNote where in the program memory is allocated, one stack for about so many\n"
"bytes; 0: no more. None, or why that cannot be.");

static PyObject *
note_allocation_sites(PyObject *module, PyObject *argument)
{
    unsigned long long sampled_bytes = PyLong_AsUnsignedLongLong(argument);
    if (PyErr_Occurred())
        return NULL;
    if (sampled_bytes > (1u << 30)) {
        PyErr_SetString(PyExc_ValueError, "sampled_bytes must be at most 2 ** 30");
        return NULL;
    }
    if (sampled_bytes == 0)
        allocation_sites_end();
    return reason_or_none(allocation_sites_begin(sampled_bytes));
}

PyDoc_STRVAR(reset_allocations_doc, "reset_allocations()\n--\n\nForget the process's figures so far.");

static PyObject *
reset_allocations(PyObject *module, PyObject *nothing)
{
    process_memory_reset();
    allocation_sites_reset();
    Py_RETURN_NONE;
}

PyDoc_STRVAR(allocation_totals_doc,
"allocation_totals()\n--\n\nBytes and calls the calling thread has allocated for tensors, for the rest of the heap, and for\n"
"small Python objects while counted; None when not counting.");

static PyObject *
allocation_totals(PyObject *module, PyObject *nothing)
{
    if (allocations_counted == 0)
        Py_RETURN_NONE;
    const Counters *counters = &thread_memory.counters;
    return Py_BuildValue("((KK)(KK)(KK))", (unsigned long long)counters->tensors.bytes,
                         (unsigned long long)counters->tensors.calls, (unsigned long long)counters->heap_bytes,
                         (unsigned long long)counters_heap_calls(counters), (unsigned long long)counters->python.bytes,
                         (unsigned long long)counters->python.calls);
}

PyDoc_STRVAR(begin_own_work_doc,
"begin_own_work()\n--\n\nFrom now on the calling thread works for the profiler: what it allocates and frees is not counted.\n"
"False if that was so already.");

static PyObject *
own_work_begins(PyObject *module, PyObject *nothing)
{
    return PyBool_FromLong(begin_own_work());
}

PyDoc_STRVAR(end_own_work_doc, "end_own_work()\n--\n\nThe calling thread works for the program again.");

static PyObject *
own_work_ends(PyObject *module, PyObject *nothing)
{
    end_own_work();
    Py_RETURN_NONE;
}

static PyObject *
uncounted_libraries(void)
{
    PyObject *names = PyList_New(0);
#if SLOTS_CAN_BE_FOUND
    for (int i = 0; i < slots.uncounted_count && names != NULL; i++) {
        PyObject *name = PyUnicode_DecodeFSDefault(slots.uncounted[i]);
        if (name == NULL || PyList_Append(names, name) < 0)
            Py_CLEAR(names);
        Py_XDECREF(name);
    }
#endif
    return names;
}

PyDoc_STRVAR(process_allocations_doc,
"process_allocations()\n--\n\nWhat all threads have allocated and freed since the last reset; \"thread\": bytes and calls that the\n"
"calling one has ever allocated, for tensors and the rest of the heap, at the same moment.");

static PyObject *
process_allocations(PyObject *module, PyObject *nothing)
{
    tell_kept();
    Counters all = process_counters(), own = *program_counters(&thread_memory);
    int64_t live = __atomic_load_n(&process_memory.live_bytes, __ATOMIC_RELAXED);
    int64_t peak = __atomic_load_n(&process_memory.peak_bytes, __ATOMIC_RELAXED);
    return Py_BuildValue(
        "{s(KK) s(KK) s(KK) s(KK) s(KK) s(KK) s(KK) s((KK)(KK)) sL sL sN}", "tensors", (unsigned long long)all.tensors.bytes,
        (unsigned long long)all.tensors.calls, "heap", (unsigned long long)all.heap_bytes,
        (unsigned long long)counters_heap_calls(&all), "python", (unsigned long long)all.python.bytes,
        (unsigned long long)all.python.calls, "freed", (unsigned long long)all.freed_bytes,
        (unsigned long long)all.frees, "mapped", (unsigned long long)process_memory.mapped.bytes,
        (unsigned long long)process_memory.mapped.calls, "mapped_shared",
        (unsigned long long)process_memory.mapped_shared.bytes,
        (unsigned long long)process_memory.mapped_shared.calls, "unmapped",
        (unsigned long long)process_memory.unmapped.bytes, (unsigned long long)process_memory.unmapped.calls,
        "thread", (unsigned long long)own.tensors.bytes, (unsigned long long)own.tensors.calls,
        (unsigned long long)own.heap_bytes, (unsigned long long)counters_heap_calls(&own), "live", (long long)live,
        "peak", (long long)(peak > live ? peak : live), "uncounted", uncounted_libraries());
}

PyDoc_STRVAR(replaced_addresses_doc,
"replaced_addresses()\n--\n\n(place, address before, whether ours is there now) of each place that is replaced while counting.");

static PyObject *
replaced_addresses(PyObject *module, PyObject *nothing)
{
    PyObject *rows = PyList_New(0);
#if SLOTS_CAN_BE_FOUND
    for (size_t i = 0; i < slots.count && rows != NULL; i++) {
        const Slot *slot = &slots.slots[i];
        PyObject *row = Py_BuildValue("(KKN)", (unsigned long long)(uintptr_t)slot->place,
                                      (unsigned long long)slot->before,
                                      PyBool_FromLong(allocations_counted > 0 && *slot->place == slot->ours));
        if (row == NULL || PyList_Append(rows, row) < 0)
            Py_CLEAR(rows);
        Py_XDECREF(row);
    }
#endif
    return rows;
}

/* Sites. */

#if STACKS_CAN_BE_READ
static PyObject *
site_as_tuple(const Site *site)
{
    return Py_BuildValue("(KKK)", (unsigned long long)site->samples, (unsigned long long)site->large_bytes,
                         (unsigned long long)site->large_calls);
}

static int
append_row(PyObject *rows, PyObject *row)
{
    int failed = row == NULL || rows == NULL || PyList_Append(rows, row) < 0;
    Py_XDECREF(row);
    return failed ? -1 : 0;
}

static int
fill_sites(PyObject *functions, PyObject *nodes, PyObject *sites)
{
    const AllocationSites *all = &allocation_sites;
    for (size_t i = 0; i < all->codes.count; i++) {
        const CodeEntry *code = &all->codes.entries[i];
        if (append_row(functions, Py_BuildValue("(ssi)", code->name, code->file, code->key.first_line)) < 0)
            return -1;
    }
    for (size_t i = 0; i < all->tree.node_count; i++) {
        const StackNode *node = &all->tree.nodes[i];
        long long parent = node->parent == NOWHERE ? -1 : (long long)node->parent;
        if (append_row(nodes, Py_BuildValue("(Lki)", parent, (unsigned long)node->code, (int)node->line)) < 0)
            return -1;
        const Site *site = i < all->site_capacity ? &all->sites[i] : NULL;
        if (site != NULL && (site->samples > 0 || site->large_calls > 0) &&
            append_row(sites, Py_BuildValue("(kKKK)", (unsigned long)i, (unsigned long long)site->samples,
                                            (unsigned long long)site->large_bytes,
                                            (unsigned long long)site->large_calls)) < 0)
            return -1;
    }
    return 0;
}
#endif

PyDoc_STRVAR(allocation_sites_seen_doc,
"allocation_sites_seen()\n--\n\nThe stacks that were noted: functions, nodes, and at which nodes how much. None if none ever were.");

static PyObject *
allocation_sites_seen(PyObject *module, PyObject *nothing)
{
#if STACKS_CAN_BE_READ
    PyObject *functions = PyList_New(0), *nodes = PyList_New(0), *sites = PyList_New(0);
    /* What is allocated meanwhile is not noted, since this thread has the lock. */
    pthread_mutex_lock(&allocation_sites.lock);
    int failed = functions == NULL || nodes == NULL || sites == NULL || fill_sites(functions, nodes, sites) < 0;
    Site elsewhere = allocation_sites.elsewhere, missed = allocation_sites.missed;
    pthread_mutex_unlock(&allocation_sites.lock);
    if (!failed)
        return Py_BuildValue("{sN sN sN sN sN}", "functions", functions, "nodes", nodes, "sites", sites,
                             "elsewhere", site_as_tuple(&elsewhere), "missed", site_as_tuple(&missed));
    Py_XDECREF(functions);
    Py_XDECREF(nodes);
    Py_XDECREF(sites);
    return PyErr_Occurred() ? NULL : PyErr_NoMemory();
#else
    Py_RETURN_NONE;
#endif
}

#define COUNTING_FUNCTIONS                                                                                   \
    {"count_allocations", count_allocations, METH_NOARGS, count_allocations_doc},                            \
    {"stop_counting_allocations", stop_counting_allocations, METH_NOARGS, stop_counting_allocations_doc},    \
    {"count_in_libraries", count_in_libraries, METH_NOARGS, count_in_libraries_doc},                         \
    {"why_tensors_are_uncounted", why_tensors_are_uncounted, METH_NOARGS, why_tensors_are_uncounted_doc},    \
    {"count_objects", count_objects, METH_NOARGS, count_objects_doc},                                        \
    {"stop_counting_objects", stop_counting_objects, METH_NOARGS, stop_counting_objects_doc},                \
    {"note_allocation_sites", note_allocation_sites, METH_O, note_allocation_sites_doc},                     \
    {"reset_allocations", reset_allocations, METH_NOARGS, reset_allocations_doc},                            \
    {"allocation_totals", allocation_totals, METH_NOARGS, allocation_totals_doc},                            \
    {"begin_own_work", own_work_begins, METH_NOARGS, begin_own_work_doc},                                    \
    {"end_own_work", own_work_ends, METH_NOARGS, end_own_work_doc},                                          \
    {"process_allocations", process_allocations, METH_NOARGS, process_allocations_doc},                      \
    {"replaced_addresses", replaced_addresses, METH_NOARGS, replaced_addresses_doc},                         \
    {"allocation_sites_seen", allocation_sites_seen, METH_NOARGS, allocation_sites_seen_doc}

#endif
