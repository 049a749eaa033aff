/* The scope recorder in C: what twin.py does, at a fraction of its cost.
 *
 * Threads: each thread writes only to its own strand, without a lock. Everything that looks at
 * other threads' strands (snapshot, stop, reset, folding) runs with the GIL held and never gives
 * it up half-way. The module does not declare itself safe without the GIL, so a free-threaded
 * build switches the GIL on when it is imported.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stddef.h>

#include "before.h"
#include "frame_locals.h"
#include "counting.h"
#include "known_work.h"
#include "perf_counters.h"
#include "profiled.h"
#include "sampler_type.h"
#include "sigterm.h"
#include "snapshot.h"
#include "valgrind_requests.h"

/* Position. */

static void
position_dealloc(Position *self)
{
    if (self->epoch == self->recorder->epoch)
        self->node->references--;
    Py_DECREF(self->recorder);
    PyObject_Free(self);
}

static PyTypeObject Position_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "pyrometer._native.core.Position",
    .tp_doc = "A place in the call tree that a new thread can hang under.",
    .tp_basicsize = sizeof(Position),
    .tp_dealloc = (destructor)position_dealloc,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
};

/* Recorder. */

/* One that no recorder that is on has, or -1. */
static int
free_mark(void)
{
    for (int mark = 0; mark < HIGH_MARKS; mark++) {
        const Recorder *holder = alive_recorders;
        while (holder != NULL && holder->mark != mark)
            holder = holder->next_alive;
        if (holder == NULL)
            return mark;
    }
    return -1;
}

/* Only while it is on; what its threads have begun to record goes on with it. */
static void
recorder_take_mark(Recorder *self, int mark)
{
    self->mark = mark;
    for (Py_ssize_t i = 0; i < self->strand_count; i++)
        self->strands[i]->mark = mark;
}

static PyObject *
recorder_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"clock", "max_nodes", "max_depth", "suspends", NULL};
    PyObject *clock = Py_None;
    int suspends = 1;
    unsigned long long max_nodes = 20000;
    Py_ssize_t max_depth = 1000;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "|$OKnp", names, &clock, &max_nodes, &max_depth,
                                     &suspends))
        return NULL;
    Recorder *self = (Recorder *)type->tp_alloc(type, 0);
    if (self == NULL)
        return NULL;
    self->clock = clock == Py_None ? NULL : Py_NewRef(clock);
    self->max_nodes = max_nodes;
    self->max_depth = max_depth;
    self->suspends = suspends;
    self->generation = 1;
    self->ground = calloc(1, sizeof(Shared));
    if (self->ground == NULL) {
        Py_DECREF(self);
        return PyErr_NoMemory();
    }
    self->mark = -1;
    self->next_alive = alive_recorders;
    alive_recorders = self;
    return (PyObject *)self;
}

static void
unlink_started(Recorder *recorder)
{
    if (!recorder->suspends)
        return;
    for (Recorder **link = &started_recorders; *link != NULL; link = &(*link)->next_started) {
        if (*link == recorder) {
            *link = recorder->next_started;
            break;
        }
    }
    if (started_recorders == NULL)
        end_watching();
}

static void
recorder_drop_segments(Recorder *recorder)
{
    for (size_t i = 0; i < recorder->segment_capacity; i++) {
        for (Segment *segment = recorder->segments[i]; segment != NULL;) {
            Segment *next = segment->next;
            Py_XDECREF(segment->weak);
            free(segment);
            segment = next;
        }
        recorder->segments[i] = NULL;
    }
    recorder->segment_count = 0;
}

static void
recorder_dealloc(Recorder *self)
{
    if (self->enabled)
        unlink_started(self);
    for (Recorder **link = &alive_recorders; *link != NULL; link = &(*link)->next_alive) {
        if (*link == self) {
            *link = self->next_alive;
            break;
        }
    }
    recorder_drop_segments(self);
    free(self->segments);
    unsigned long thread_id = PyThread_get_thread_ident();
    Released released = {0};
    for (Py_ssize_t i = 0; i < self->strand_count; i++) {
        Strand *strand = self->strands[i];
        if (current_strand == strand)
            current_strand = NULL;
        if (strand->ended || strand->thread_id == thread_id) {
            strand_free(strand, &released);
        }
        else {
            /* Another thread may still point at it: leave an empty shell that belongs to nobody. */
            strand_empty(strand, &released);
            strand->recorder = NULL;
        }
    }
    free(self->strands);
    shared_free(self->ground);
    Py_XDECREF(self->clock);
    call_log_free(self->log);
    Py_TYPE(self)->tp_free((PyObject *)self);
    release_now(&released);
}

