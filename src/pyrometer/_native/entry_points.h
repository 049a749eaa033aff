/* Python 3.11 only: told when a generator or coroutine stops and goes on.
 *
 * The interpreter resumes generators through a handful of type slots and methods. While a
 * recorder is on, each is replaced by one that tells the recorder before and after; all are put
 * back when the last recorder stops. From 3.12 on sys.monitoring reports the same (suspension.py).
 */
#ifndef PYROMETER_ENTRY_POINTS_H
#define PYROMETER_ENTRY_POINTS_H

#include "suspended.h"

#if PY_VERSION_HEX < 0x030C0000

#define CHAIN_LENGTH 32

/* The owner has finished: what it left open is closed with it, as open. */
static void
recorder_finish(Recorder *recorder, PyObject *owner)
{
    Strand *strand = recorder_find_strand(recorder);
    if (strand == NULL)
        return;
    for (Py_ssize_t i = 1; i <= strand->depth && strand->owned > 0; i++) {
        if (strand->frames[i].owner == owner) {
            uint64_t now_ns = recorder_now_ns(recorder);
            while (strand->depth >= i)
                strand_close_top(strand, now_ns, 0);
        }
    }
}

static inline void
about_to_resume(PyObject *generator)
{
    for (Recorder *recorder = started_recorders; recorder != NULL; recorder = recorder->next_started)
        if (UNLIKELY(recorder->segment_count > 0))
            /* An asynchronous generator is dropped first and closed later, its weak references dead. */
            recorder_resume(recorder, generator, PyObject_GC_IsFinalized(generator));
}

static inline void
has_returned(PyObject *generator)
{
    if (LIKELY(owned_frames == 0))
        return;
    for (Recorder *recorder = started_recorders; recorder != NULL; recorder = recorder->next_started) {
        if (generator_is_suspended(generator))
            recorder_suspend(recorder, generator);
        else if (!generator_is_running(generator))
            recorder_finish(recorder, generator);
    }
}

/* What a suspended generator is itself waiting for, if that is a generator or coroutine. */
static PyObject *
delegate_of(PyObject *generator)
{
    const char *attribute = PyCoro_CheckExact(generator)      ? "cr_await"
                            : PyAsyncGen_CheckExact(generator) ? "ag_await"
                                                               : "gi_yieldfrom";
    PyObject *delegate = PyObject_GetAttrString(generator, attribute);
    if (delegate == NULL)
        PyErr_Clear();
    if (delegate != NULL && !PyGen_CheckExact(delegate) && !PyCoro_CheckExact(delegate))
        Py_CLEAR(delegate);
    return delegate;
}

/* throw() and close() go straight to the innermost delegate, past its entry points. */
typedef struct {
    PyObject *generators[CHAIN_LENGTH];
    int length;
} Chain;

static void
about_to_resume_chain(Chain *chain, PyObject *generator)
{
    chain->length = 0;
    generator = Py_NewRef(generator);
    while (generator != NULL && chain->length < CHAIN_LENGTH) {
        chain->generators[chain->length++] = generator;
        about_to_resume(generator);
        generator = delegate_of(generator);
    }
    Py_XDECREF(generator);
}

static void
chain_has_returned(Chain *chain)
{
    while (chain->length > 0) {
        PyObject *generator = chain->generators[--chain->length];
        has_returned(generator);
        Py_DECREF(generator);
    }
}

/* Coroutine wrappers and the awaitables of asynchronous generators hold it as their first field. */
typedef struct {
    PyObject_HEAD
    PyObject *generator;
} Holder;

#define ITSELF(self) (self)
#define HELD(self) (((Holder *)(self))->generator)

