/* The sampler as Python sees it. */
#ifndef PYROMETER_SAMPLER_TYPE_H
#define PYROMETER_SAMPLER_TYPE_H

#include <dlfcn.h>

#include "sampler.h"

#if STACKS_CAN_BE_READ

static PyTypeObject Recorder_Type;

/* In a forked child there is no worker, and what it was at is half done. */
static void
sampler_settle_fork(Sampler *self)
{
    if (self->process == getpid())
        return;
    pthread_mutex_init(&self->lock, NULL);
    memset(&self->codes, 0, sizeof self->codes);
    memset(&self->tree, 0, sizeof self->tree);
    memset(self->known_nodes, 0, sizeof self->known_nodes);
    memset(&self->leaves, 0, sizeof self->leaves);
    memset(self->ran_ns, 0, sizeof self->ran_ns);
    forget_all_threads(self);
    self->seen_count = 0;
    self->ticks = self->samples = self->dropped = self->unseen = self->cpu_ns = 0;
    self->running = self->stopping = 0;
    self->process = getpid();
    reader_close(&self->reader);
}

static void
sampler_lock(Sampler *self)
{
    Py_BEGIN_ALLOW_THREADS
    pthread_mutex_lock(&self->lock);
    Py_END_ALLOW_THREADS
}

static void
sampler_forget(Sampler *self)
{
    code_table_clear(&self->codes);
    stack_tree_clear(&self->tree);
    memset(self->known_nodes, 0, sizeof self->known_nodes);
    leaves_clear(&self->leaves);
    memset(self->ran_ns, 0, sizeof self->ran_ns);
    forget_all_threads(self);
    self->seen_count = 0;
    self->ticks = self->samples = self->dropped = self->unseen = 0;
}

static PyObject *
sampler_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"scopes", "interval_ns", "native_instructions", "by_file", "native", NULL};
    PyObject *scopes;
    unsigned long long interval_ns;
    Py_buffer native;
    int by_file = 0, native_names = 0;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "O!Ky*|pp", names, &Recorder_Type, &scopes,
                                     &interval_ns, &native, &by_file, &native_names))
        return NULL;
    const char *wrong = NULL;
    if (interval_ns < 10000 || interval_ns > 3600000000000u)
        wrong = "interval_ns must be from 10 microseconds to an hour";
    else if (native.len != 256)
        wrong = "native_instructions must have a byte for each of the 256 instructions";
    Sampler *self = wrong == NULL ? (Sampler *)type->tp_alloc(type, 0) : NULL;
    if (self != NULL) {
        memcpy(self->is_native, native.buf, 256);
        self->recorders[0] = (Recorder *)Py_NewRef(scopes);
        self->interpreter = PyInterpreterState_Get();
        self->interval_ns = interval_ns;
        self->random = clock_ns(CLOCK_MONOTONIC) | 1;
        self->process = getpid();
        self->by_file = by_file;
        self->names_native = native_names;
        memset(self->own_threads, 0xFF, sizeof self->own_threads);
        pthread_mutex_init(&self->lock, NULL);
    }
    PyBuffer_Release(&native);
    if (wrong != NULL)
        PyErr_SetString(PyExc_ValueError, wrong);
    return (PyObject *)self;
}

static PyObject *
sampler_stop(Sampler *self, PyObject *nothing)
{
    sampler_settle_fork(self);
    if (!self->running)
        Py_RETURN_NONE;
    sampler_lock(self);
    self->stopping = 1;
    pthread_cond_signal(&self->wake);
    pthread_mutex_unlock(&self->lock);
    Py_BEGIN_ALLOW_THREADS
    pthread_join(self->worker, NULL);
    Py_END_ALLOW_THREADS
    pthread_cond_destroy(&self->wake);
    self->running = 0;
    reader_close(&self->reader);
    forget_all_threads(self); /* what threads did until the next start is not a sample's */
    Py_RETURN_NONE;
}

static const char *
sampler_open(Sampler *self)
{
    reader_close(&self->reader);
    return reader_open(&self->reader, self->by_file);
}

/* Signals are the program's: none is ever taken by the worker. */
static int
start_worker(Sampler *self)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&self->wake, &monotonic);
    pthread_condattr_destroy(&monotonic);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    int error = pthread_create(&self->worker, NULL, sampler_work, self);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error != 0)
        pthread_cond_destroy(&self->wake);
    return error;
}

static PyObject *
sampler_start(Sampler *self, PyObject *nothing)
{
    sampler_settle_fork(self);
    if (self->running)
        Py_RETURN_NONE;
    const char *reason = sampler_open(self);
    if (reason == NULL && self->names_native)
        reason = leaves_begin(&self->leaves);
    if (reason != NULL)
        return PyUnicode_FromString(reason);
    self->stopping = 0;
    int error = start_worker(self);
    if (error != 0)
        return PyUnicode_FromFormat("no thread could be started: %s", strerror(error));
    self->running = 1;
    Py_RETURN_NONE;
}

