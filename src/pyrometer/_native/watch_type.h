/* The watch as Python sees it. */
#ifndef PYROMETER_WATCH_TYPE_H
#define PYROMETER_WATCH_TYPE_H

#include "module_calls.h"

/* One more phase by that name. Behind the last that fits, all share one. */
static int
watch_add_phase(Watch *watch, PyObject *name)
{
    if (watch->phase_count == MAX_PHASES)
        return MAX_PHASES - 1;
    PyObject *exact = scope_name(name);
    Scope *scope = exact == NULL ? NULL : scope_new(watch->recorder, exact);
    Py_XDECREF(exact);
    if (scope == NULL)
        return -1;
    watch->scopes[watch->phase_count] = scope;
    return watch->phase_count++;
}

static int
watch_traverse(Watch *self, visitproc visit, void *arg)
{
    Py_VISIT(self->failed);
    Py_VISIT(self->tensor_type);
    Py_VISIT(self->catch_up);
    Py_VISIT(self->token_types);
    Py_VISIT(self->is_overridden);
    Py_VISIT(self->unheard);
    Py_VISIT(self->stepped);
    return 0;
}

static int
watch_clear(Watch *self)
{
    Py_CLEAR(self->failed);
    Py_CLEAR(self->tensor_type);
    Py_CLEAR(self->catch_up);
    Py_CLEAR(self->token_types);
    Py_CLEAR(self->is_overridden);
    Py_CLEAR(self->unheard);
    Py_CLEAR(self->stepped);
    return 0;
}

static void
watch_dealloc(Watch *self)
{
    PyObject_GC_UnTrack(self);
    watch_clear(self);
    watch_clear_entries(self);
    free(self->marked);
    for (WatchThread *thread = self->threads; thread != NULL;) {
        WatchThread *next = thread->next;
        thread_drop_path(thread);
        loop_forget(&thread->loop);
        free(thread->loop.figures);
        thread->loop.figures = NULL;
        thread->watch = NULL;
        thread_let_go(thread, HELD_BY_WATCH);
        thread = next;
    }
    for (int i = 0; i < self->phase_count; i++)
        Py_XDECREF(self->scopes[i]);
    for (int i = 0; i < MAX_KNOWN_OPTIMIZERS; i++) {
        Py_XDECREF(self->optimizers[i].weak);
        Py_XDECREF(self->optimizers[i].name);
    }
    Py_XDECREF(self->untracked_forward);
    Py_XDECREF(self->recomputed);
    Py_XDECREF(self->recorder);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyObject *
watch_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"recorder", "phases", "failed", NULL};
    PyObject *recorder, *phases, *failed;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "O!O!O", names, &Recorder_Type, &recorder,
                                     &PyTuple_Type, &phases, &failed))
        return NULL;
    if (PyTuple_GET_SIZE(phases) <= OPTIMIZER_PHASE)
        return PyErr_Format(PyExc_ValueError, "a watch needs at least %d phases, not %zd", OPTIMIZER_PHASE + 1,
                            PyTuple_GET_SIZE(phases));
    Watch *self = (Watch *)type->tp_alloc(type, 0);
    if (self == NULL)
        return NULL;
    self->recorder = (Recorder *)Py_NewRef(recorder);
    self->failed = Py_NewRef(failed);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(phases); i++) {
        if (watch_add_phase(self, PyTuple_GET_ITEM(phases, i)) < 0) {
            Py_DECREF(self);
            return NULL;
        }
    }
    PyObject *untracked = PyUnicode_InternFromString("forward without gradients");
    PyObject *recomputed = PyUnicode_InternFromString("recomputed forward");
    if (untracked != NULL && recomputed != NULL) {
        self->untracked_forward = scope_new(self->recorder, untracked);
        self->recomputed = scope_new(self->recorder, recomputed);
    }
    Py_XDECREF(untracked);
    Py_XDECREF(recomputed);
    if (self->untracked_forward == NULL || self->recomputed == NULL) {
        Py_DECREF(self);
        return PyErr_Occurred() ? NULL : PyErr_NoMemory();
    }
    return (PyObject *)self;
}

