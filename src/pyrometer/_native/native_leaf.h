/* Which native function a thread is in: asked by a signal, whose handler notes the place and no more. */
#ifndef PYROMETER_NATIVE_LEAF_H
#define PYROMETER_NATIVE_LEAF_H

#include "elf_symbols.h"

#if STACKS_CAN_BE_READ

#include <signal.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>

#define MAX_LEAVES 20000
#define ANSWER_WAIT_NS 1000000

typedef struct {
    uint32_t library, symbol;
} Leaf;

typedef struct {
    Libraries libraries;
    Leaf *leaves;
    size_t count, capacity;
    int signal; /* 0: not asked for */
    uint64_t unanswered;
} NativeLeaves;

/* Where answers are left, for the whole process: a question has a number, which comes with the signal.
 * One answered too late is not mistaken for the next. */
#define ANSWERS 64
static struct {
    _Atomic uintptr_t question, place;
} leaf_answers[ANSWERS];
static _Atomic uintptr_t leaf_questions;

static void
answer_leaf(int signal, siginfo_t *info, void *context)
{
    const ucontext_t *here = context;
    uintptr_t question = (uintptr_t)info->si_value.sival_ptr, place = 0;
    if (info->si_code != SI_QUEUE)
        return; /* somebody else's */
#if defined(__x86_64__)
    place = (uintptr_t)here->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
    place = (uintptr_t)here->uc_mcontext.pc;
#endif
    atomic_store(&leaf_answers[question % ANSWERS].place, place);
    atomic_store(&leaf_answers[question % ANSWERS].question, question);
}

/* Takes a signal that nobody has taken, for good: one may be on its way at the end, and without a
 * handler it would end the program. NULL, or why not. */
static const char *
leaves_begin(NativeLeaves *leaves)
{
    static int taken; /* by an earlier sampler: the handler stays */
    leaves->signal = taken;
    if (taken != 0)
        return NULL;
    for (int number = SIGRTMAX - 1; number > SIGRTMIN; number--) {
        struct sigaction now;
        if (sigaction(number, NULL, &now) != 0 || now.sa_handler != SIG_DFL)
            continue;
        struct sigaction ours = {.sa_sigaction = answer_leaf, .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK};
        sigfillset(&ours.sa_mask);
        if (sigaction(number, &ours, NULL) != 0)
            continue;
        leaves->signal = taken = number;
        return NULL;
    }
    return "the program has taken every signal there is";
}

static uintptr_t
ask_place(NativeLeaves *leaves, pid_t process, pid_t thread)
{
    uintptr_t question = atomic_fetch_add(&leaf_questions, 1) + 1;
    siginfo_t info;
    memset(&info, 0, sizeof info);
    info.si_signo = leaves->signal;
    info.si_code = SI_QUEUE;
    info.si_pid = process;
    info.si_value.sival_ptr = (void *)question;
    if (syscall(SYS_rt_tgsigqueueinfo, process, thread, leaves->signal, &info) != 0)
        return 0;
    struct timespec began, now;
    clock_gettime(CLOCK_MONOTONIC, &began);
    while (atomic_load(&leaf_answers[question % ANSWERS].question) != question) {
        clock_gettime(CLOCK_MONOTONIC, &now);
        if ((now.tv_sec - began.tv_sec) * 1000000000L + now.tv_nsec - began.tv_nsec > ANSWER_WAIT_NS) {
            leaves->unanswered++;
            return 0;
        }
        struct timespec moment = {0, 20000};
        nanosleep(&moment, NULL);
    }
    return atomic_load(&leaf_answers[question % ANSWERS].place);
}

/* The number of the native function a thread is in now; NO_SYMBOL if it does not answer, or in no library. */
static uint32_t
find_leaf(NativeLeaves *leaves, pid_t process, pid_t thread)
{
    uintptr_t place = ask_place(leaves, process, thread);
    Library *library = place == 0 ? NULL : libraries_find(&leaves->libraries, place);
    if (library == NULL)
        return NO_SYMBOL;
    Leaf leaf = {(uint32_t)(library - leaves->libraries.libraries), library_symbol(library, place)};
    for (size_t i = 0; i < leaves->count; i++)
        if (leaves->leaves[i].library == leaf.library && leaves->leaves[i].symbol == leaf.symbol)
            return (uint32_t)i;
    if (leaves->count == MAX_LEAVES)
        return NO_SYMBOL;
    if (leaves->count == leaves->capacity) {
        size_t capacity = leaves->capacity ? leaves->capacity * 2 : 256;
        Leaf *grown = realloc(leaves->leaves, capacity * sizeof *grown);
        if (grown == NULL)
            return NO_SYMBOL;
        leaves->leaves = grown;
        leaves->capacity = capacity;
    }
    leaves->leaves[leaves->count] = leaf;
    return (uint32_t)leaves->count++;
}

static void
leaves_clear(NativeLeaves *leaves)
{
    libraries_clear(&leaves->libraries);
    free(leaves->leaves);
    leaves->leaves = NULL;
    leaves->count = leaves->capacity = 0;
    leaves->unanswered = 0;
}

#endif
#endif
