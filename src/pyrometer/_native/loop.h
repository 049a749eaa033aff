/* The usual training loop, followed without Python: fetch, forward, backward, optimizer.
 *
 * Python decides what a step is (capture/torch_steps.py). But code of ours that runs once a step finds
 * its instructions out of the caches, and takes several times what it takes in a row. So what happens
 * in a loop of the usual shape is added up here, a stretch for each return of an optimizer, and
 * Python catches up on many of them at once. Whatever is not usual goes to Python at once, after
 * it has caught up: it sees the same, in the same order. The twin tells Python of everything.
 */
#ifndef PYROMETER_LOOP_H
#define PYROMETER_LOOP_H

#include <limits.h>

#include "watch.h"

static PyObject *name_shape, *name_dtype;

/* Stretches. */

static void
stretch_clear(LoopStretch *stretch)
{
    for (int i = 0; i < stretch->root_count; i++)
        Py_DECREF(stretch->roots[i]);
    Py_XDECREF(stretch->optimizer);
    memset(stretch, 0, sizeof *stretch);
    stretch->samples = stretch->tokens = -1;
}

static PyObject *
figure_or_none(int64_t figure)
{
    return figure < 0 ? Py_NewRef(Py_None) : PyLong_FromLongLong(figure);
}

static PyObject *figures_as_tuple(const uint64_t *figures, int count);

/* (fetch_begun, batches, samples, tokens, forward_calls, backward_passes, roots), and with an
 * optimizer also (name, taken). */
static PyObject *
stretch_as_tuple(const LoopStretch *stretch, const uint64_t *figures, int phases)
{
    PyObject *roots = PyTuple_New(stretch->root_count);
    for (int i = 0; i < stretch->root_count && roots != NULL; i++)
        PyTuple_SET_ITEM(roots, i, Py_NewRef(stretch->roots[i]));
    PyObject *name = Py_NewRef(stretch->optimizer == NULL ? Py_None : stretch->optimizer);
    PyObject *taken;
    if (stretch->optimizer == NULL)
        taken = Py_NewRef(Py_None);
    else
        taken = Py_BuildValue("(KNNN)", (unsigned long long)stretch->ended_ns, figures_as_tuple(figures, phases),
                              figures_as_tuple(figures + MAX_PHASES, phases),
                              figures_as_tuple(figures + 2 * MAX_PHASES, phases));
    return Py_BuildValue("(NINNIINNN)", PyBool_FromLong(stretch->fetch_begun), stretch->batches,
                         figure_or_none(stretch->samples), figure_or_none(stretch->tokens),
                         stretch->forward_calls, stretch->backward_passes, roots, name, taken);
}

static int
stretch_is_empty(const LoopStretch *stretch)
{
    return !stretch->fetch_begun && stretch->batches == 0 && stretch->forward_calls == 0 &&
           stretch->backward_passes == 0;
}

/* Python catches up on the stretches that are done, and what has happened in this one so far unless
 * that goes on here. -1 with an exception of the program's own. */
static int
loop_tell(Watch *watch, WatchThread *thread, int goes_on)
{
    Loop *loop = &thread->loop;
    LoopStretch nothing = {.samples = -1, .tokens = -1};
    SavedError error = save_error();
    /* Taken out first: what Python runs may come here again. */
    PyObject *done = PyList_New(0);
    for (int i = 0; i < loop->done_count; i++) {
        PyObject *tuple = stretch_as_tuple(&loop->done[i], loop->figures + (size_t)i * 3 * MAX_PHASES,
                                           watch->phase_count);
        if (done == NULL || tuple == NULL || PyList_Append(done, tuple) < 0)
            Py_CLEAR(done);
        Py_XDECREF(tuple);
        stretch_clear(&loop->done[i]);
    }
    loop->done_count = 0;
    PyObject *now = stretch_as_tuple(goes_on ? &nothing : &loop->now, NULL, 0);
    if (!goes_on)
        stretch_clear(&loop->now);
    PyObject *thread_id = PyLong_FromUnsignedLong(loop->thread_id);
    PyObject *fetches = PyLong_FromUnsignedLongLong(loop->fetches);
    PyObject *wait_ns = PyLong_FromUnsignedLongLong(loop->wait_ns);
    loop->fetches = loop->wait_ns = 0;
    loop->caught_up_ns = recorder_now_ns(watch->recorder);
    int outcome = 0;
    if (done == NULL || now == NULL || thread_id == NULL || fetches == NULL || wait_ns == NULL) {
        PyErr_Clear();
    }
    else {
        PyObject *told[] = {thread_id, done, now, fetches, wait_ns};
        outcome = watch_call_back(watch, watch->catch_up, told, 5);
    }
    Py_XDECREF(done);
    Py_XDECREF(now);
    Py_XDECREF(thread_id);
    Py_XDECREF(fetches);
    Py_XDECREF(wait_ns);
    return settle_error(error, outcome);
}