static PyObject *
watch_start(Watch *self, PyObject *nothing)
{
    clock_calibrate();
    if (!self->active) {
        watch_begin_anew(self);
        self->active = 1;
    }
    Py_RETURN_NONE;
}

static PyObject *
watch_stop(Watch *self, PyObject *nothing)
{
    self->active = 0;
    self->detail = NO_DETAIL;
    spare_hooks = 0;
    Py_RETURN_NONE;
}

static PyObject *
watch_reset(Watch *self, PyObject *nothing)
{
    watch_begin_anew(self);
    memset(self->phase_memory, 0, sizeof self->phase_memory);
    watch_clear_entries(self);
    forget_marked(self);
    self->hook_ns = self->timed_backward_passes = self->timed_backward_ns = 0;
    Py_RETURN_NONE;
}

static PyObject *
watch_phase(Watch *self, PyObject *name)
{
    int phase = watch_add_phase(self, name);
    return phase < 0 ? NULL : PyLong_FromLong(phase);
}

static Phased *
phased_new(Watch *watch, PyObject *function, int phase, vectorcallfunc call)
{
    Phased *phased = (Phased *)wrapper_new(&Phased_Type, watch, function, call);
    if (phased == NULL)
        return NULL;
    phased->watch = (Watch *)Py_NewRef(watch);
    phased->phase = phase;
    return phased;
}

static PyObject *
watch_step_call(Watch *self, PyObject *function)
{
    return (PyObject *)phased_new(self, function, OPTIMIZER_PHASE, step_call);
}

static PyObject *
watch_phased(Watch *self, PyObject *arguments)
{
    PyObject *function, *begun, *ended;
    int phase, event = NO_EVENT;
    unsigned int keeps;
    if (!PyArg_ParseTuple(arguments, "OiIOO|i", &function, &phase, &keeps, &begun, &ended, &event))
        return NULL;
    if (phase < 0 || phase >= self->phase_count)
        return PyErr_Format(PyExc_ValueError, "there is no phase %d", phase);
    Phased *phased = phased_new(self, function, phase, phased_call);
    if (phased == NULL)
        return NULL;
    phased->keeps = keeps | 1u << phase;
    phased->begun = begun == Py_None ? NULL : Py_NewRef(begun);
    phased->ended = ended == Py_None ? NULL : Py_NewRef(ended);
    phased->event = event;
    return (PyObject *)phased;
}

static PyObject *
watch_module_call(Watch *self, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"function", "keeps", "describe", "root_begun", "root_ended", "measure",
                            "tracks_gradients", "sequence_number", NULL};
    PyObject *function, *describe, *root_begun, *root_ended, *measure, *tracks_gradients, *sequence_number;
    unsigned int keeps;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "OIOOOOOO", names, &function, &keeps, &describe,
                                     &root_begun, &root_ended, &measure, &tracks_gradients,
                                     &sequence_number))
        return NULL;
    ModuleCall *call = (ModuleCall *)wrapper_new(&ModuleCall_Type, self, function, module_call);
    if (call == NULL)
        return NULL;
    call->watch = (Watch *)Py_NewRef(self);
    call->keeps = keeps;
    call->describe = Py_NewRef(describe);
    call->root_begun = Py_NewRef(root_begun);
    call->root_ended = Py_NewRef(root_ended);
    call->measure = Py_NewRef(measure);
    call->tracks_gradients = Py_NewRef(tracks_gradients);
    call->sequence_number = Py_NewRef(sequence_number);
    return (PyObject *)call;
}

/* What enter() hands out for leave(), from the lowest bit: the phase before, the one found before,
 * the one entered, whether it was held before, and how often watch and recorder had been switched. */