static PyObject *
sampler_leave_out(Sampler *self, PyObject *nothing)
{
    sampler_settle_fork(self);
    uint64_t id = PyThreadState_Get()->id;
    sampler_lock(self);
    if (!is_our_own(self, id))
        self->own_threads[self->own_thread_count++ % MAX_OWN_THREADS] = id;
    pthread_mutex_unlock(&self->lock);
    Py_RETURN_NONE;
}

static PyObject *
sampler_see_calls(Sampler *self, PyObject *calls)
{
    if (calls != Py_None && !Py_IS_TYPE(calls, &Recorder_Type))
        return PyErr_Format(PyExc_TypeError, "%R is neither a Recorder nor None", calls);
    sampler_settle_fork(self);
    sampler_lock(self);
    Recorder *before = self->recorders[1];
    self->recorders[1] = calls == Py_None ? NULL : (Recorder *)Py_NewRef(calls);
    for (size_t i = 0; i < self->thread_count; i++)
        self->threads[i].standings[1] = (Standing){0};
    pthread_mutex_unlock(&self->lock);
    Py_XDECREF(before);
    Py_RETURN_NONE;
}

static PyObject *
sampler_reset(Sampler *self, PyObject *nothing)
{
    sampler_settle_fork(self);
    sampler_lock(self);
    sampler_forget(self);
    pthread_mutex_unlock(&self->lock);
    Py_RETURN_NONE;
}

/* What was seen. */

static PyObject *
index_or_none(uint32_t index)
{
    return index == NOWHERE ? Py_NewRef(Py_None) : PyLong_FromUnsignedLong(index);
}

static PyObject *
function_row(const Sampler *self, size_t row)
{
    const CodeEntry *entry = &self->codes.entries[row];
    return Py_BuildValue("(ssi)", entry->name, entry->file, entry->key.first_line);
}

static PyObject *
node_row(const Sampler *self, size_t row)
{
    const StackNode *node = &self->tree.nodes[row];
    PyObject *code = node->code == LEFT_OUT ? Py_NewRef(Py_None) : PyLong_FromUnsignedLong(node->code);
    PyObject *line = node->line < 0 ? Py_NewRef(Py_None) : PyLong_FromLong(node->line);
    return Py_BuildValue("(NNN)", index_or_none(node->parent), code, line);
}

static PyObject *
place_row(const Sampler *self, size_t row)
{
    return Py_BuildValue("(Ns)", index_or_none(self->tree.places[row].parent), self->tree.places[row].name);
}

static PyObject *
observation_row(const Sampler *self, size_t row)
{
    const Observation *seen = &self->tree.observations[row];
    return Py_BuildValue("(kkNNNKKKKK)", (unsigned long)seen->key.stack, (unsigned long)seen->key.thread,
                         index_or_none(seen->key.scope), index_or_none(seen->key.call),
                         index_or_none(seen->key.leaf), (unsigned long long)seen->samples,
                         (unsigned long long)seen->waiting, (unsigned long long)seen->native,
                         (unsigned long long)seen->wall_ns, (unsigned long long)seen->running_ns);
}

/* A name of C++ as it was written, malloced; NULL for others, and where nothing of C++ is loaded. */
static char *
demangled(const char *name)
{
    typedef char *(*Demangle)(const char *, char *, size_t *, int *);
    void *library = name[0] == '_' ? dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_NOLOAD) : NULL;
    Demangle demangle = library == NULL ? NULL : (Demangle)(uintptr_t)dlsym(library, "__cxa_demangle");
    int status;
    char *written = demangle == NULL ? NULL : demangle(name, NULL, NULL, &status);
    if (library != NULL)
        dlclose(library);
    return written;
}

/* (name or None, library) */
static PyObject *
leaf_row(const Sampler *self, size_t row)
{
    const Leaf *leaf = &self->leaves.leaves[row];
    const Library *library = &self->leaves.libraries.libraries[leaf->library];
    const char *name = leaf->symbol == NO_SYMBOL ? NULL : library->symbols[leaf->symbol].name;
    char *written = name == NULL ? NULL : demangled(name);
    const char *shown = written == NULL ? name : written;
    PyObject *text = shown == NULL ? Py_NewRef(Py_None)
                                   : PyUnicode_DecodeUTF8(shown, (Py_ssize_t)strlen(shown), "replace");
    free(written);
    return Py_BuildValue("(NN)", text, PyUnicode_DecodeFSDefault(library->path));
}

static PyObject *
thread_row(const Sampler *self, size_t row)
{
    return Py_BuildValue("(kK)", self->thread_ids[row], (unsigned long long)self->ran_ns[row]);
}