/* Python catches up on all that the thread has done. */
static int
loop_catch_up(Watch *watch, WatchThread *thread)
{
    Loop *loop = &thread->loop;
    if (watch->catch_up == NULL || (loop->done_count == 0 && loop->fetches == 0 && stretch_is_empty(&loop->now)))
        return 0;
    return loop_tell(watch, thread, 0);
}

/* Before Python is told of something itself: from here to the end of the stretch it knows more. */
static int
loop_hand_over(Watch *watch, WatchThread *thread)
{
    int outcome = loop_catch_up(watch, thread);
    thread->loop.python_ahead = 1;
    return outcome;
}

static inline int
loop_is_usual(const Watch *watch, const WatchThread *thread)
{
    return watch->catch_up != NULL && watch->stretches_due > 0 && watch->detail == NO_DETAIL &&
           !thread->loop.python_ahead;
}

/* Batches. */

/* Whether reading a tensor's shape would be seen by the program. */
static int
is_overridden(Watch *watch)
{
    if (watch->is_overridden == NULL)
        return 0;
    PyObject *answer = PyObject_CallNoArgs(watch->is_overridden);
    if (answer == NULL)
        PyErr_Clear();
    int overridden = answer != Py_False;
    Py_XDECREF(answer);
    return overridden;
}

/* Whether the size of the batch can be told at a glance; as batch_size() in torch_batches.py. */
static int
glance_at_batch(Watch *watch, PyObject *batch, int64_t *samples, int64_t *tokens)
{
    PyObject *first = batch;
    if (PyList_CheckExact(batch) && PyList_GET_SIZE(batch) > 0)
        first = PyList_GET_ITEM(batch, 0);
    else if (PyTuple_CheckExact(batch) && PyTuple_GET_SIZE(batch) > 0)
        first = PyTuple_GET_ITEM(batch, 0);
    if ((PyObject *)Py_TYPE(first) != watch->tensor_type || is_overridden(watch))
        return 0;
    PyObject *shape = PyObject_GetAttr(first, name_shape);
    int known = shape != NULL && PyTuple_Check(shape) && PyTuple_GET_SIZE(shape) > 0;
    Py_ssize_t sides = known ? PyTuple_GET_SIZE(shape) : 0;
    for (Py_ssize_t i = 0; i < sides && i < 2; i++)
        known = known && PyLong_CheckExact(PyTuple_GET_ITEM(shape, i));
    *tokens = -1;
    if (known) {
        *samples = PyLong_AsLongLong(PyTuple_GET_ITEM(shape, 0));
        int64_t length = sides == 2 ? PyLong_AsLongLong(PyTuple_GET_ITEM(shape, 1)) : 0;
        if (length > 1) {
            PyObject *kind = PyObject_GetAttr(first, name_dtype);
            if (kind != NULL && PySequence_Contains(watch->token_types, kind) > 0)
                *tokens = *samples * length;
            Py_XDECREF(kind);
        }
    }
    Py_XDECREF(shape);
    if (PyErr_Occurred()) {
        PyErr_Clear();
        return 0;
    }
    return known;
}

/* What happens. Each says whether it was noted here: if not, Python is to be told. */

static int
loop_fetch_begun(Watch *watch, WatchThread *thread, PyObject *iterator)
{
    Loop *loop = &thread->loop;
    if (!loop_is_usual(watch, thread) || loop->iterator != iterator)
        return 0;
    if (loop->now.forward_calls > 0 && loop->now.backward_passes == 0)
        return 0; /* only forward passes so far: a step ends here */
    loop->now.fetch_begun = 1;
    return 1;
}

static int
loop_fetched(Watch *watch, WatchThread *thread, PyObject *batch, uint64_t wait_ns)
{
    Loop *loop = &thread->loop;
    int64_t samples, tokens;
    if (!loop_is_usual(watch, thread) || !glance_at_batch(watch, batch, &samples, &tokens))
        return 0;
    LoopStretch *now = &loop->now;
    now->batches++;
    now->samples = samples + (now->samples < 0 ? 0 : now->samples);
    if (tokens >= 0)
        now->tokens = tokens + (now->tokens < 0 ? 0 : now->tokens);
    loop->fetches++;
    loop->wait_ns += wait_ns;
    return 1;
}

