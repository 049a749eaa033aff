/* Phases: what a thread of the program is at, one thing at a time, and the functions that begin
 * and end them. An inner phase takes its time away from the outer one, so that the phases of a
 * thread always sum to the time that went by. twin_watch.py is the specification. */
#ifndef PYROMETER_WATCH_H
#define PYROMETER_WATCH_H

#include <pthread.h>

#include "allocations.h"
#include "before.h"
#include "phase_memory.h"
#include "profiled.h"

#define MAX_PHASES 32
/* The order in which Python names the phases: record/torch_run.py, behind "other". */
enum { OTHER_PHASE = 0, FORWARD_PHASE = 3, LOSS_PHASE = 4, BACKWARD_PHASE = 5, OPTIMIZER_PHASE = 7 };
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

/* What the usual loop is made of: loop.h. */
#define MAX_STRETCHES 64
#define MAX_LOOP_ROOTS 4
#define MAX_OPEN_STEPS 8
#define MAX_KNOWN_OPTIMIZERS 8
#define CATCH_UP_NS 100000000
#define CATCH_UP_AT_LAST_NS 2000000000

/* What has happened up to an optimizer's return, or up to now. */
typedef struct {
    int fetch_begun;
    unsigned int batches, forward_calls, backward_passes;
    int64_t samples, tokens; /* -1: not known */
    int root_count;
    PyObject *roots[MAX_LOOP_ROOTS];
    PyObject *optimizer; /* its name; NULL up to now */
    uint64_t ended_ns;
} LoopStretch;

typedef struct {
    PyObject *optimizer; /* compared, never followed */
    int outer, found;
    int depth; /* in calls, of what torch's hooks tell; IN_OUR_CALL for a step that ends in sight */
    uint64_t run;
} OpenStep;

#define IN_OUR_CALL INT_MIN

typedef struct {
    unsigned long thread_id;
    int python_ahead; /* Python knows more of the stretch under way than stands here */
    PyObject *iterator; /* of a loader whose batches need no closer look; compared, never followed */
    LoopStretch now;
    LoopStretch done[MAX_STRETCHES];
    uint64_t *figures; /* of those that are done: time, bytes and allocations by phase */
    int done_count;
    uint64_t caught_up_ns;
    uint64_t fetches, wait_ns;
    OpenStep open_steps[MAX_OPEN_STEPS];
    int open_count;
} Loop;

typedef struct {
    PyObject *optimizer, *weak, *name;
} KnownOptimizer;

/* Who still points at a WatchThread: the last to let go frees it. */
enum { HELD_BY_THREAD = 1, HELD_BY_WATCH = 2 };

typedef struct WatchThread {
    struct Watch *watch; /* NULL once that is gone */
    struct WatchThread *next;
    struct WatchThread *next_here; /* of the same thread, for another watch */
    int holders;
    int phase; /* what time is charged to */
    int found; /* what the functions the thread is in say: the same, unless a phase is held */
    int held;  /* inside a phase the program named itself: found ones do not take it over */
    int recount; /* began anew on another thread, which cannot see what this one has allocated */
    uint64_t switched_ns;
    Counters switched;
    uint64_t phase_ns[MAX_PHASES], phase_bytes[MAX_PHASES], phase_allocations[MAX_PHASES];
    PhaseMemory phase_memory[MAX_PHASES];
    Py_ssize_t module_depth;
    OpenModule modules[MAX_MODULE_DEPTH];
    Scope *backward_path[MAX_MODULE_DEPTH]; /* open under the backward phase */
    size_t backward_depth;
    uint64_t backward_run; /* of the recorder, in which they were opened */
    int in_backward;
    uint64_t marks_met; /* in this backward pass */
    Loop loop;
} WatchThread;

