/* Phases: what a thread of the program is at, one thing at a time, and the functions that begin
 * and end them. An inner phase takes its time away from the outer one, so that the phases of a
 * thread always sum to the time that went by. twin_watch.py is the specification. */
#ifndef PYROMETER_WATCH_H
#define PYROMETER_WATCH_H

#include <pthread.h>

#include "allocations.h"
#include "profiled.h"

#define MAX_PHASES 32
/* The order in which Python names the phases: record/torch_run.py, behind "other". */
enum { OTHER_PHASE = 0, FORWARD_PHASE = 3, LOSS_PHASE = 4, BACKWARD_PHASE = 5 };
#define MAX_MODULE_DEPTH 256

/* Sizes of calls are taken; with marks, so is the backward pass by module. */
enum { NO_DETAIL = 0, SIZES_AND_MARKS = 1, SIZES = 2 };

struct ModuleEntry;

/* One open call of a module; both are kept alive by the call itself. */
typedef struct {
    PyObject *module;
    Scope *scope;
    uint64_t first_sequence; /* the first autograd node made inside has this number or a higher one */
} OpenModule;

typedef struct WatchThread {
    struct Watch *watch;
    struct WatchThread *next;
    int in_use; /* cleared when the thread ends: the next thread takes it over */
    int phase;
    int held; /* inside a phase the program named itself: found ones do not take it over */
    uint64_t switched_ns, switched_bytes, switched_allocations;
    uint64_t phase_ns[MAX_PHASES], phase_bytes[MAX_PHASES], phase_allocations[MAX_PHASES];
    Py_ssize_t module_depth;
    OpenModule modules[MAX_MODULE_DEPTH];
    Scope *backward_path[MAX_MODULE_DEPTH]; /* open under the backward phase */
    int backward_depth;
    int in_backward;
    uint64_t marks_met; /* in this backward pass */
} WatchThread;

typedef struct Watch {
    PyObject_HEAD
    int active;
    int detail; /* how closely the step under way is looked at */
    Recorder *recorder;
    PyObject *failed; /* called with an error of one of our own callbacks */
    Scope *scopes[MAX_PHASES];
    Scope *untracked_forward; /* root calls without gradients, in the phase forward */
    Scope *recomputed;        /* modules called again by the backward pass */
    int phase_count;
    uint64_t hook_ns;
    uint64_t timed_backward_passes, timed_backward_ns;
    WatchThread *threads;
    struct ModuleEntry **entries; /* by address: an open hash table */
    size_t entry_capacity, entry_count;
    uint64_t *marked; /* sequence numbers of nodes marked in this step: an open hash set, 0 is free */
    size_t marked_capacity, marked_count;
} Watch;

THREAD_LOCAL WatchThread *current_watch_thread;
static pthread_key_t watch_thread_key;

/* Runs without the GIL, when the thread is all but gone. */
static void
watch_thread_ended(void *thread)
{
    __atomic_store_n(&((WatchThread *)thread)->in_use, 0, __ATOMIC_RELEASE);
}

static void
thread_mark_switch(WatchThread *thread, uint64_t now_ns)
{
    thread->switched_ns = now_ns;
    thread->switched_bytes = thread_allocations.bytes;
    thread->switched_allocations = thread_allocations.calls;
}

static __attribute__((noinline)) WatchThread *
watch_find_thread(Watch *watch)
{
    WatchThread *thread = watch->threads;
    while (thread != NULL && __atomic_load_n(&thread->in_use, __ATOMIC_ACQUIRE))
        thread = thread->next;
    if (thread == NULL) {
        thread = malloc(sizeof *thread);
        if (thread == NULL)
            return NULL;
        thread->next = watch->threads;
        watch->threads = thread;
    }
    WatchThread *next = thread->next;
    memset(thread, 0, sizeof *thread);
    thread->next = next;
    thread->watch = watch;
    thread->in_use = 1;
    thread_mark_switch(thread, recorder_now_ns(watch->recorder));
    pthread_setspecific(watch_thread_key, thread);
    current_watch_thread = thread;
    return thread;
}