static int
loop_backward_ended(Watch *watch, WatchThread *thread)
{
    if (watch->catch_up == NULL || thread->loop.python_ahead)
        return 0;
    thread->loop.now.backward_passes++;
    return 1;
}

static int
loop_root_begun(Watch *watch, WatchThread *thread, Scope *scope, int tracks)
{
    LoopStretch *now = &thread->loop.now;
    if (!tracks || !loop_is_usual(watch, thread) || now->batches == 0)
        return 0;
    int known = 0;
    for (int i = 0; i < now->root_count && !known; i++)
        known = now->roots[i] == scope->name;
    if (!known && now->root_count == MAX_LOOP_ROOTS)
        return 0;
    if (!known)
        now->roots[now->root_count++] = Py_NewRef(scope->name);
    now->forward_calls++;
    return 1;
}

/* Ends the stretch with everything the thread has been charged so far. */
static int
loop_optimizer_ended(Watch *watch, WatchThread *thread, PyObject *name)
{
    Loop *loop = &thread->loop;
    if (!loop_is_usual(watch, thread) || stretch_is_empty(&loop->now) || loop->done_count == MAX_STRETCHES)
        return 0;
    if (loop->figures == NULL) {
        loop->figures = malloc(sizeof(uint64_t) * 3 * MAX_PHASES * MAX_STRETCHES);
        if (loop->figures == NULL)
            return 0;
    }
    loop->now.ended_ns = thread_charge(thread);
    loop->now.optimizer = Py_NewRef(name);
    uint64_t *figures = loop->figures + (size_t)loop->done_count * 3 * MAX_PHASES;
    memcpy(figures, thread->phase_ns, sizeof thread->phase_ns);
    memcpy(figures + MAX_PHASES, thread->phase_bytes, sizeof thread->phase_bytes);
    memcpy(figures + 2 * MAX_PHASES, thread->phase_allocations, sizeof thread->phase_allocations);
    memset(thread->phase_ns, 0, sizeof thread->phase_ns);
    memset(thread->phase_bytes, 0, sizeof thread->phase_bytes);
    memset(thread->phase_allocations, 0, sizeof thread->phase_allocations);
    loop->done[loop->done_count++] = loop->now;
    memset(&loop->now, 0, sizeof loop->now);
    loop->now.samples = loop->now.tokens = -1;
    return 1;
}

/* Whether enough has come together, or it has waited long enough. */
static inline int
loop_is_due(const Loop *loop, uint64_t now_ns)
{
    uint64_t waited_ns = elapsed_ns(loop->caught_up_ns, now_ns);
    return loop->done_count == MAX_STRETCHES || waited_ns > CATCH_UP_AT_LAST_NS ||
           (waited_ns > CATCH_UP_NS && loop->done_count >= MAX_STRETCHES / 4);
}

/* Optimizers. */

/* How deep in calls the thread is. */
static inline int
call_depth(void)
{
    PyThreadState *state = PyThreadState_Get();
#if PY_VERSION_HEX >= 0x030C0000
    return state->py_recursion_limit - state->py_recursion_remaining;
#else
    return state->recursion_limit - state->recursion_remaining;
#endif
}

static void
leave_optimizer(Watch *watch, WatchThread *thread)
{
    OpenStep *step = &thread->loop.open_steps[--thread->loop.open_count];
    close_call(watch->recorder, watch->scopes[OPTIMIZER_PHASE], step->run);
    thread_switch(thread, step->outer);
    thread->found = step->found;
}

/* Steps known by torch's hooks alone that raised: nobody tells of their end. What runs inside one is
 * called deeper than it was. */
static void
settle_optimizers_above(Watch *watch, WatchThread *thread, int depth)
{
    Loop *loop = &thread->loop;
    while (loop->open_count > 0 && depth <= loop->open_steps[loop->open_count - 1].depth)
        leave_optimizer(watch, thread);
}

static void
settle_optimizers(Watch *watch, WatchThread *thread)
{
    if (UNLIKELY(thread->loop.open_count > 0))
        settle_optimizers_above(watch, thread, call_depth());
}

/* Whether our own call has opened the optimizer's step, and will close it. */
static inline int
is_in_our_call(const Loop *loop, PyObject *optimizer)
{
    if (loop->open_count == 0)
        return 0;
    const OpenStep *last = &loop->open_steps[loop->open_count - 1];
    return last->optimizer == optimizer && last->depth == IN_OUR_CALL;
}

