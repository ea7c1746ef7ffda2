/* Child processes: fork, exec, collect, and end; and the clocks. */
#include "base/proc.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

double ev_clock_now(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

double ev_clock_threads(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

double ev_clock_cpu(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void fd_close(int *fd) {
    if (*fd >= 0)
        (void)close(*fd);
    *fd = -1;
}

/* Moves a descriptor above stdin, stdout and stderr, where the dup2 calls of a child could tread
 * on it. -1 on failure, with the old one closed. */
static int fd_lift(int fd) {
    if (fd < 0 || fd > STDERR_FILENO)
        return fd;
    int lifted = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    int code = errno;
    (void)close(fd);
    errno = code;
    return lifted;
}

static bool pipe_open(int ends[2]) {
    int made[2];
    if (pipe2(made, O_CLOEXEC) != 0)
        return false;
    ends[0] = fd_lift(made[0]);
    ends[1] = fd_lift(made[1]);
    if (ends[0] >= 0 && ends[1] >= 0)
        return true;
    fd_close(&ends[0]);
    fd_close(&ends[1]);
    return false;
}

/* ---- starting ---- */

/* What the child's stdin, stdout and stderr become; -1 leaves one as it is. */
typedef struct child_io {
    int stdin_fd;
    int stdout_fd;
    int stderr_fd;
} child_io;

/* The child between fork and exec: only calls that are safe there. On failure writes errno to
 * `report`, which exec would have closed. */
static _Noreturn void child_main(const char *const argv[], const child_io *io, int report,
                                 pid_t parent) {
    sigset_t none;
    sigemptyset(&none);
    /* Ignored signals and masks outlive exec; the program shall start as from a shell. */
    (void)signal(SIGPIPE, SIG_DFL);
    (void)signal(SIGXFSZ, SIG_DFL);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)setpgid(0, 0);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() == parent && (io->stdin_fd < 0 || dup2(io->stdin_fd, STDIN_FILENO) >= 0) &&
        (io->stdout_fd < 0 || dup2(io->stdout_fd, STDOUT_FILENO) >= 0) &&
        (io->stderr_fd < 0 || dup2(io->stderr_fd, STDERR_FILENO) >= 0))
        (void)execvp(argv[0], (char *const *)argv);
    int code = errno;
    ssize_t put = write(report, &code, sizeof code);
    _exit(put == (ssize_t)sizeof code ? 127 : 126);
}

static ev_status fail_start(const char *program, int code, ev_error *err) {
    char reason[128];
    /* A folder of PATH that may not be searched makes EACCES of a name that is nowhere. */
    bool by_path = strchr(program, '/') == NULL;
    if (code == ENOENT || (code == EACCES && by_path))
        return ev_fail(err, EV_BAD, "the program '%s' was not found; install it or mend PATH",
                       program);
    if (code == EACCES || code == ENOEXEC)
        return ev_fail(err, EV_BAD, "the program '%s' cannot be run: %s", program,
                       strerror_r(code, reason, sizeof reason));
    return ev_fail(err, EV_INFRA, "cannot start '%s': %s", program,
                   strerror_r(code, reason, sizeof reason));
}

/* Reads errno of a child that could not exec; 0 when the pipe closed because exec went well. */
static int read_report(int report) {
    int code = 0;
    ssize_t got = 0;
    do
        got = read(report, &code, sizeof code);
    while (got < 0 && errno == EINTR);
    if (got != (ssize_t)sizeof code)
        return 0;
    return code != 0 ? code : ECHILD; /* 0: its parent was gone before it could begin */
}

static int reap(pid_t pid) {
    int status = -1;
    pid_t got = 0;
    do
        got = waitpid(pid, &status, 0);
    while (got < 0 && errno == EINTR);
    return got == pid ? status : -1;
}

/* Forks and execs. When this returns EV_OK the program runs, in a process group of its own. */
static ev_status child_start(const char *const argv[], const child_io *io, pid_t *out,
                             ev_error *err) {
    assert(argv[0] != NULL);
    int report[2];
    if (!pipe_open(report))
        return ev_fail_errno(err, "cannot make a pipe for", argv[0]);
    pid_t parent = getpid();
    pid_t pid = fork();
    if (pid == 0)
        child_main(argv, io, report[1], parent);
    int code = pid < 0 ? errno : 0;
    fd_close(&report[1]);
    if (pid > 0)
        code = read_report(report[0]);
    fd_close(&report[0]);
    if (code != 0) {
        if (pid > 0)
            (void)reap(pid);
        return fail_start(argv[0], code, err);
    }
    *out = pid;
    return EV_OK;
}

/* ---- running one to its end ---- */

/* stdin for a child: a file in memory, so that no pipe can fill up or break while it reads. */
static int input_open(const char *input) {
    if (input == NULL)
        return fd_lift(open("/dev/null", O_RDONLY | O_CLOEXEC));
    int file = fd_lift(memfd_create("input", MFD_CLOEXEC));
    size_t left = strlen(input);
    while (file >= 0 && left > 0) {
        ssize_t put = write(file, input, left);
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0) {
            fd_close(&file);
            break;
        }
        input += put;
        left -= (size_t)put;
    }
    if (file >= 0 && lseek(file, 0, SEEK_SET) != 0)
        fd_close(&file);
    return file;
}

