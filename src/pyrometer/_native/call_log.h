/* Single calls, one after another, while somebody asks for them: a short stretch of the run, bounded. */
#ifndef PYROMETER_CALL_LOG_H
#define PYROMETER_CALL_LOG_H

#include <Python.h>
#include <stdint.h>
#include <stdlib.h>

typedef struct {
    PyObject *name;
    unsigned long thread_id;
    uint64_t start_ns, end_ns;
    Py_ssize_t depth;
} LoggedCall;

typedef struct CallLog {
    LoggedCall *calls;
    size_t count, capacity, limit;
    uint64_t lost; /* calls that found no room */
} CallLog;

static CallLog *
call_log_new(size_t limit)
{
    CallLog *log = calloc(1, sizeof *log);
    if (log != NULL)
        log->limit = limit;
    return log;
}

static void
call_log_free(CallLog *log)
{
    if (log == NULL)
        return;
    for (size_t i = 0; i < log->count; i++)
        Py_DECREF(log->calls[i].name);
    free(log->calls);
    free(log);
}

static __attribute__((noinline)) void
call_log_add(CallLog *log, PyObject *name, unsigned long thread_id, Py_ssize_t depth, uint64_t start_ns,
             uint64_t end_ns)
{
    if (log->count == log->capacity && log->count < log->limit) {
        size_t capacity = log->capacity ? log->capacity * 2 : 1024;
        LoggedCall *calls = realloc(log->calls, capacity * sizeof *calls);
        if (calls != NULL) {
            log->calls = calls;
            log->capacity = capacity;
        }
    }
    if (log->count >= log->limit || log->count == log->capacity) {
        log->lost++;
        return;
    }
    log->calls[log->count++] =
        (LoggedCall){Py_NewRef(name), thread_id, start_ns, end_ns > start_ns ? end_ns : start_ns, depth};
}

/* (name, thread, depth, start, end) of each call, in the order they ended; NULL with an exception. */
static PyObject *
call_log_as_list(const CallLog *log)
{
    PyObject *list = PyList_New((Py_ssize_t)log->count);
    for (size_t i = 0; i < log->count && list != NULL; i++) {
        const LoggedCall *call = &log->calls[i];
        PyObject *row = Py_BuildValue("(OknKK)", call->name, call->thread_id, call->depth,
                                      (unsigned long long)call->start_ns, (unsigned long long)call->end_ns);
        if (row == NULL)
            Py_CLEAR(list);
        else
            PyList_SET_ITEM(list, (Py_ssize_t)i, row);
    }
    return list;
}

#endif
