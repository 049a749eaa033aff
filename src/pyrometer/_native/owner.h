/* Which generator or coroutine a scope belongs to: the one whose frame entered it. */
#ifndef PYROMETER_OWNER_H
#define PYROMETER_OWNER_H

#include <Python.h>

static PyObject *entry_names[4]; /* interned: the methods that enter a context for their caller */

static int
owner_prepare(void)
{
    static const char *const names[] = {"__enter__", "__aenter__", "enter_context",
                                        "enter_async_context"};
    for (int i = 0; i < 4; i++) {
        entry_names[i] = PyUnicode_InternFromString(names[i]);
        if (entry_names[i] == NULL)
            return -1;
    }
    return 0;
}

static inline int
is_entry_name(PyObject *name)
{
    return name == entry_names[0] || name == entry_names[1] || name == entry_names[2] ||
           name == entry_names[3];
}

#if PY_VERSION_HEX < 0x030E0000
/* The interpreter's own frames: no frame object is made, which a scope would pay for. */
#define Py_BUILD_CORE 1
#include <internal/pycore_frame.h>
#undef Py_BUILD_CORE

typedef _PyInterpreterFrame *FrameRef;

static inline PyCodeObject *
frame_code(FrameRef frame)
{
#if PY_VERSION_HEX >= 0x030D0000
    return (PyCodeObject *)frame->f_executable;
#else
    return frame->f_code;
#endif
}

static inline FrameRef
skip_shims(FrameRef frame)
{
#if PY_VERSION_HEX >= 0x030C0000
    while (frame != NULL && frame->owner == FRAME_OWNED_BY_CSTACK)
        frame = frame->previous;
#endif
    return frame;
}

static inline FrameRef
current_frame(void)
{
    PyThreadState *state = PyThreadState_Get();
#if PY_VERSION_HEX >= 0x030D0000
    return skip_shims(state->current_frame);
#else
    return skip_shims(state->cframe->current_frame);
#endif
}

static inline FrameRef
frame_before(FrameRef frame)
{
    return skip_shims(frame->previous);
}

static inline PyObject *
frame_generator(FrameRef frame)
{
    return frame->owner == FRAME_OWNED_BY_GENERATOR ? (PyObject *)_PyFrame_GetGenerator(frame)
                                                    : NULL;
}

static inline int
generator_is_running(PyObject *generator)
{
    return ((PyGenObject *)generator)->gi_frame_state == FRAME_EXECUTING;
}

static inline int
generator_is_suspended(PyObject *generator)
{
    return ((PyGenObject *)generator)->gi_frame_state < FRAME_EXECUTING;
}
#else
/* A Python whose frames are not known here: the public functions, which make frame objects. The
 * references taken are given back at once: a frame lives while it is being executed. */
typedef PyFrameObject *FrameRef;

static inline PyCodeObject *
frame_code(FrameRef frame)
{
    PyCodeObject *code = PyFrame_GetCode(frame);
    Py_DECREF(code);
    return code;
}

static inline FrameRef
current_frame(void)
{
    return PyEval_GetFrame();
}

static inline FrameRef
frame_before(FrameRef frame)
{
    PyFrameObject *back = PyFrame_GetBack(frame);
    Py_XDECREF(back);
    return back;
}

static inline PyObject *
frame_generator(FrameRef frame)
{
    PyObject *generator = PyFrame_GetGenerator(frame);
    Py_XDECREF(generator);
    return generator;
}

static int
generator_is_running(PyObject *generator)
{
    static const char *const attributes[] = {"gi_running", "cr_running", "ag_running"};
    for (int i = 0; i < 3; i++) {
        PyObject *running = PyObject_GetAttrString(generator, attributes[i]);
        if (running != NULL) {
            int answer = PyObject_IsTrue(running);
            Py_DECREF(running);
            return answer > 0;
        }
        PyErr_Clear();
    }
    return 1;
}
#endif

/* The generator or coroutine that entered the scope, borrowed, or NULL.
 *
 * A context manager's own entry is passed over: the scope belongs to whoever wrote the `with`,
 * and so does one entered by a generator behind @contextmanager. */
static inline PyObject *
owner_of_caller(void)
{
    FrameRef frame = current_frame();
    while (frame != NULL) {
        if (UNLIKELY(is_entry_name(frame_code(frame)->co_name))) {
            frame = frame_before(frame);
            continue;
        }
        PyObject *generator = frame_generator(frame);
        if (LIKELY(generator == NULL))
            return NULL;
        FrameRef resumed_by = frame_before(frame);
        if (resumed_by == NULL || !is_entry_name(frame_code(resumed_by)->co_name))
            return generator;
        frame = resumed_by;
    }
    return NULL;
}

#endif