typedef struct Watch {
    PyObject_HEAD
    int active;
    int detail; /* how closely the step under way is looked at */
    uint64_t starts; /* changes when all begins anew: what is open then is not seen again */
    Recorder *recorder;
    PyObject *failed; /* called with an error of one of our own callbacks */
    PyObject *tensor_type;
    Scope *scopes[MAX_PHASES];
    Scope *untracked_forward; /* root calls without gradients, in the phase forward */
    Scope *recomputed;        /* modules called again by the backward pass */
    int phase_count;
    PhaseMemory phase_memory[MAX_PHASES]; /* of threads that have begun anew */
    uint64_t hook_ns;
    uint64_t timed_backward_passes, timed_backward_ns;
    WatchThread *threads;
    struct ModuleEntry **entries; /* by address: an open hash table */
    size_t entry_capacity, entry_count;
    uint64_t *marked; /* nodes marked in this step: an open hash set, 0 is free */
    size_t marked_capacity, marked_count;
    PyObject *catch_up;    /* (thread_id, stretches, now, fetches, wait_ns), or NULL: Python is told of all */
    PyObject *token_types; /* what numbers tokens are */
    PyObject *is_overridden; /* asks whether torch tells the program of all that is asked of tensors; or NULL */
    PyObject *unheard; /* makes what keeps torch from telling it, as a context; or NULL */
    uint64_t stretches_due; /* after so many more Python is told of everything again */
    PyObject *stepped; /* (optimizer): the end of its step ends a stretch that Python knows; or NULL */
    KnownOptimizer optimizers[MAX_KNOWN_OPTIMIZERS];
    unsigned next_optimizer;
} Watch;

THREAD_LOCAL WatchThread *current_watch_thread;
static pthread_key_t watch_threads_key; /* the first of the calling thread's own */

static inline uint64_t
elapsed_ns(uint64_t began_ns, uint64_t ended_ns)
{
    return LIKELY(ended_ns > began_ns) ? ended_ns - began_ns : 0;
}

/* Threads. */

static void
thread_let_go(WatchThread *thread, int holder)
{
    if (__atomic_fetch_and(&thread->holders, ~holder, __ATOMIC_ACQ_REL) == holder)
        free(thread);
}

/* Runs without the GIL, when the thread is all but gone. */
static void
watch_thread_ended(void *first)
{
    current_watch_thread = NULL;
    for (WatchThread *thread = first; thread != NULL;) {
        WatchThread *next = thread->next_here;
        thread_let_go(thread, HELD_BY_THREAD);
        thread = next;
    }
}

static void
thread_drop_path(WatchThread *thread)
{
    while (thread->backward_depth > 0)
        Py_DECREF(thread->backward_path[--thread->backward_depth]);
}

static void loop_forget(Loop *loop);

static void
thread_begin_anew(WatchThread *thread, uint64_t now_ns)
{
    thread_drop_path(thread);
    loop_forget(&thread->loop);
    thread->phase = thread->found = OTHER_PHASE;
    thread->held = thread->in_backward = 0;
    thread->module_depth = 0;
    thread->marks_met = 0;
    thread->switched_ns = now_ns;
    thread->recount = 1;
    memset(thread->phase_ns, 0, sizeof thread->phase_ns);
    memset(thread->phase_bytes, 0, sizeof thread->phase_bytes);
    memset(thread->phase_allocations, 0, sizeof thread->phase_allocations);
    phase_memory_add(thread->watch->phase_memory, thread->phase_memory, MAX_PHASES);
    memset(thread->phase_memory, 0, sizeof thread->phase_memory);
}

static void
thread_look_at_allocations(WatchThread *thread)
{
    thread->switched = thread_memory.counters;
    thread->recount = 0;
}

/* One that a thread of the watch has left behind, or a new one. */
static WatchThread *
watch_free_thread(Watch *watch)
{
    for (WatchThread *thread = watch->threads; thread != NULL; thread = thread->next)
        if (!(__atomic_load_n(&thread->holders, __ATOMIC_ACQUIRE) & HELD_BY_THREAD))
            return thread;
    WatchThread *thread = calloc(1, sizeof *thread);
    if (thread == NULL)
        return NULL;
    thread->watch = watch;
    thread->next = watch->threads;
    watch->threads = thread;
    return thread;
}

static void loop_settle_ended(Watch *watch);