static inline WatchThread *
watch_thread(Watch *watch)
{
    WatchThread *thread = current_watch_thread;
    return LIKELY(thread != NULL && thread->watch == watch) ? thread : watch_find_thread(watch);
}

/* Charge the time since the last switch to the phase it was spent in. Returns now. */
static inline uint64_t
thread_charge(WatchThread *thread)
{
    uint64_t now_ns = recorder_now_ns(thread->watch->recorder);
    int phase = thread->phase;
    if (LIKELY(now_ns > thread->switched_ns)) {
        thread->phase_ns[phase] += now_ns - thread->switched_ns;
        thread->switched_ns = now_ns;
    }
    uint64_t bytes = thread_allocations.bytes, allocations = thread_allocations.calls;
    thread->phase_bytes[phase] += bytes - thread->switched_bytes;
    thread->phase_allocations[phase] += allocations - thread->switched_allocations;
    thread->switched_bytes = bytes;
    thread->switched_allocations = allocations;
    return now_ns;
}

static inline uint64_t
thread_switch(WatchThread *thread, int phase)
{
    uint64_t now_ns = thread_charge(thread);
    thread->phase = phase;
    return now_ns;
}

/* Calls one of our own callbacks. Its errors go to `failed`, never into the program. */
static void
watch_call_back(Watch *watch, PyObject *callback, PyObject *const *arguments, size_t count)
{
    uint64_t began_ns = recorder_now_ns(watch->recorder);
    SavedError error = save_error();
    PyObject *result = PyObject_Vectorcall(callback, arguments, count, NULL);
    if (result == NULL) {
        PyObject *type, *value, *trace;
        PyErr_Fetch(&type, &value, &trace);
        PyErr_NormalizeException(&type, &value, &trace);
        PyObject *noted = value == NULL ? NULL : PyObject_CallOneArg(watch->failed, value);
        if (noted == NULL)
            PyErr_Clear();
        Py_XDECREF(noted);
        Py_XDECREF(type);
        Py_XDECREF(value);
        Py_XDECREF(trace);
    }
    Py_XDECREF(result);
    restore_error(error);
    watch->hook_ns += recorder_now_ns(watch->recorder) - began_ns;
}

/* Functions of torch that are a phase while they run. */

typedef struct {
    Profiled base;
    Watch *watch;
    int phase;
    uint32_t keeps; /* phases, by number, that stay what they are while this function runs in them */
    PyObject *begun, *ended;
} Phased;

static void backward_ended(WatchThread *thread, uint64_t duration_ns);

static __attribute__((noinline)) PyObject *
phased_call_watched(Phased *phased, WatchThread *thread, PyObject *const *arguments, size_t count,
                    PyObject *keywords)
{
    Watch *watch = phased->watch;
    PyObject *first = PyVectorcall_NARGS(count) > 0 ? arguments[0] : Py_None;
    if (phased->begun != NULL)
        watch_call_back(watch, phased->begun, &first, 1);
    int outer = thread->phase;
    int recorded = watch->recorder->enabled;
    int outermost_backward = phased->phase == BACKWARD_PHASE && !thread->in_backward;
    uint64_t began_ns = thread_switch(thread, thread->held ? outer : phased->phase);
    if (recorded)
        recorder_enter(watch->recorder, watch->scopes[phased->phase], NULL);
    if (outermost_backward)
        thread->in_backward = 1;
    PyObject *result = call_function(phased->base.function, arguments, count, keywords);
    if (outermost_backward) {
        thread->in_backward = 0;
        if (thread->marks_met > 0)
            backward_ended(thread, recorder_now_ns(watch->recorder) - began_ns);
    }
    if (recorded && watch->recorder->enabled)
        recorder_exit(watch->recorder, watch->scopes[phased->phase], 0);
    uint64_t ended_ns = thread_switch(thread, outer);
    if (phased->ended != NULL) {
        PyObject *duration = PyLong_FromUnsignedLongLong(ended_ns - began_ns);
        PyObject *told[] = {first, result == NULL ? Py_None : result, duration,
                            result == NULL ? Py_True : Py_False};
        if (duration != NULL)
            watch_call_back(watch, phased->ended, told, 4);
        else
            PyErr_Clear();
        Py_XDECREF(duration);
    }
    return result;
}