/* 0 if there are too many, -1 with an exception of the program's own. */
static int
enter_optimizer(Watch *watch, WatchThread *thread, PyObject *optimizer, int depth)
{
    Loop *loop = &thread->loop;
    if (loop->open_count == MAX_OPEN_STEPS)
        return 0;
    uint64_t now_ns = thread_charge(thread);
    /* Not at the end, where it would be part of the next step. */
    if (loop->done_count > 0 && loop_is_due(loop, now_ns) && loop_tell(watch, thread, 1) < 0)
        return -1;
    OpenStep *step = &loop->open_steps[loop->open_count++];
    step->optimizer = optimizer;
    step->outer = thread->phase;
    step->found = thread->found;
    step->depth = depth;
    int stands = thread->held && thread->phase == OPTIMIZER_PHASE; /* named by the program itself */
    thread->phase = thread->held ? thread->phase : OPTIMIZER_PHASE;
    thread->found = OPTIMIZER_PHASE;
    step->run = stands ? NOT_RECORDED : open_call(watch->recorder, watch->scopes[OPTIMIZER_PHASE]);
    return 1;
}

/* The name under which Python knows the optimizer; borrowed, or NULL if it was not asked yet. */
static PyObject *
known_optimizer(Watch *watch, PyObject *optimizer)
{
    for (int i = 0; i < MAX_KNOWN_OPTIMIZERS; i++) {
        KnownOptimizer *known = &watch->optimizers[i];
        if (known->optimizer == optimizer && known->weak != NULL &&
            ((PyWeakReference *)known->weak)->wr_object == optimizer)
            return known->name;
    }
    return NULL;
}

/* The outermost step has returned: a stretch ends, here or in Python. */
static int
end_stretch(Watch *watch, WatchThread *thread, PyObject *optimizer)
{
    Loop *loop = &thread->loop;
    PyObject *name = known_optimizer(watch, optimizer);
    if (name != NULL && loop_optimizer_ended(watch, thread, name)) {
        if (--watch->stretches_due == 0)
            loop->python_ahead = 1; /* it is to see the next fetch, and catches up then */
        return 0;
    }
    if (loop_catch_up(watch, thread) < 0)
        return -1;
    /* It is one of those that are due, and after the last of them Python also wants to see the next fetch. */
    if (watch->stretches_due > 0)
        watch->stretches_due--;
    loop->python_ahead = watch->stretches_due == 0;
    return watch->stepped == NULL ? 0 : watch_call_back(watch, watch->stepped, &optimizer, 1);
}

/* The innermost step has returned. -1 with an exception of the program's own. */
static int
optimizer_returned(Watch *watch, WatchThread *thread, PyObject *optimizer)
{
    uint64_t starts = watch->starts;
    thread_charge(thread);
    int outcome = thread->loop.open_count == 1 ? end_stretch(watch, thread, optimizer) : 0;
    if (LIKELY(watch->starts == starts)) {
        if (thread->loop.open_count == 1)
            thread->phase = thread->loop.open_steps[0].outer; /* the step has ended: what follows is no part of it */
        leave_optimizer(watch, thread);
    }
    return outcome;
}

/* An optimizer's step, as a function that we call ourselves. */
static PyObject *
step_call(PyObject *self, PyObject *const *arguments, size_t count, PyObject *keywords)
{
    Phased *step = (Phased *)self;
    Watch *watch = step->watch;
    WatchThread *thread = watch->active && PyVectorcall_NARGS(count) > 0 ? watch_thread(watch) : NULL;
    if (thread != NULL)
        settle_optimizers(watch, thread);
    if (thread == NULL || is_in_our_call(&thread->loop, arguments[0]))
        return call_function(step->base.function, arguments, count, keywords);
    uint64_t starts = watch->starts;
    int place = thread->loop.open_count;
    int entered = enter_optimizer(watch, thread, arguments[0], IN_OUR_CALL);
    if (entered < 0)
        return NULL;
    PyObject *result = call_function(step->base.function, arguments, count, keywords);
    if (!entered || watch->starts != starts)
        return result;
    while (thread->loop.open_count > place + 1)
        leave_optimizer(watch, thread); /* raised, and known by the hooks alone */
    if (result == NULL || !watch->active)
        leave_optimizer(watch, thread);
    else if (optimizer_returned(watch, thread, arguments[0]) < 0)
        Py_CLEAR(result);
    return result;
}

/* What torch's own hooks tell: of steps that the program took hold of before they were wrapped. */