#define PHASE_BITS 5
#define STARTS_SHIFT (3 * PHASE_BITS + 1)
#define STARTS_BITS 22
#define RUN_SHIFT (STARTS_SHIFT + STARTS_BITS)
#define RUN_BITS 24
#define LOW_BITS(value, bits) ((uint64_t)(value) & ((1u << (bits)) - 1))

static PyObject *
watch_enter(Watch *self, PyObject *arguments)
{
    int phase, hold = 0;
    if (!PyArg_ParseTuple(arguments, "i|p", &phase, &hold))
        return NULL;
    if (phase < 0 || phase >= self->phase_count)
        return PyErr_Format(PyExc_ValueError, "there is no phase %d", phase);
    WatchThread *thread = self->active ? watch_thread(self) : NULL;
    if (thread == NULL)
        return PyLong_FromLong(-1);
    int outer = thread->phase, held = thread->held;
    uint64_t token = (uint64_t)outer | (uint64_t)thread->found << PHASE_BITS |
                     (uint64_t)phase << 2 * PHASE_BITS | (uint64_t)held << 3 * PHASE_BITS |
                     LOW_BITS(self->starts, STARTS_BITS) << STARTS_SHIFT;
    thread_switch(thread, held && !hold ? outer : phase);
    if (hold)
        thread->held = 1;
    else
        thread->found = phase;
    int stands = held && outer == phase;
    uint64_t run = stands ? NOT_RECORDED : open_call(self->recorder, self->scopes[phase]);
    return PyLong_FromUnsignedLongLong(token | LOW_BITS(run + 1, RUN_BITS) << RUN_SHIFT);
}

static PyObject *
watch_leave(Watch *self, PyObject *argument)
{
    long long token = PyLong_AsLongLong(argument);
    if (token == -1 && PyErr_Occurred())
        return NULL;
    int outer = (int)LOW_BITS(token, PHASE_BITS), found = (int)LOW_BITS(token >> PHASE_BITS, PHASE_BITS);
    int phase = (int)LOW_BITS(token >> 2 * PHASE_BITS, PHASE_BITS), count = self->phase_count;
    if (token < 0 || !self->active || outer >= count || found >= count || phase >= count)
        Py_RETURN_NONE;
    if ((uint64_t)token >> RUN_SHIFT == LOW_BITS(self->recorder->run + 1, RUN_BITS))
        recorder_exit(self->recorder, self->scopes[phase], 0);
    if (LOW_BITS(token >> STARTS_SHIFT, STARTS_BITS) != LOW_BITS(self->starts, STARTS_BITS))
        Py_RETURN_NONE;
    WatchThread *thread = watch_thread(self);
    if (thread == NULL)
        Py_RETURN_NONE;
    thread_switch(thread, outer);
    thread->found = found;
    thread->held = (int)(token >> 3 * PHASE_BITS & 1);
    Py_RETURN_NONE;
}

static PyObject *
figures_as_tuple(const uint64_t *figures, int count)
{
    PyObject *tuple = PyTuple_New(count);
    for (int i = 0; i < count && tuple != NULL; i++) {
        PyObject *figure = PyLong_FromUnsignedLongLong(figures[i]);
        if (figure == NULL)
            Py_CLEAR(tuple);
        else
            PyTuple_SET_ITEM(tuple, i, figure);
    }
    return tuple;
}

static PyObject *
watch_take(Watch *self, PyObject *nothing)
{
    WatchThread *thread = watch_thread(self);
    if (thread == NULL)
        return PyErr_NoMemory();
    uint64_t now_ns = thread_charge(thread);
    PyObject *ns = figures_as_tuple(thread->phase_ns, self->phase_count);
    PyObject *bytes = figures_as_tuple(thread->phase_bytes, self->phase_count);
    PyObject *allocations = figures_as_tuple(thread->phase_allocations, self->phase_count);
    size_t taken = sizeof(uint64_t) * (size_t)self->phase_count;
    memset(thread->phase_ns, 0, taken);
    memset(thread->phase_bytes, 0, taken);
    memset(thread->phase_allocations, 0, taken);
    return Py_BuildValue("(KNNN)", (unsigned long long)now_ns, ns, bytes, allocations);
}

