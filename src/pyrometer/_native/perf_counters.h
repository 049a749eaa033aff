/* The processor's own counters, through Linux's perf events.
 *
 * All goes through libc's syscall() and read(), which tests put in place of the kernel
 * (tests/capture/fake_perf.c).
 */
#ifndef PYROMETER_PERF_COUNTERS_H
#define PYROMETER_PERF_COUNTERS_H

#if defined(__linux__)
#include <errno.h>
#include <linux/perf_event.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "high_files.h"
#include "known_work.h"

#define CACHE_EVENT(cache, result)                                                                         \
    (PERF_COUNT_HW_CACHE_##cache | PERF_COUNT_HW_CACHE_OP_READ << 8 | PERF_COUNT_HW_CACHE_RESULT_##result << 16)

typedef struct {
    const char *name;
    uint32_t type;
    uint64_t config;
} PerfEvent;

/* By how much is lost without them: a kernel that lacks descriptors opens the first ones. */
static const PerfEvent perf_events[] = {
    {"instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS},
    {"cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
    {"cache references", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_REFERENCES},
    {"cache misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES},
    {"branches", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS},
    {"branch misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES},
    {"L1d loads", PERF_TYPE_HW_CACHE, CACHE_EVENT(L1D, ACCESS)},
    {"L1d load misses", PERF_TYPE_HW_CACHE, CACHE_EVENT(L1D, MISS)},
    {"LLC loads", PERF_TYPE_HW_CACHE, CACHE_EVENT(LL, ACCESS)},
    {"LLC load misses", PERF_TYPE_HW_CACHE, CACHE_EVENT(LL, MISS)},
};

#define PERF_EVENTS (sizeof perf_events / sizeof *perf_events)

typedef struct {
    PyObject_HEAD
    int events;
    int with_forks; /* the kernel cannot tell threads from processes */
    int files[PERF_EVENTS];
    int errors[PERF_EVENTS];
} PerfCounters;

static int
perf_event_open(struct perf_event_attr *attributes)
{
    return (int)syscall(SYS_perf_event_open, attributes, 0, -1, -1, (unsigned long)PERF_FLAG_FD_CLOEXEC);
}

static void
perf_counters_open_one(PerfCounters *self, int index, int inherit)
{
    struct perf_event_attr attributes = {
        .size = sizeof attributes,
        .type = perf_events[index].type,
        .config = perf_events[index].config,
        .read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
        .exclude_kernel = 1, /* which needs no rights */
        .exclude_hv = 1,
        .inherit = inherit,
    };
#ifdef PERF_ATTR_SIZE_VER7
    attributes.inherit_thread = inherit;
    int file = perf_event_open(&attributes);
    if (file < 0 && inherit && (errno == EINVAL || errno == E2BIG)) {
        attributes.inherit_thread = 0;
        file = perf_event_open(&attributes);
        self->with_forks |= file >= 0;
    }
#else
    int file = perf_event_open(&attributes);
    self->with_forks |= inherit && file >= 0;
#endif
    self->errors[index] = file < 0 ? errno : 0;
    self->files[index] = file < 0 ? -1 : move_file_high(file);
}

static PyObject *
perf_counters_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"events", "inherit", NULL};
    int events = PERF_EVENTS, inherit = 0;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "|i$p", names, &events, &inherit))
        return NULL;
    if (events < 0 || events > (int)PERF_EVENTS) {
        PyErr_Format(PyExc_ValueError, "there are %zu events, not %d", PERF_EVENTS, events);
        return NULL;
    }
    PerfCounters *self = (PerfCounters *)type->tp_alloc(type, 0);
    if (self == NULL)
        return NULL;
    self->events = events;
    for (int i = 0; i < events; i++)
        perf_counters_open_one(self, i, inherit);
    return (PyObject *)self;
}

static PyObject *
perf_counters_close(PerfCounters *self, PyObject *nothing)
{
    for (int i = 0; i < self->events; i++) {
        if (self->files[i] >= 0) {
            close(self->files[i]);
            self->files[i] = -1;
            self->errors[i] = EBADF;
        }
    }
    Py_RETURN_NONE;
}

static void
perf_counters_dealloc(PerfCounters *self)
{
    Py_XDECREF(perf_counters_close(self, NULL));
    Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyObject *
perf_counters_read_one(const PerfCounters *self, int index)
{
    uint64_t seen[3]; /* count, time it was to be counted, time it was */
    if (self->files[index] < 0)
        return PyLong_FromLong(self->errors[index]);
    ssize_t size = read(self->files[index], seen, sizeof seen);
    if (size != (ssize_t)sizeof seen)
        return PyLong_FromLong(size < 0 ? errno : EIO);
    return Py_BuildValue("(KKK)", (unsigned long long)seen[0], (unsigned long long)seen[1],
                         (unsigned long long)seen[2]);
}

static PyObject *
perf_counters_read(PerfCounters *self, PyObject *nothing)
{
    PyObject *rows = PyList_New(self->events);
    for (int i = 0; i < self->events && rows != NULL; i++) {
        PyObject *seen = perf_counters_read_one(self, i);
        PyObject *row = seen == NULL ? NULL : Py_BuildValue("(sN)", perf_events[i].name, seen);
        if (row == NULL)
            Py_CLEAR(rows);
        else
            PyList_SET_ITEM(rows, i, row);
    }
    return rows;
}

static PyObject *
perf_counters_get_with_forks(PerfCounters *self, void *closure)
{
    return PyBool_FromLong(self->with_forks);
}

static PyMethodDef perf_counters_methods[] = {
    {"read", (PyCFunction)perf_counters_read, METH_NOARGS,
     "(name, (count, enabled_ns, running_ns)) of each event, or (name, number of the error)."},
    {"close", (PyCFunction)perf_counters_close, METH_NOARGS, "Count no more."},
    {NULL},
};

static PyGetSetDef perf_counters_attributes[] = {
    {"with_forks", (getter)perf_counters_get_with_forks, NULL, "Whether forked processes are counted too."},
    {NULL},
};

static PyTypeObject PerfCounters_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "pyrometer._native.core.PerfCounters",
    .tp_doc = "Counts what the processor does for the calling thread and, if inherited, for all it starts.",
    .tp_basicsize = sizeof(PerfCounters),
    .tp_dealloc = (destructor)perf_counters_dealloc,
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_methods = perf_counters_methods,
    .tp_getset = perf_counters_attributes,
    .tp_new = perf_counters_new,
};

#endif
#endif