static PyObject *
recorder_start(Recorder *self, PyObject *nothing)
{
    if (self->starts++ == 0) {
        clock_calibrate();
        if (self->suspends) {
            if (started_recorders == NULL)
                begin_watching();
            self->next_started = started_recorders;
            started_recorders = self;
        }
        if (!self->has_home) {
            self->has_home = 1;
            self->home_thread_id = PyThread_get_thread_ident();
        }
        recorder_take_mark(self, free_mark());
        self->lacks_peaks |= self->mark < 0;
        self->counted_kinds |= counted_kinds;
        self->started_ns = recorder_now_ns(self);
        self->run++;
        self->enabled = 1;
    }
    Py_RETURN_NONE;
}

static PyObject *
recorder_stop(Recorder *self, PyObject *nothing)
{
    if (self->starts == 0 || --self->starts > 0)
        Py_RETURN_NONE;
    Released released = {0};
    uint64_t now_ns = recorder_now_ns(self);
    self->enabled = 0;
    self->run++;
    unlink_started(self);
    self->profiled_ns += now_ns - self->started_ns;
    for (Py_ssize_t i = 0; i < self->strand_count; i++) {
        Strand *strand = self->strands[i];
        strand_close_all(strand, strand->ended ? strand->ended_ns : now_ns, &released);
    }
    for (size_t i = 0; i < self->segment_capacity; i++) {
        for (Segment *segment = self->segments[i]; segment != NULL;) {
            Segment *next = segment->next;
            segment_give_up(segment, now_ns);
            segment = next;
        }
        self->segments[i] = NULL;
    }
    self->segment_count = 0;
    recorder_take_mark(self, -1);
    release_now(&released);
    Py_RETURN_NONE;
}

static PyObject *
recorder_reset(Recorder *self, PyObject *nothing)
{
    Released released = {0};
    recorder_drop_segments(self);
    self->run++;
    self->epoch++;
    self->generation++;
    Py_ssize_t kept = 0;
    for (Py_ssize_t i = 0; i < self->strand_count; i++) {
        Strand *strand = self->strands[i];
        if (strand->ended) {
            strand_free(strand, &released);
        }
        else {
            strand_empty(strand, &released);
            if (!self->has_home || strand->thread_id != self->home_thread_id)
                strand->root->shared = self->ground;
            self->strands[kept++] = strand;
        }
    }
    self->strand_count = kept;
    shared_clear(self->ground);
    self->node_count = self->entries = 0;
    self->places_lost = self->depth_lost = self->strands_lost = 0;
    self->out_of_order = self->unmatched_exits = self->unseen_suspensions = 0;
    self->profiled_ns = 0;
    self->lacks_peaks = self->enabled && self->mark < 0;
    self->counted_kinds = self->enabled ? counted_kinds : 0;
    self->started_ns = recorder_now_ns(self);
    release_now(&released);
    Py_RETURN_NONE;
}

static PyObject *
recorder_scope(Recorder *self, PyObject *name)
{
    name = scope_name(name);
    if (name == NULL)
        return NULL;
    Scope *scope = scope_new(self, name);
    Py_DECREF(name);
    return (PyObject *)scope;
}

static PyObject *
recorder_profiled(Recorder *self, PyObject *arguments)
{
    PyObject *function, *name;
    if (!PyArg_ParseTuple(arguments, "OO", &function, &name))
        return NULL;
    Scope *scope = (Scope *)recorder_scope(self, name);
    if (scope == NULL)
        return NULL;
    Profiled *profiled = PyObject_GC_New(Profiled, &Profiled_Type);
    if (profiled == NULL) {
        Py_DECREF(scope);
        return NULL;
    }
    profiled->function = Py_NewRef(function);
    profiled->scope = scope;
    profiled->enabled = &self->enabled;
    profiled->dict = NULL;
    profiled->weak_references = NULL;
    profiled->vectorcall = profiled_vectorcall();
    PyObject_GC_Track(profiled);
    PyObject *functools = PyImport_ImportModule("functools");
    PyObject *result =
        functools == NULL ? NULL : PyObject_CallMethod(functools, "update_wrapper", "OO", profiled, function);
    Py_XDECREF(functools);
    Py_DECREF(profiled);
    return result;
}

static PyObject *
recorder_position(Recorder *self, PyObject *nothing)
{
    Strand *strand = self->enabled ? recorder_find_strand(self) : NULL;
    if (strand == NULL)
        Py_RETURN_NONE;
    Node *node = strand->frames[strand->depth].node;
    if (node == strand->root)
        node = strand->parent;
    if (node == NULL)
        Py_RETURN_NONE;
    Position *position = PyObject_New(Position, &Position_Type);
    if (position == NULL)
        return NULL;
    position->recorder = (Recorder *)Py_NewRef(self);
    position->node = node;
    position->epoch = self->epoch;
    node->references++;
    return (PyObject *)position;
}