static PyObject *
phased_call(PyObject *self, PyObject *const *arguments, size_t count, PyObject *keywords)
{
    Phased *phased = (Phased *)self;
    if (LIKELY(phased->watch->active)) {
        WatchThread *thread = watch_thread(phased->watch);
        if (LIKELY(thread != NULL) && !((phased->keeps >> thread->phase) & 1))
            return phased_call_watched(phased, thread, arguments, count, keywords);
    }
    return call_function(phased->base.function, arguments, count, keywords);
}

static int
phased_traverse(Phased *self, visitproc visit, void *arg)
{
    Py_VISIT(self->begun);
    Py_VISIT(self->ended);
    return profiled_traverse(&self->base, visit, arg);
}

static int
phased_clear(Phased *self)
{
    Py_CLEAR(self->begun);
    Py_CLEAR(self->ended);
    return profiled_clear(&self->base);
}

static void
phased_dealloc(Phased *self)
{
    PyObject_GC_UnTrack(self);
    Py_CLEAR(self->begun);
    Py_CLEAR(self->ended);
    Py_CLEAR(self->watch);
    profiled_dealloc(&self->base);
}

/* Tables that others keep by function (torch's overrides, say) must find ours like theirs. */
static PyObject *
wrapper_compare(PyObject *one, PyObject *other, int operation)
{
    if (operation != Py_EQ && operation != Py_NE)
        Py_RETURN_NOTIMPLEMENTED;
    PyObject *theirs = ((Profiled *)one)->function;
    int equal = one == other || theirs == other ||
                (Py_TYPE(one) == Py_TYPE(other) && theirs == ((Profiled *)other)->function);
    return PyBool_FromLong(equal == (operation == Py_EQ));
}

static Py_hash_t
wrapper_hash(PyObject *self)
{
    return PyObject_Hash(((Profiled *)self)->function);
}

static PyTypeObject Phased_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "pyrometer._native.core.Phased",
    .tp_doc = "A function that is a phase of the program while it runs.",
    .tp_base = &Profiled_Type,
    .tp_basicsize = sizeof(Phased),
    .tp_dealloc = (destructor)phased_dealloc,
    .tp_vectorcall_offset = offsetof(Profiled, vectorcall),
    .tp_call = PyVectorcall_Call,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL |
                Py_TPFLAGS_METHOD_DESCRIPTOR | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_traverse = (traverseproc)phased_traverse,
    .tp_clear = (inquiry)phased_clear,
    .tp_richcompare = wrapper_compare,
    .tp_hash = wrapper_hash,
    .tp_descr_get = profiled_get,
};

/* A new wrapper of the given type around a function, dressed like it; the rest is the caller's. */
static Profiled *
wrapper_new(PyTypeObject *type, Watch *watch, PyObject *function, vectorcallfunc vectorcall)
{
    Profiled *wrapper = (Profiled *)type->tp_alloc(type, 0);
    if (wrapper == NULL)
        return NULL;
    wrapper->function = Py_NewRef(function);
    wrapper->enabled = &watch->active;
    wrapper->vectorcall = vectorcall;
    PyObject *functools = PyImport_ImportModule("functools");
    PyObject *dressed =
        functools == NULL ? NULL
                          : PyObject_CallMethod(functools, "update_wrapper", "OO", wrapper, function);
    Py_XDECREF(functools);
    if (dressed == NULL) {
        Py_DECREF(wrapper);
        return NULL;
    }
    Py_DECREF(dressed);
    return wrapper;
}

#endif