/* One output of a running child. */
typedef struct outlet {
    int fd; /* -1 after its end */
    ev_str text;
} outlet;

/* Takes what is there now. */
static void outlet_drain(outlet *o) {
    char buffer[16384];
    while (o->fd >= 0) {
        ssize_t got = read(o->fd, buffer, sizeof buffer);
        if (got > 0)
            ev_str_append_n(&o->text, buffer, (size_t)got);
        else if (got < 0 && errno == EINTR)
            continue;
        else if (got < 0 && errno == EAGAIN)
            return;
        else
            fd_close(&o->fd);
    }
}

/* Whether the child has ended; leaves it a zombie, so that its group's number stays its own. */
static bool child_ended(pid_t pid) {
    siginfo_t info = {0};
    return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == pid;
}

static void wait_for_output(const outlet outlets[2], double deadline) {
    struct pollfd watched[2];
    nfds_t count = 0;
    for (int i = 0; i < 2; i++) {
        if (outlets[i].fd >= 0)
            watched[count++] = (struct pollfd){.fd = outlets[i].fd, .events = POLLIN};
    }
    /* The tick sees a child that ended while a grandchild keeps its outputs open; with both outputs
     * at their end it only waits for the exit. */
    double tick = count > 0 ? 0.02 : 0.001;
    double left = deadline - ev_clock_now();
    if (left < tick)
        tick = left > 0 ? left : 0;
    (void)poll(watched, count, (int)(tick * 1000 + 0.999));
}

/* Collects until the child ends; true if it had to be killed at the deadline. */
static bool collect(pid_t pid, outlet outlets[2], double seconds) {
    double deadline = seconds > 0 ? ev_clock_now() + seconds : 1e300;
    bool timed_out = false;
    for (;;) {
        bool ended = child_ended(pid);
        outlet_drain(&outlets[0]);
        outlet_drain(&outlets[1]);
        if (ended || outlets[0].text.failed || outlets[1].text.failed)
            break;
        if (!timed_out && ev_clock_now() >= deadline) {
            timed_out = true;
            deadline = 1e300;
            (void)kill(-pid, SIGKILL);
        }
        wait_for_output(outlets, deadline);
    }
    (void)kill(-pid, SIGKILL); /* what the child left running goes with it */
    fd_close(&outlets[0].fd);
    fd_close(&outlets[1].fd);
    return timed_out;
}