static __attribute__((noinline)) WatchThread *
watch_find_thread(Watch *watch)
{
    loop_settle_ended(watch);
    WatchThread *first = pthread_getspecific(watch_threads_key);
    WatchThread *found = NULL;
    for (WatchThread **link = &first; *link != NULL;) {
        WatchThread *thread = *link;
        if (thread->watch == NULL) {
            *link = thread->next_here;
            thread_let_go(thread, HELD_BY_THREAD);
            continue;
        }
        if (thread->watch == watch)
            found = thread;
        link = &thread->next_here;
    }
    if (found == NULL) {
        uint64_t now_ns = recorder_now_ns(watch->recorder);
        found = watch_free_thread(watch);
        if (found != NULL) {
            __atomic_store_n(&found->holders, HELD_BY_THREAD | HELD_BY_WATCH, __ATOMIC_RELEASE);
            found->next_here = first;
            first = found;
            thread_begin_anew(found, now_ns);
            thread_look_at_allocations(found);
            found->loop.thread_id = PyThread_get_thread_ident();
        }
    }
    pthread_setspecific(watch_threads_key, first);
    current_watch_thread = found;
    return found;
}

static inline WatchThread *
watch_thread(Watch *watch)
{
    WatchThread *thread = current_watch_thread;
    return LIKELY(thread != NULL && thread->watch == watch) ? thread : watch_find_thread(watch);
}

/* Every thread is in no phase from now on, and what is open is not seen again. */
static void
watch_begin_anew(Watch *watch)
{
    uint64_t now_ns = recorder_now_ns(watch->recorder);
    watch->starts++;
    for (WatchThread *thread = watch->threads; thread != NULL; thread = thread->next)
        thread_begin_anew(thread, now_ns);
    WatchThread *here = watch_thread(watch); /* the others are watched from where they are first seen */
    if (here != NULL)
        thread_look_at_allocations(here);
}

static void
thread_charge_memory(WatchThread *thread, int phase)
{
    const Allocations *tensors = &thread_memory.counters.tensors;
    thread->phase_bytes[phase] += tensors->bytes - thread->switched.tensors.bytes;
    thread->phase_allocations[phase] += tensors->calls - thread->switched.tensors.calls;
    phase_memory_charge(&thread->phase_memory[phase], &thread->switched);
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
    if (counters_events(&thread_memory.counters) != counters_events(&thread->switched)) {
        if (LIKELY(!thread->recount))
            thread_charge_memory(thread, phase);
        thread_look_at_allocations(thread);
    }
    thread->recount = 0;
    return now_ns;
}

static inline uint64_t
thread_switch(WatchThread *thread, int phase)
{
    uint64_t now_ns = thread_charge(thread);
    thread->phase = phase;
    return now_ns;
}

/* Recording. */

#define NOT_RECORDED UINT64_MAX

/* Enters the scope. Returns the recorder's run, for close_call. */
static inline uint64_t
open_call(Recorder *recorder, Scope *scope)
{
    if (UNLIKELY(!recorder->enabled))
        return NOT_RECORDED;
    uint64_t run = recorder->run;
    recorder_enter(recorder, scope, NULL);
    return run;
}

/* Leaves it, unless the recorder was stopped or reset meanwhile, and so has left it already. */
static inline void
close_call(Recorder *recorder, Scope *scope, uint64_t run)
{
    if (LIKELY(recorder->run == run))
        recorder_exit(recorder, scope, 0);
}

/* Our own callbacks. */

static void
forget_error(SavedError error)
{
#if PY_VERSION_HEX >= 0x030C0000
    Py_XDECREF(error);
#else
    Py_XDECREF(error.type);
    Py_XDECREF(error.value);
    Py_XDECREF(error.traceback);
#endif
}

/* The program goes on with its own error, unless a new one, of its signal handlers, is set. */
static inline int
settle_error(SavedError error, int outcome)
{
    if (LIKELY(outcome == 0))
        restore_error(error);
    else
        forget_error(error);
    return outcome;
}

/* The error that is set, as an exception with its traceback; it is set no more. */
static PyObject *
take_error(void)
{
#if PY_VERSION_HEX >= 0x030C0000
    return PyErr_GetRaisedException();
#else
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    if (value != NULL && traceback != NULL)
        PyException_SetTraceback(value, traceback);
    Py_XDECREF(type);
    Py_XDECREF(traceback);
    return value;
#endif
}

/* What one of our callbacks raised goes to `failed`. But what is no Exception came out of a signal
 * handler of the program's: it stays set, and -1 says so. */