static PyObject *
recorder_enter_position(Recorder *self, PyObject *position)
{
    Strand *outer = recorder_find_strand(self);
    Strand *strand = recorder_make_strand(self, position == Py_None ? NULL : position);
    if (strand == NULL)
        Py_RETURN_FALSE;
    strand->outer = outer;
    current_strand = strand;
    Py_RETURN_TRUE;
}

static PyObject *
recorder_leave_position(Recorder *self, PyObject *nothing)
{
    Strand *strand = recorder_find_strand(self);
    if (strand == NULL)
        Py_RETURN_NONE;
    Released released = {0};
    strand->ended_ns = recorder_now_ns(self);
    strand_close_all(strand, strand->ended_ns, &released);
    strand->ended = 1;
    current_strand = strand->outer;
    release_now(&released);
    Py_RETURN_NONE;
}

static PyObject *
recorder_now(Recorder *self, PyObject *nothing)
{
    clock_calibrate();
    return PyLong_FromUnsignedLongLong(recorder_now_ns(self));
}

/* All open calls begin so much later, so each still has room for what was called inside it. */
static PyObject *
recorder_leave_out(Recorder *self, PyObject *duration)
{
    uint64_t duration_ns = PyLong_AsUnsignedLongLong(duration);
    if (duration_ns == (uint64_t)-1 && PyErr_Occurred())
        return NULL;
    if (!self->enabled)
        Py_RETURN_NONE;
    Strand *strand = recorder_find_strand(self);
    for (Py_ssize_t depth = strand == NULL ? 0 : strand->depth; depth > 0; depth--)
        strand->frames[depth].slice_start_ns += duration_ns;
    if (self->has_home && self->home_thread_id == PyThread_get_thread_ident())
        self->started_ns += duration_ns;
    Py_RETURN_NONE;
}

static PyObject *
recorder_start_log(Recorder *self, PyObject *limit)
{
    size_t most = PyLong_AsSize_t(limit);
    if (most == (size_t)-1 && PyErr_Occurred())
        return NULL;
    CallLog *log = call_log_new(most);
    if (log == NULL)
        return PyErr_NoMemory();
    call_log_free(self->log);
    self->log = log;
    Py_RETURN_NONE;
}

static PyObject *
recorder_take_log(Recorder *self, PyObject *nothing)
{
    CallLog *log = self->log;
    if (log == NULL)
        return Py_BuildValue("([]i)", 0);
    uint64_t now_ns = recorder_now_ns(self);
    self->log = NULL;
    for (Py_ssize_t i = 0; i < self->strand_count; i++) {
        const Strand *strand = self->strands[i];
        for (Py_ssize_t depth = strand->depth; depth > 0; depth--) {
            const Frame *frame = &strand->frames[depth];
            if (!frame->ghost)
                call_log_add(log, frame->node->name, strand->thread_id, depth, frame->slice_start_ns, now_ns);
        }
    }
    PyObject *calls = call_log_as_list(log);
    unsigned long long lost = log->lost;
    call_log_free(log);
    return calls == NULL ? NULL : Py_BuildValue("(NK)", calls, lost);
}

static PyObject *
recorder_get_enabled(Recorder *self, void *closure)
{
    return PyBool_FromLong(self->enabled);
}

static PyMethodDef recorder_methods[] = {
    {"start", (PyCFunction)recorder_start, METH_NOARGS, "Switch on. Starts nest: it takes as many stops to switch off."},
    {"stop", (PyCFunction)recorder_stop, METH_NOARGS, "Switch off; scopes still open are kept, as open, with their time so far."},
    {"reset", (PyCFunction)recorder_reset, METH_NOARGS, "Forget everything recorded; scopes open now are not seen again."},
    {"scope", (PyCFunction)recorder_scope, METH_O, "scope($self, name, /)\n--\n\nA named stretch of code, to be used with `with`."},
    {"profiled", (PyCFunction)recorder_profiled, METH_VARARGS, "The function, each call of it a scope."},
    {"position", (PyCFunction)recorder_position, METH_NOARGS, "Where the calling thread is now, for a thread it starts; None outside any scope."},
    {"enter_position", (PyCFunction)recorder_enter_position, METH_O, "From now on the calling thread works for the scope at the position; False if it cannot."},
    {"leave_position", (PyCFunction)recorder_leave_position, METH_NOARGS, "Undo the last enter_position of the calling thread."},
    {"now", (PyCFunction)recorder_now, METH_NOARGS, "What its clock says, in nanoseconds."},
    {"leave_out", (PyCFunction)recorder_leave_out, METH_O, "leave_out($self, duration_ns, /)\n--\n\nThe calling thread was at work of the profiler's for so long: no time of what it has open."},
    {"start_log", (PyCFunction)recorder_start_log, METH_O, "Keep single calls from now on, so many at most; what was kept is forgotten."},
    {"take_log", (PyCFunction)recorder_take_log, METH_NOARGS, "(calls, how many found no room); those still open end now, and no more are kept."},
    {"snapshot", (PyCFunction)recorder_snapshot, METH_NOARGS, "Everything recorded so far, open scopes included, as plain values."},
    {NULL},
};