static ev_status run_with(const char *const argv[], int input, double seconds,
                          ev_proc_result *result, ev_error *err) {
    int out[2] = {-1, -1}, problems[2] = {-1, -1};
    pid_t pid = -1;
    ev_status status = EV_OK;
    if (!pipe_open(out) || !pipe_open(problems))
        status = ev_fail_errno(err, "cannot make a pipe for", argv[0]);
    else
        status = child_start(argv, &(child_io){input, out[1], problems[1]}, &pid, err);
    fd_close(&out[1]);
    fd_close(&problems[1]);
    if (status != EV_OK) {
        fd_close(&out[0]);
        fd_close(&problems[0]);
        return status;
    }
    (void)fcntl(out[0], F_SETFL, O_NONBLOCK);
    (void)fcntl(problems[0], F_SETFL, O_NONBLOCK);
    outlet outlets[2] = {{out[0], EV_STR_EMPTY}, {problems[0], EV_STR_EMPTY}};
    bool timed_out = collect(pid, outlets, seconds);
    int ended = reap(pid);
    ev_proc_result all = {
        .exit_code = WIFEXITED(ended) ? WEXITSTATUS(ended) : -1,
        .signal = WIFSIGNALED(ended) ? WTERMSIG(ended) : 0,
        .timed_out = timed_out,
        .out = outlets[0].text,
        .err = outlets[1].text,
    };
    status = ev_str_status(&all.out, err);
    if (status == EV_OK)
        status = ev_str_status(&all.err, err);
    if (status == EV_OK)
        *result = all;
    else
        ev_proc_result_free(&all);
    return status;
}

ev_status ev_proc_run(const char *const argv[], const char *input, double seconds,
                      ev_proc_result *result, ev_error *err) {
    int file = input_open(input);
    if (file < 0)
        return ev_fail_errno(err, "cannot prepare the input of", argv[0]);
    ev_status status = run_with(argv, file, seconds, result, err);
    fd_close(&file);
    return status;
}

bool ev_signal_is_sent(int signal) {
    return signal == SIGKILL || signal == SIGTERM || signal == SIGINT || signal == SIGHUP;
}

ev_status ev_proc_judge(const char *const argv[], const char *input, double seconds,
                        ev_proc_result *result, ev_error *err) {
    for (int times = 1; times <= 2; times++) {
        EV_TRY(ev_proc_run(argv, input, seconds, result, err));
        if (result->timed_out || !ev_signal_is_sent(result->signal))
            return EV_OK;
        int signal = result->signal;
        ev_proc_result_free(result);
        (void)ev_fail(err, EV_INFRA,
                      "%s was ended by signal %d (%s), %d times; is there memory left?", argv[0],
                      signal, strsignal(signal), times);
    }
    return EV_INFRA;
}

void ev_proc_result_free(ev_proc_result *result) {
    ev_str_free(&result->out);
    ev_str_free(&result->err);
}

/* ---- keeping one ---- */

ev_status ev_proc_spawn(const char *const argv[], ev_proc *out, ev_error *err) {
    int to_child[2] = {-1, -1}, from_child[2] = {-1, -1};
    pid_t pid = -1;
    ev_status status = EV_OK;
    if (!pipe_open(to_child) || !pipe_open(from_child))
        status = ev_fail_errno(err, "cannot make a pipe for", argv[0]);
    else
        status = child_start(argv, &(child_io){to_child[0], from_child[1], -1}, &pid, err);
    fd_close(&to_child[0]);
    fd_close(&from_child[1]);
    if (status != EV_OK) {
        fd_close(&to_child[1]);
        fd_close(&from_child[0]);
        return status;
    }
    *out = (ev_proc){.pid = pid, .in = to_child[1], .out = from_child[0]};
    return EV_OK;
}

void ev_proc_hang_up(ev_proc *proc) {
    fd_close(&proc->in);
    fd_close(&proc->out);
}

/* Whether the child, which is not reaped, ends within some seconds. */
static bool ends_within(pid_t pid, double seconds) {
    double deadline = ev_clock_now() + seconds;
    long pause = 500000; /* nanoseconds; a worker ends within a millisecond or two */
    for (;;) {
        siginfo_t ended = {0};
        if (waitid(P_PID, (id_t)pid, &ended, WEXITED | WNOHANG | WNOWAIT) != 0 ||
            ended.si_pid == pid)
            return true; /* a failure shows where the child is reaped */
        if (ev_clock_now() > deadline)
            return false;
        (void)nanosleep(&(struct timespec){.tv_nsec = pause}, NULL);
        pause = pause < 50000000 ? 2 * pause : pause;
    }
}

int ev_proc_end(ev_proc *proc, double seconds) {
    ev_proc_hang_up(proc);
    if (proc->pid <= 0)
        return -1;
    if (seconds <= 0 || !ends_within(proc->pid, seconds))
        (void)kill(-proc->pid, SIGKILL);
    int status = reap(proc->pid);
    proc->pid = -1;
    return status;
}