static PyObject *
watch_memory(Watch *self, PyObject *nothing)
{
    PhaseMemory sum[MAX_PHASES];
    memcpy(sum, self->phase_memory, sizeof sum);
    WatchThread *here = watch_thread(self);
    if (here != NULL && self->active)
        thread_charge(here);
    for (const WatchThread *thread = self->threads; thread != NULL; thread = thread->next)
        phase_memory_add(sum, thread->phase_memory, MAX_PHASES);
    return phase_memory_as_list(sum, self->phase_count);
}

static PyObject *
watch_set_tensor_type(Watch *self, PyObject *arguments)
{
    PyObject *type, *unheard = Py_None;
    if (!PyArg_ParseTuple(arguments, "O|O", &type, &unheard))
        return NULL;
    if (!PyType_Check(type))
        return PyErr_Format(PyExc_TypeError, "%R is not a type", type);
    Py_XSETREF(self->tensor_type, Py_NewRef(type));
    Py_XSETREF(self->unheard, unheard == Py_None ? NULL : Py_NewRef(unheard));
    Py_RETURN_NONE;
}

static PyObject *
watch_get_detail(Watch *self, void *closure)
{
    return PyLong_FromLong(self->detail);
}

static int
watch_set_detail(Watch *self, PyObject *value, void *closure)
{
    if (value == NULL) {
        PyErr_SetString(PyExc_AttributeError, "the detail cannot be deleted");
        return -1;
    }
    long detail = PyLong_AsLong(value);
    if (detail < NO_DETAIL || detail > SIZES) {
        if (!PyErr_Occurred())
            PyErr_Format(PyExc_ValueError, "there is no detail %R", value);
        return -1;
    }
    self->detail = (int)detail;
    spare_hooks = detail == NO_DETAIL && self->catch_up != NULL;
    forget_marked(self);
    return 0;
}

static PyObject *
watch_get_counter(Watch *self, void *offset)
{
    return PyLong_FromUnsignedLongLong(*(uint64_t *)((char *)self + (size_t)offset));
}

static int
watch_set_stretches_due(Watch *self, PyObject *value, void *closure)
{
    long due = value == NULL ? -1 : PyLong_AsLong(value);
    if (due < 0) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_ValueError, "the number of stretches cannot be negative");
        return -1;
    }
    self->stretches_due = (uint64_t)due;
    return 0;
}

static PyObject *
watch_get_active(Watch *self, void *closure)
{
    return PyBool_FromLong(self->active);
}