static PyGetSetDef recorder_attributes[] = {
    {"enabled", (getter)recorder_get_enabled, NULL, "Whether it is recording."},
    {NULL},
};

static PyTypeObject Recorder_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "pyrometer._native.core.Recorder",
    .tp_doc = "Keeps a call tree per thread, aggregated as it happens.",
    .tp_basicsize = sizeof(Recorder),
    .tp_dealloc = (destructor)recorder_dealloc,
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_methods = recorder_methods,
    .tp_getset = recorder_attributes,
    .tp_new = recorder_new,
};

/* Needs the recorder's type. */
#include "imports.h"
#include "watch_type.h"

static PyMethodDef core_functions[] = {
    {"frame_locals", frame_locals, METH_O, frame_locals_doc},
    {"watch_sigterm", watch_sigterm, METH_O, watch_sigterm_doc},
    {"sigterm_heard", sigterm_heard, METH_NOARGS, sigterm_heard_doc},
    {"unwatch_sigterm", unwatch_sigterm, METH_NOARGS, unwatch_sigterm_doc},
    COUNTING_FUNCTIONS,
    {"executing", executing, METH_VARARGS, executing_doc},
    {"known_work", known_work, METH_NOARGS, known_work_doc},
    {"on_valgrind", on_valgrind, METH_NOARGS, on_valgrind_doc},
    {"start_callgrind", start_callgrind, METH_NOARGS, start_callgrind_doc},
    {"stop_callgrind", stop_callgrind, METH_NOARGS, stop_callgrind_doc},
    {"dump_callgrind", dump_callgrind, METH_NOARGS, dump_callgrind_doc},
    {"leave_thread_out", leave_thread_out, METH_NOARGS, leave_thread_out_doc},
    {"count_scope", count_scope, METH_O, count_scope_doc},
    {NULL},
};

static struct PyModuleDef core_module = {
    PyModuleDef_HEAD_INIT,
    .m_name = "pyrometer._native.core",
    .m_doc = "The scope recorder in C; twin.py is its specification.",
    .m_size = -1,
    .m_methods = core_functions,
};

static int
import_threads(void)
{
    PyObject *module = PyImport_ImportModule("pyrometer._native.threads");
    if (module == NULL)
        return -1;
    describe_current_thread = PyObject_GetAttrString(module, "describe_current_thread");
    Py_DECREF(module);
    return describe_current_thread == NULL ? -1 : 0;
}

PyMODINIT_FUNC
PyInit_core(void)
{
    clock_prepare();
    other_name = PyUnicode_InternFromString("(other)");
    ellipsis = PyUnicode_InternFromString("\xe2\x80\xa6");
    name_dunder_name = PyUnicode_InternFromString("__name__");
    if (other_name == NULL || ellipsis == NULL || name_dunder_name == NULL || owner_prepare() < 0 ||
        import_threads() < 0 || watch_prepare() != 0)
        return NULL;
    PyTypeObject *types[] = {&Recorder_Type, &Scope_Type,  &Position_Type,   &Profiled_Type,     &Before_Type,
                             &Watch_Type,    &Phased_Type, &ModuleCall_Type, &BackwardMark_Type, &Executing_Type};
    PyObject *module = PyModule_Create(&core_module);
    if (module == NULL)
        return NULL;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        if (PyModule_AddType(module, types[i]) < 0) {
            Py_DECREF(module);
            return NULL;
        }
    }
#if defined(__linux__)
    if (PyModule_AddType(module, &PerfCounters_Type) < 0) {
        Py_DECREF(module);
        return NULL;
    }
#endif
#if STACKS_CAN_BE_READ
    if (PyModule_AddType(module, &Sampler_Type) < 0) {
        Py_DECREF(module);
        return NULL;
    }
#endif
    if (PyModule_AddStringConstant(module, "KIND", "native") < 0 ||
        PyModule_AddStringConstant(module, "CLOCK", clock_uses_counter ? "tsc" : "clock_gettime") < 0) {
        Py_DECREF(module);
        return NULL;
    }
    return module;
}