static int
watch_note_failure(Watch *watch)
{
    if (!PyErr_ExceptionMatches(PyExc_Exception))
        return -1;
    PyObject *error = take_error();
    PyObject *noted = error == NULL || watch->failed == NULL ? Py_NewRef(Py_None)
                                                             : PyObject_CallOneArg(watch->failed, error);
    Py_XDECREF(error);
    if (noted == NULL && !PyErr_ExceptionMatches(PyExc_Exception))
        return -1;
    if (noted == NULL)
        PyErr_Clear();
    Py_XDECREF(noted);
    return 0;
}

/* Calls one of our own callbacks, whatever the program is raising. -1: see watch_note_failure. */
static int
watch_call_back(Watch *watch, PyObject *callback, PyObject *const *arguments, size_t count)
{
    uint64_t began_ns = recorder_now_ns(watch->recorder);
    SavedError error = save_error();
    Py_INCREF(callback); /* it may have itself replaced */
    PyObject *result = PyObject_Vectorcall(callback, arguments, count, NULL);
    Py_DECREF(callback);
    int outcome = LIKELY(result != NULL) ? 0 : watch_note_failure(watch);
    Py_XDECREF(result);
    settle_error(error, outcome);
    watch->hook_ns += elapsed_ns(began_ns, recorder_now_ns(watch->recorder));
    return outcome;
}

/* Tells that a call has ended. Returns its result, NULL for one that raised. */
static PyObject *
watch_tell_end(Watch *watch, PyObject *callback, PyObject *first, PyObject *result, uint64_t duration_ns)
{
    SavedError error = save_error();
    PyObject *duration = PyLong_FromUnsignedLongLong(duration_ns);
    if (UNLIKELY(duration == NULL))
        PyErr_Clear();
    restore_error(error);
    if (UNLIKELY(duration == NULL))
        return result;
    PyObject *told[] = {first, result == NULL ? Py_None : result, duration,
                        result == NULL ? Py_True : Py_False};
    if (watch_call_back(watch, callback, told, 4) < 0)
        Py_CLEAR(result);
    Py_DECREF(duration);
    return result;
}

/* Functions of torch that are a phase while they run. */

typedef struct {
    Profiled base;
    Watch *watch;
    int phase;
    uint32_t keeps; /* phases, by number, that stay what they are while this function runs in them */
    PyObject *begun, *ended;
    int event; /* what it means in the usual loop */
} Phased;

enum { NO_EVENT = 0, FETCH_EVENT = 1, BACKWARD_EVENT = 2 };

static int loop_hand_over(Watch *watch, WatchThread *thread);
static int loop_fetch_begun(Watch *watch, WatchThread *thread, PyObject *iterator);
static int loop_fetched(Watch *watch, WatchThread *thread, PyObject *batch, uint64_t wait_ns);
static int loop_backward_ended(Watch *watch, WatchThread *thread);
static void settle_optimizers(Watch *watch, WatchThread *thread);
static void backward_ended(WatchThread *thread, uint64_t began_ns, int raised);

/* Tells that the call has ended, unless the loop takes note of it by itself. */
static PyObject *
phased_ended(Phased *phased, WatchThread *thread, PyObject *first, int noted, uint64_t duration_ns,
             PyObject *result)
{
    Watch *watch = phased->watch;
    if (result != NULL && noted && loop_fetched(watch, thread, result, duration_ns))
        return result;
    if (result != NULL && phased->event == BACKWARD_EVENT && loop_backward_ended(watch, thread))
        return result;
    if (loop_hand_over(watch, thread) < 0)
        Py_CLEAR(result);
    return watch_tell_end(watch, phased->ended, first, result, duration_ns);
}