static PyMethodDef watch_methods[] = {
    {"start", (PyCFunction)watch_start, METH_NOARGS, "Begin to watch."},
    {"stop", (PyCFunction)watch_stop, METH_NOARGS, "Stop watching: what is wrapped only calls through."},
    {"reset", (PyCFunction)watch_reset, METH_NOARGS, "Forget the modules seen, and what was counted."},
    {"phase", (PyCFunction)watch_phase, METH_O, "The number of a new phase by that name."},
    {"phased", (PyCFunction)watch_phased, METH_VARARGS, "phased(function, phase, keeps, begun, ended): the function, a phase while it runs."},
    {"module_call", (PyCFunction)(void (*)(void))watch_module_call, METH_VARARGS | METH_KEYWORDS, "What calls modules, each call recorded."},
    {"enter", (PyCFunction)watch_enter, METH_VARARGS, "Enter a phase on the calling thread; what it returns is for leave()."},
    {"leave", (PyCFunction)watch_leave, METH_O, "Undo an enter()."},
    {"take", (PyCFunction)watch_take, METH_NOARGS, "(now_ns, ns by phase, bytes, allocations) of the calling thread since the last take()."},
    {"memory", (PyCFunction)watch_memory, METH_NOARGS, "What all threads have allocated and freed, by phase."},
    {"step_call", (PyCFunction)watch_step_call, METH_O, "The method of an optimizer that is its step, as a phase."},
    {"tell_steps", (PyCFunction)watch_tell_steps, METH_O, "What is called with an optimizer when its step ends a stretch that Python knows."},
    {"optimizer_begun", (PyCFunction)watch_optimizer_begun, METH_O, "torch says that an optimizer's step begins."},
    {"optimizer_ended", (PyCFunction)watch_optimizer_ended, METH_O, "torch says that it has ended."},
    {"know_optimizer", (PyCFunction)watch_know_optimizer, METH_VARARGS, "know_optimizer(optimizer, name): what it is called."},
    {"follow", (PyCFunction)watch_follow, METH_VARARGS, "follow(catch_up, token_types, is_overridden=None): follow the usual loop without Python."},
    {"follow_iterator", (PyCFunction)watch_follow_iterator, METH_O, "Its batches need no closer look."},
    {"catch_up", (PyCFunction)watch_catch_up, METH_NOARGS, "Tell Python of what the calling thread has done."},
    {"catch_up_all", (PyCFunction)watch_catch_up_all, METH_NOARGS, "Tell Python of what every thread has done; to be asked while nothing is watched."},
    {"set_tensor_type", (PyCFunction)watch_set_tensor_type, METH_VARARGS, "set_tensor_type(kind, unheard=None): what a tensor is, for the backward marks, and the context in which only torch hears what is asked of one."},
    {NULL},
};

static PyGetSetDef watch_attributes[] = {
    {"active", (getter)watch_get_active, NULL, "Whether it watches."},
    {"is_stepping", (getter)watch_get_is_stepping, NULL, "Whether the calling thread is in an optimizer's step."},
    {"stretches_due", (getter)watch_get_counter, (setter)watch_set_stretches_due, "After so many more stretches Python is told of everything again.", (void *)offsetof(Watch, stretches_due)},
    {"detail", (getter)watch_get_detail, (setter)watch_set_detail, "0, or 1: sizes and backward marks are taken, or 2: sizes alone."},
    {"hook_ns", (getter)watch_get_counter, NULL, "Time spent in our own callbacks.", (void *)offsetof(Watch, hook_ns)},
    {"timed_backward_passes", (getter)watch_get_counter, NULL, "Backward passes timed by module.", (void *)offsetof(Watch, timed_backward_passes)},
    {"timed_backward_ns", (getter)watch_get_counter, NULL, "How long those took.", (void *)offsetof(Watch, timed_backward_ns)},
    {NULL},
};

static PyTypeObject Watch_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "pyrometer._native.core.Watch",
    .tp_doc = "Knows what each thread is at: phases that exclude each other, and modules under them.",
    .tp_basicsize = sizeof(Watch),
    .tp_dealloc = (destructor)watch_dealloc,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_traverse = (traverseproc)watch_traverse,
    .tp_clear = (inquiry)watch_clear,
    .tp_methods = watch_methods,
    .tp_getset = watch_attributes,
    .tp_new = watch_new,
};

/* What must be there before the first watch. */
static int
watch_prepare(void)
{
    name_grad_fn = PyUnicode_InternFromString("grad_fn");
    name_sequence_number = PyUnicode_InternFromString("_sequence_nr");
    name_register_prehook = PyUnicode_InternFromString("register_prehook");
    name_enter = PyUnicode_InternFromString("__enter__");
    name_exit = PyUnicode_InternFromString("__exit__");
    name_shape = PyUnicode_InternFromString("shape");
    name_dtype = PyUnicode_InternFromString("dtype");
    if (name_enter == NULL || name_exit == NULL || name_shape == NULL || name_dtype == NULL)
        return -1;
    if (name_grad_fn == NULL || name_sequence_number == NULL || name_register_prehook == NULL)
        return -1;
    return pthread_key_create(&watch_threads_key, watch_thread_ended);
}

#endif
