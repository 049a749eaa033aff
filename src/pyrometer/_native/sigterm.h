/* SIGTERM, noticed below Python: the program's own view of its signal handlers stays as it was. */
#ifndef PYROMETER_SIGTERM_H
#define PYROMETER_SIGTERM_H

#include <Python.h>
#include <errno.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

/* Python code has to write the run, and waits for its turn. A C call that holds the GIL for longer
 * than this must not keep the process from ending. */
#define SIGTERM_GRACE_S 3

static volatile sig_atomic_t sigterm_noticed;
static int sigterm_fd = -1;
static pid_t sigterm_process;

#if defined(__linux__)
static timer_t sigterm_timer;
static int sigterm_has_timer;

/* Sends SIGTERM again after the given seconds; 0 disarms. May be called in a signal handler. */
static void
set_sigterm_timer(time_t seconds)
{
    struct itimerspec when = {.it_value = {.tv_sec = seconds}};
    if (sigterm_has_timer)
        timer_settime(sigterm_timer, 0, &when, NULL);
}

static void
make_sigterm_timer(void)
{
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGTERM};
    if (!sigterm_has_timer)
        sigterm_has_timer = timer_create(CLOCK_MONOTONIC, &event, &sigterm_timer) == 0;
}

static void
drop_sigterm_timer(void)
{
    if (sigterm_has_timer)
        timer_delete(sigterm_timer);
    sigterm_has_timer = 0;
}
#else
static void
set_sigterm_timer(time_t seconds)
{
}

static void
make_sigterm_timer(void)
{
}

static void
drop_sigterm_timer(void)
{
}
#endif

/* The first writes a byte; a second one, or one in a forked child, ends the process as usual. */
static void
on_sigterm(int number)
{
    int saved_errno = errno;
    if (sigterm_noticed || getpid() != sigterm_process || write(sigterm_fd, "T", 1) != 1) {
        signal(SIGTERM, SIG_DFL);
        raise(SIGTERM);
    }
    else {
        set_sigterm_timer(SIGTERM_GRACE_S);
    }
    sigterm_noticed = 1;
    errno = saved_errno;
}

PyDoc_STRVAR(watch_sigterm_doc,
             "watch_sigterm(fd) -> bool\n\n"
             "Write a byte to fd at the first SIGTERM. False, and nothing done, where the program "
             "already handles or ignores the signal. Unless sigterm_heard() is called within three "
             "seconds, the process ends.");

static PyObject *
watch_sigterm(PyObject *module, PyObject *argument)
{
    int fd = PyObject_AsFileDescriptor(argument);
    if (fd < 0)
        return NULL;
    struct sigaction action;
    if (sigaction(SIGTERM, NULL, &action) != 0)
        return PyErr_SetFromErrno(PyExc_OSError);
    if ((action.sa_flags & SA_SIGINFO) || action.sa_handler != SIG_DFL)
        Py_RETURN_FALSE;
    sigterm_fd = fd;
    sigterm_process = getpid();
    sigterm_noticed = 0;
    make_sigterm_timer();
    memset(&action, 0, sizeof action);
    action.sa_handler = on_sigterm;
    sigemptyset(&action.sa_mask);
    action.sa_flags = SA_RESTART | SA_ONSTACK; /* the program's system calls are not interrupted */
    if (sigaction(SIGTERM, &action, NULL) != 0)
        return PyErr_SetFromErrno(PyExc_OSError);
    Py_RETURN_TRUE;
}

PyDoc_STRVAR(unwatch_sigterm_doc,
             "unwatch_sigterm() -> bool\n\n"
             "Give SIGTERM its default action back; False where the program has taken it over.");

static PyObject *
unwatch_sigterm(PyObject *module, PyObject *nothing)
{
    struct sigaction action;
    if (sigaction(SIGTERM, NULL, &action) != 0)
        return PyErr_SetFromErrno(PyExc_OSError);
    if ((action.sa_flags & SA_SIGINFO) || action.sa_handler != on_sigterm)
        Py_RETURN_FALSE;
    signal(SIGTERM, SIG_DFL);
    drop_sigterm_timer();
    Py_RETURN_TRUE;
}

PyDoc_STRVAR(sigterm_heard_doc,
             "sigterm_heard()\n\n"
             "Somebody is acting on the SIGTERM: take as long as that takes.");

static PyObject *
sigterm_heard(PyObject *module, PyObject *nothing)
{
    set_sigterm_timer(0);
    Py_RETURN_NONE;
}

#endif