/* What we do ourselves before and after is charged to the phase, as by a timer around the call. */
static __attribute__((noinline)) PyObject *
phased_call_watched(Phased *phased, WatchThread *thread, PyObject *const *arguments, size_t count,
                    PyObject *keywords)
{
    Watch *watch = phased->watch;
    Scope *scope = watch->scopes[phased->phase];
    PyObject *first = PyVectorcall_NARGS(count) > 0 ? arguments[0] : Py_None;
    uint64_t began_ns = thread_charge(thread);
    int noted = 0;
    if (phased->begun != NULL) {
        settle_optimizers(watch, thread);
        noted = phased->event == FETCH_EVENT && loop_fetch_begun(watch, thread, first);
    }
    if (phased->begun != NULL && !noted) {
        if (loop_hand_over(watch, thread) < 0)
            return NULL;
        thread->loop.iterator = NULL;
        if (watch_call_back(watch, phased->begun, &first, 1) < 0)
            return NULL;
        if (!watch->active)
            return call_function(phased->base.function, arguments, count, keywords);
        began_ns = recorder_now_ns(watch->recorder);
    }
    uint64_t starts = watch->starts;
    int outer = thread->phase, found = thread->found;
    int stands = thread->held && outer == phased->phase; /* named by the program itself */
    int outermost_backward = phased->phase == BACKWARD_PHASE && !thread->in_backward;
    thread->phase = thread->held ? outer : phased->phase;
    thread->found = phased->phase;
    uint64_t run = stands ? NOT_RECORDED : open_call(watch->recorder, scope);
    if (outermost_backward)
        thread->in_backward = 1;
    PyObject *result = call_function(phased->base.function, arguments, count, keywords);
    if (outermost_backward && watch->starts == starts)
        backward_ended(thread, began_ns, result == NULL);
    close_call(watch->recorder, scope, run);
    if (UNLIKELY(watch->starts != starts))
        return result;
    if (phased->ended != NULL && watch->active) {
        uint64_t duration_ns = elapsed_ns(began_ns, recorder_now_ns(watch->recorder));
        result = phased_ended(phased, thread, first, noted, duration_ns, result);
    }
    if (LIKELY(watch->starts == starts)) {
        thread_switch(thread, outer);
        thread->found = found;
    }
    return result;
}

static PyObject *
phased_call(PyObject *self, PyObject *const *arguments, size_t count, PyObject *keywords)
{
    Phased *phased = (Phased *)self;
    if (LIKELY(phased->watch->active)) {
        WatchThread *thread = watch_thread(phased->watch);
        if (LIKELY(thread != NULL) && !((phased->keeps >> thread->found) & 1))
            return phased_call_watched(phased, thread, arguments, count, keywords);
    }
    return call_function(phased->base.function, arguments, count, keywords);
}

static int
phased_traverse(Phased *self, visitproc visit, void *arg)
{
    Py_VISIT(self->watch);
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

/* What all wrappers are like. */

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

static PyObject *
wrapper_repr(PyObject *self)
{
    return PyObject_Repr(((Profiled *)self)->function);
}

static PyObject *
wrapper_reduce(PyObject *self, PyObject *nothing)
{
    PyObject *module = PyImport_ImportModule("pyrometer._native.wrapping");
    if (module == NULL)
        return NULL;
    PyObject *reduced = PyObject_CallMethod(module, "reduced", "OO", self, ((Profiled *)self)->function);
    Py_DECREF(module);
    return reduced;
}

static PyObject *
wrapper_copy(PyObject *self, PyObject *memo)
{
    return Py_NewRef(self);
}

static PyMethodDef wrapper_methods[] = {
    {"__reduce__", wrapper_reduce, METH_NOARGS, NULL},
    {"__copy__", wrapper_copy, METH_NOARGS, NULL},
    {"__deepcopy__", wrapper_copy, METH_O, NULL},
    {NULL},
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

static PyTypeObject Phased_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "pyrometer._native.core.Phased",
    .tp_doc = "A function that is a phase of the program while it runs.",
    .tp_base = &Profiled_Type,
    .tp_basicsize = sizeof(Phased),
    .tp_dealloc = (destructor)phased_dealloc,
    .tp_vectorcall_offset = offsetof(Profiled, vectorcall),
    .tp_call = PyVectorcall_Call,
    .tp_repr = wrapper_repr,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL |
                Py_TPFLAGS_METHOD_DESCRIPTOR | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_traverse = (traverseproc)phased_traverse,
    .tp_clear = (inquiry)phased_clear,
    .tp_methods = wrapper_methods,
    .tp_richcompare = wrapper_compare,
    .tp_hash = wrapper_hash,
    .tp_descr_get = profiled_get,
};

#endif