#define ENTRY_POINTS(NAME, GENERATOR_OF)                                                           \
    static iternextfunc NAME##_next_original;                                                      \
    static PyObject *NAME##_next(PyObject *self)                                                   \
    {                                                                                              \
        PyObject *generator = GENERATOR_OF(self);                                                  \
        about_to_resume(generator);                                                                \
        PyObject *result = NAME##_next_original(self);                                             \
        has_returned(generator);                                                                   \
        return result;                                                                             \
    }                                                                                              \
    static sendfunc NAME##_am_send_original;                                                       \
    static PySendResult NAME##_am_send(PyObject *self, PyObject *value, PyObject **result)         \
    {                                                                                              \
        PyObject *generator = GENERATOR_OF(self);                                                  \
        about_to_resume(generator);                                                                \
        PySendResult outcome = NAME##_am_send_original(self, value, result);                       \
        has_returned(generator);                                                                   \
        return outcome;                                                                            \
    }                                                                                              \
    static PyCFunction NAME##_send_original;                                                       \
    static PyObject *NAME##_send(PyObject *self, PyObject *value)                                  \
    {                                                                                              \
        PyObject *generator = GENERATOR_OF(self);                                                  \
        about_to_resume(generator);                                                                \
        PyObject *result = NAME##_send_original(self, value);                                      \
        has_returned(generator);                                                                   \
        return result;                                                                             \
    }                                                                                              \
    static PyCFunction NAME##_throw_original;                                                      \
    static PyObject *NAME##_throw(PyObject *self, PyObject *const *arguments, Py_ssize_t count)    \
    {                                                                                              \
        Chain chain;                                                                               \
        about_to_resume_chain(&chain, GENERATOR_OF(self));                                         \
        PyObject *result =                                                                         \
            ((_PyCFunctionFast)(void (*)(void))NAME##_throw_original)(self, arguments, count);     \
        chain_has_returned(&chain);                                                                \
        return result;                                                                             \
    }                                                                                              \
    static PyCFunction NAME##_close_original;                                                      \
    static PyObject *NAME##_close(PyObject *self, PyObject *nothing)                               \
    {                                                                                              \
        Chain chain;                                                                               \
        about_to_resume_chain(&chain, GENERATOR_OF(self));                                         \
        PyObject *result = NAME##_close_original(self, nothing);                                   \
        chain_has_returned(&chain);                                                                \
        return result;                                                                             \
    }

ENTRY_POINTS(generator, ITSELF)
ENTRY_POINTS(coroutine, ITSELF)
ENTRY_POINTS(wrapped_coroutine, HELD)
ENTRY_POINTS(asend, HELD)
ENTRY_POINTS(athrow, HELD)

/* A generator or coroutine that is dropped is closed past all its entry points. */
#define FINALIZER(NAME)                                                                            \
    static destructor NAME##_finalize_original;                                                    \
    static void NAME##_finalize(PyObject *self)                                                    \
    {                                                                                              \
        for (Recorder *recorder = started_recorders; recorder; recorder = recorder->next_started)  \
            if (recorder->segment_count > 0)                                                       \
                recorder_resume(recorder, self, 1);                                                \
        NAME##_finalize_original(self);                                                            \
        for (Recorder *recorder = owned_frames == 0 ? NULL : started_recorders; recorder;         \
             recorder = recorder->next_started)                                                    \
            recorder_finish(recorder, self);                                                       \
    }
FINALIZER(generator)
FINALIZER(coroutine)

typedef void (*AnyFunction)(void);

static PyMethodDef *
method_of(PyTypeObject *type, const char *name, int flags)
{
    PyObject *method = PyDict_GetItemString(type->tp_dict, name);
    if (method == NULL || !Py_IS_TYPE(method, &PyMethodDescr_Type))
        return NULL;
    PyMethodDef *definition = ((PyMethodDescrObject *)method)->d_method;
    return definition->ml_flags == flags ? definition : NULL;
}

static void
swap_method(PyTypeObject *type, const char *name, int flags, AnyFunction ours, PyCFunction *original,
            int install)
{
    PyMethodDef *definition = method_of(type, name, flags);
    if (definition == NULL || (definition->ml_meth == (PyCFunction)ours) == install)
        return;
    if (install) {
        *original = definition->ml_meth;
        definition->ml_meth = (PyCFunction)ours;
    }
    else {
        definition->ml_meth = *original;
    }
}

#define SWAP_SLOT(slot, NAME, WHICH, install)                                                      \
    do {                                                                                           \
        if ((slot) == NULL)                                                                        \
            break;                                                                                 \
        if (((slot) == NAME##_##WHICH) == (install))                                               \
            break;                                                                                 \
        if (install) {                                                                             \
            NAME##_##WHICH##_original = (slot);                                                    \
            (slot) = NAME##_##WHICH;                                                               \
        }                                                                                          \
        else {                                                                                     \
            (slot) = NAME##_##WHICH##_original;                                                    \
        }                                                                                          \
    } while (0)

#define SWAP_TYPE(TYPE, NAME, install)                                                             \
    do {                                                                                           \
        PyTypeObject *type_ = &(TYPE);                                                             \
        SWAP_SLOT(type_->tp_iternext, NAME, next, install);                                        \
        if (type_->tp_as_async != NULL)                                                            \
            SWAP_SLOT(type_->tp_as_async->am_send, NAME, am_send, install);                        \
        swap_method(type_, "send", METH_O, (AnyFunction)NAME##_send, &NAME##_send_original,        \
                    install);                                                                      \
        swap_method(type_, "throw", METH_FASTCALL, (AnyFunction)NAME##_throw,                      \
                    &NAME##_throw_original, install);                                              \
        swap_method(type_, "close", METH_NOARGS, (AnyFunction)NAME##_close,                        \
                    &NAME##_close_original, install);                                              \
    } while (0)

static void
swap_entry_points(int install)
{
    SWAP_SLOT(PyGen_Type.tp_finalize, generator, finalize, install);
    SWAP_SLOT(PyCoro_Type.tp_finalize, coroutine, finalize, install);
    SWAP_TYPE(PyGen_Type, generator, install);
    SWAP_TYPE(PyCoro_Type, coroutine, install);
    SWAP_TYPE(_PyCoroWrapper_Type, wrapped_coroutine, install);
    SWAP_TYPE(_PyAsyncGenASend_Type, asend, install);
    SWAP_TYPE(_PyAsyncGenAThrow_Type, athrow, install);
}

#endif

#endif