static PyObject *
rows_as_list(const Sampler *self, size_t count, PyObject *(*make)(const Sampler *, size_t))
{
    PyObject *rows = PyList_New((Py_ssize_t)count);
    for (size_t i = 0; i < count && rows != NULL; i++) {
        PyObject *row = make(self, i);
        if (row == NULL)
            Py_CLEAR(rows);
        else
            PyList_SET_ITEM(rows, (Py_ssize_t)i, row);
    }
    return rows;
}

static PyObject *
sampler_snapshot(Sampler *self, PyObject *nothing)
{
    sampler_settle_fork(self);
    sampler_lock(self);
    PyObject *snapshot = Py_BuildValue(
        "{sN sN sN sN sN sN sK sK sK sK sK sK sK}", "functions", rows_as_list(self, self->codes.count, function_row),
        "nodes", rows_as_list(self, self->tree.node_count, node_row), "places",
        rows_as_list(self, self->tree.place_count, place_row), "observations",
        rows_as_list(self, self->tree.observation_count, observation_row), "threads",
        rows_as_list(self, self->seen_count, thread_row), "leaves",
        rows_as_list(self, self->leaves.count, leaf_row), "unanswered", (unsigned long long)self->leaves.unanswered,
        "samples", (unsigned long long)self->samples,
        "dropped", (unsigned long long)self->dropped, "ticks", (unsigned long long)self->ticks, "cut",
        (unsigned long long)(self->tree.cut + self->codes.refused), "unseen",
        (unsigned long long)self->unseen, "cpu_ns", (unsigned long long)self->cpu_ns);
    pthread_mutex_unlock(&self->lock);
    return snapshot;
}

/* The calling thread's own stack, read as those of others are: (name, file, line), innermost first.
 * None if that did not work: then no stack is to be believed. */
static PyObject *
sampler_own_stack(Sampler *self, PyObject *nothing)
{
    sampler_settle_fork(self);
    sampler_lock(self);
    PyThreadState *state = PyThreadState_Get();
    int count = sampler_open(self) == NULL ? read_frames(self, state, state) : 0;
    if (count > 0 && !find_codes(self, count))
        count = 0;
    PyObject *stack = count <= 0 ? NULL : PyList_New(count);
    for (int i = 0; i < count && stack != NULL; i++) {
        const CodeEntry *entry = &self->codes.entries[self->frame_codes[i]];
        int line = code_line(entry, self->frames[i].instruction);
        PyObject *frame = Py_BuildValue("(ssi)", entry->name, entry->file, line);
        if (frame == NULL)
            Py_CLEAR(stack);
        else
            PyList_SET_ITEM(stack, i, frame);
    }
    if (!self->running)
        reader_close(&self->reader);
    pthread_mutex_unlock(&self->lock);
    if (stack == NULL && !PyErr_Occurred())
        Py_RETURN_NONE;
    return stack;
}

static void
sampler_dealloc(Sampler *self)
{
    Py_XDECREF(sampler_stop(self, NULL));
    sampler_forget(self);
    reader_close(&self->reader);
    pthread_mutex_destroy(&self->lock);
    for (int i = 0; i < RECORDERS; i++)
        Py_XDECREF(self->recorders[i]);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyObject *
sampler_get_running(Sampler *self, void *closure)
{
    return PyBool_FromLong(self->running && self->process == getpid());
}

static PyMethodDef sampler_methods[] = {
    {"start", (PyCFunction)sampler_start, METH_NOARGS, "Begin to look; None, or why that cannot be."},
    {"stop", (PyCFunction)sampler_stop, METH_NOARGS, "Look no more."},
    {"see_calls", (PyCFunction)sampler_see_calls, METH_O, "Note from now on where in this recorder's tree the threads are."},
    {"leave_out", (PyCFunction)sampler_leave_out, METH_NOARGS, "The calling thread is ours, and not to be looked at."},
    {"reset", (PyCFunction)sampler_reset, METH_NOARGS, "Forget what was seen."},
    {"snapshot", (PyCFunction)sampler_snapshot, METH_NOARGS, "What was seen so far."},
    {"own_stack", (PyCFunction)sampler_own_stack, METH_NOARGS, "The calling thread's stack as others' are read, or None."},
    {NULL},
};

static PyGetSetDef sampler_attributes[] = {
    {"running", (getter)sampler_get_running, NULL, "Whether it looks."},
    {NULL},
};

static PyTypeObject Sampler_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "pyrometer._native.core.Sampler",
    .tp_doc = "Looks at the stacks of all threads from a thread of its own, without the GIL.",
    .tp_basicsize = sizeof(Sampler),
    .tp_dealloc = (destructor)sampler_dealloc,
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_methods = sampler_methods,
    .tp_getset = sampler_attributes,
    .tp_new = sampler_new,
};

#endif
#endif
