/* Being told when generators and coroutines stop and go on: by sys.monitoring, or on 3.11 by entry_points.h. */
#ifndef PYROMETER_WATCHING_H
#define PYROMETER_WATCHING_H

#include "entry_points.h"
#include "suspended.h"

#if PY_VERSION_HEX >= 0x030C0000
static PyObject *monitor; /* suspension.Monitor, made at the first need */
static PyObject *last_watched_code;
static PyObject *make_monitor(void);

static int
watch_owner(PyObject *owner)
{
    /* The first frame is the owner's unless a context manager's entry stands between. */
    PyObject *code = PyObject_GetAttrString(
        owner, PyCoro_CheckExact(owner) ? "cr_code" : PyAsyncGen_CheckExact(owner) ? "ag_code" : "gi_code");
    if (code == NULL)
        return -1;
    if (code == last_watched_code) {
        Py_DECREF(code);
        return 0;
    }
    if (monitor == NULL) {
        PyObject *made = make_monitor(); /* another thread may have made one meanwhile */
        if (made == NULL) {
            Py_DECREF(code);
            return -1;
        }
        if (monitor == NULL)
            monitor = made;
        else
            Py_DECREF(made);
    }
    PyObject *watched = PyObject_CallMethod(monitor, "watch", "O", code);
    int failed = watched == NULL || !PyObject_IsTrue(watched);
    if (!failed)
        Py_XSETREF(last_watched_code, Py_NewRef(code));
    Py_XDECREF(watched);
    Py_DECREF(code);
    return failed ? -1 : 0;
}

/* The generator has yielded; so have those that were resumed only for its sake. */
static void
suspend_with_delegators(Recorder *recorder, PyObject *generator)
{
    recorder_suspend(recorder, generator);
    Strand *strand = recorder_find_strand(recorder);
    while (strand != NULL && UNLIKELY(strand->frames[strand->depth].passed_for == generator))
        recorder_suspend(recorder, strand->frames[strand->depth].owner);
}

static PyObject *
on_yield(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    FrameRef frame = current_frame();
    PyObject *generator = frame == NULL ? NULL : frame_generator(frame);
    if (generator != NULL)
        for (Recorder *recorder = started_recorders; recorder != NULL; recorder = recorder->next_started)
            suspend_with_delegators(recorder, generator);
    Py_RETURN_NONE;
}

/* throw() goes straight to the innermost delegate: those that wait for it come back with it, the
 * outermost first. */
static void
resume_delegators(Recorder *recorder, FrameRef frame, PyObject *passed_for)
{
    FrameRef before = frame_before(frame);
    PyObject *delegator = before == NULL ? NULL : frame_generator(before);
    if (delegator == NULL)
        return;
    resume_delegators(recorder, before, passed_for);
    if (segment_link(recorder, delegator) == NULL)
        return;
    recorder_resume(recorder, delegator, 1);
    Strand *strand = recorder_find_strand(recorder);
    for (Py_ssize_t i = 1; strand != NULL && i <= strand->depth; i++)
        if (strand->frames[i].owner == delegator)
            strand->frames[i].passed_for = passed_for;
}

static PyObject *
on_resume(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    /* A generator being dropped is thrown GeneratorExit; its weak references are dead by then. */
    int thrown = count == 3;
    FrameRef frame = current_frame();
    PyObject *generator = frame == NULL ? NULL : frame_generator(frame);
    for (Recorder *recorder = started_recorders; generator != NULL && recorder != NULL;
         recorder = recorder->next_started) {
        if (thrown)
            resume_delegators(recorder, frame, generator);
        recorder_resume(recorder, generator, thrown);
    }
    Py_RETURN_NONE;
}

static PyMethodDef on_yield_definition = {"on_yield", (PyCFunction)(void (*)(void))on_yield, METH_FASTCALL, NULL};
static PyMethodDef on_resume_definition = {"on_resume", (PyCFunction)(void (*)(void))on_resume, METH_FASTCALL, NULL};

static PyObject *
make_monitor(void)
{
    PyObject *module = PyImport_ImportModule("pyrometer._native.suspension");
    PyObject *yielded = PyCFunction_New(&on_yield_definition, NULL);
    PyObject *resumed = PyCFunction_New(&on_resume_definition, NULL);
    PyObject *made = NULL;
    if (module != NULL && yielded != NULL && resumed != NULL)
        made = PyObject_CallMethod(module, "Monitor", "OO", yielded, resumed);
    Py_XDECREF(module);
    Py_XDECREF(yielded);
    Py_XDECREF(resumed);
    return made;
}

static void
begin_watching(void)
{
    /* Code is watched as it is seen to enter a scope. */
}

static void
end_watching(void)
{
    SavedError error = save_error();
    Py_CLEAR(last_watched_code);
    if (monitor != NULL) {
        PyObject *released = PyObject_CallMethod(monitor, "release", NULL);
        if (released == NULL)
            PyErr_WriteUnraisable(monitor);
        Py_XDECREF(released);
    }
    restore_error(error);
}
#else
static int
watch_owner(PyObject *owner)
{
    return 0;
}

static void
begin_watching(void)
{
    swap_entry_points(1);
}

static void
end_watching(void)
{
    swap_entry_points(0);
}
#endif

#endif