static PyObject *
watch_optimizer_begun(Watch *self, PyObject *optimizer)
{
    WatchThread *thread = self->active ? watch_thread(self) : NULL;
    if (thread == NULL || is_in_our_call(&thread->loop, optimizer))
        Py_RETURN_NONE;
    /* Of the step: it calls our hook, and that this, which 3.11 counts as well. */
    int depth = call_depth() - (PY_VERSION_HEX >= 0x030C0000 ? 1 : 2);
    settle_optimizers_above(self, thread, depth);
    if (enter_optimizer(self, thread, optimizer, depth) < 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *
watch_optimizer_ended(Watch *self, PyObject *optimizer)
{
    WatchThread *thread = self->active ? watch_thread(self) : NULL;
    if (thread == NULL)
        Py_RETURN_NONE;
    Loop *loop = &thread->loop;
    while (loop->open_count > 0 && loop->open_steps[loop->open_count - 1].depth != IN_OUR_CALL) {
        if (loop->open_steps[loop->open_count - 1].optimizer == optimizer) {
            if (optimizer_returned(self, thread, optimizer) < 0)
                return NULL;
            break;
        }
        leave_optimizer(self, thread);
    }
    Py_RETURN_NONE;
}

static PyObject *
watch_know_optimizer(Watch *self, PyObject *arguments)
{
    PyObject *optimizer, *name;
    if (!PyArg_ParseTuple(arguments, "OU", &optimizer, &name))
        return NULL;
    PyObject *weak = PyWeakref_NewRef(optimizer, NULL);
    if (weak == NULL)
        return NULL;
    KnownOptimizer *known = &self->optimizers[self->next_optimizer++ % MAX_KNOWN_OPTIMIZERS];
    Py_XSETREF(known->weak, weak);
    Py_XSETREF(known->name, Py_NewRef(name));
    known->optimizer = optimizer;
    Py_RETURN_NONE;
}

/* What Python says of it. */

static PyObject *
watch_follow(Watch *self, PyObject *arguments)
{
    PyObject *catch_up, *token_types, *overridden = Py_None;
    if (!PyArg_ParseTuple(arguments, "OO!|O", &catch_up, &PyTuple_Type, &token_types, &overridden))
        return NULL;
    Py_XSETREF(self->is_overridden, overridden == Py_None ? NULL : Py_NewRef(overridden));
    Py_XSETREF(self->catch_up, catch_up == Py_None ? NULL : Py_NewRef(catch_up));
    Py_XSETREF(self->token_types, Py_NewRef(token_types));
    Py_RETURN_NONE;
}

static PyObject *
watch_tell_steps(Watch *self, PyObject *stepped)
{
    Py_XSETREF(self->stepped, stepped == Py_None ? NULL : Py_NewRef(stepped));
    Py_RETURN_NONE;
}

static PyObject *
watch_follow_iterator(Watch *self, PyObject *iterator)
{
    WatchThread *thread = watch_thread(self);
    if (thread != NULL)
        thread->loop.iterator = iterator == Py_None ? NULL : iterator;
    Py_RETURN_NONE;
}

/* Threads that have ended, before another one takes their place. */
static void
loop_settle_ended(Watch *watch)
{
    for (WatchThread *thread = watch->threads; thread != NULL; thread = thread->next)
        if (!(__atomic_load_n(&thread->holders, __ATOMIC_ACQUIRE) & HELD_BY_THREAD) &&
            loop_catch_up(watch, thread) < 0)
            swallow_error(); /* an interrupt comes a moment later */
}

static PyObject *
watch_catch_up(Watch *self, PyObject *nothing)
{
    WatchThread *thread = current_watch_thread;
    if (thread != NULL && thread->watch == self && loop_catch_up(self, thread) < 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *
watch_catch_up_all(Watch *self, PyObject *nothing)
{
    for (WatchThread *thread = self->threads; thread != NULL; thread = thread->next)
        if (loop_catch_up(self, thread) < 0)
            return NULL;
    Py_RETURN_NONE;
}

static PyObject *
watch_get_is_stepping(Watch *self, void *closure)
{
    WatchThread *thread = watch_thread(self);
    return PyBool_FromLong(thread != NULL && thread->loop.open_count > 0);
}

static void
loop_forget(Loop *loop)
{
    for (int i = 0; i < loop->done_count; i++)
        stretch_clear(&loop->done[i]);
    stretch_clear(&loop->now);
    loop->done_count = loop->open_count = 0;
    loop->fetches = loop->wait_ns = 0;
    loop->iterator = NULL;
    loop->python_ahead = 0;
}

#endif
