// Hosts in every state that a C program can be in.
#include "check.h"

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

// T2, case 37: SIGPIPE has its default action, since no Rust start-up has run
static void default_sigpipe(void) {
    struct sigaction now;
    CHECK(sigaction(SIGPIPE, NULL, &now) == 0 && now.sa_handler == SIG_DFL);
    bed b = bed_new();
    size_t len = 1 << 20;
    char *input = (char *)calloc(1, len);
    shx_request *request = request_of("exec true");
    OK(shx_request_set_stdin(request, shx_bytes(input, len), &error));
    free(input);
    shx_result *result = ran(b.bash, request);
    CHECK(exited_with(result, 0) && shx_result_stdin_truncated(result));
    shx_result_free(result);
    bed_free(b);
    CHECK(sigaction(SIGPIPE, NULL, &now) == 0 && now.sa_handler == SIG_DFL);
}

// T3: a status that the kernel still tells, or an error of its own; never 0, never a hang
static void ignored_sigchld(void) {
    signal(SIGCHLD, SIG_IGN);
    bed b = bed_new();
    shx_spec *spec = resolved(b.bash, request_of("exit 7"));
    shx_result *result;
    shx_error *error = NULL;
    shx_status status = shx_executor_run(b.bash, spec, &result, &error);
    if (status == SHX_STATUS_OK) {
        CHECK(exited_with(result, 7));
        shx_result_free(result);
    } else {
        CHECK(status == SHX_STATUS_STATUS_LOST);
        shx_error_free(error);
    }
    shx_spec_free(spec);
    bed_free(b);
}

// T1, T4
static void blocked_signals(void) {
    sigset_t all, before, after;
    sigfillset(&all);
    CHECK(pthread_sigmask(SIG_SETMASK, &all, NULL) == 0);
    CHECK(pthread_sigmask(SIG_SETMASK, NULL, &before) == 0);
    bed b = bed_new();
    shx_execution *job = started(b.bash, request_of("echo ready; exec sleep 300"));
    OK(shx_execution_wait_output(job, SHX_FOREVER, NULL, &error));
    OK(shx_execution_kill(job, NULL, &error));
    int number = 0;
    OK(shx_execution_wait(job, SHX_FOREVER, NULL, &error));
    CHECK(shx_execution_signal(job, &number) && number == SIGTERM);
    shx_execution_free(job);
    bed_free(b);
    CHECK(pthread_sigmask(SIG_SETMASK, NULL, &after) == 0);
    for (int signal = 1; signal < 32; signal++) {
        CHECK(sigismember(&before, signal) == sigismember(&after, signal));
    }
}

static void *all_of_it(void *nothing) {
    bed b = bed_new();
    shx_sandbox_provider *chain = shx_sandbox_chain_new();
    shx_sandbox_rungs *rungs;
    OK(shx_service_sandbox_rungs(b.service, chain, &rungs, &error));
    shx_sandbox_rungs_free(rungs);
    shx_sandbox_provider_free(chain);
    shx_request *request = request_of("seq 1 20000; echo err >&2; exit 3");
    OK(shx_request_set_env(request, shx_str("A"), shx_str("1"), &error));
    shx_execution *job = started(b.bash, request);
    shx_result *result;
    OK(shx_execution_result(job, &result, &error));
    CHECK(exited_with(result, 3));
    shx_text *text;
    OK(shx_render_result(result, &text, &error));
    shx_text_free(text);
    shx_result_free(result);
    shx_process_read *read;
    OK(shx_execution_read_output(job, &read, &error));
    CHECK(shx_process_read_delta(read).len > 100000);
    shx_process_read_free(read);
    shx_execution_free(job);
    OK(shx_service_dispose(b.service, NULL, NULL, &error));
    bed_free(b);
    return nothing;
}

// F5: the header's 32 KiB
static void small_stack(void) {
    pthread_attr_t attributes;
    pthread_t thread;
    CHECK(pthread_attr_init(&attributes) == 0);
    CHECK(pthread_attr_setstacksize(&attributes, 32 * 1024) == 0);
    CHECK(pthread_create(&thread, &attributes, all_of_it, NULL) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    pthread_attr_destroy(&attributes);
}

// T9: a process that the host has forked can ask for what is settled, and neither start nor stop anything
static void forked(void) {
    bed b = bed_new();
    shx_spec *spec = resolved(b.bash, request_of("exit 5"));
    shx_execution *settled, *running = started(b.bash, request_of("echo ready; exec sleep 300"));
    OK(shx_executor_execute(b.bash, spec, &settled, &error));
    OK(shx_execution_wait(settled, SHX_FOREVER, NULL, &error));
    OK(shx_execution_wait_output(running, SHX_FOREVER, NULL, &error));
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        shx_result *result;
        OK(shx_execution_result(settled, &result, &error));
        CHECK(exited_with(result, 5));
        shx_result_free(result);
        FAILS(SHX_STATUS_DISPOSED, "disposed", shx_executor_run(b.bash, spec, &result, &error));
        size_t stopped = 9;
        OK(shx_service_dispose(b.service, &stopped, NULL, &error));
        CHECK(stopped == 0);
        shx_execution_free(running);
        shx_execution_free(settled);
        shx_spec_free(spec);
        bed_free(b);
        exit(42);
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 42);
    CHECK(shx_execution_status(running) == SHX_PROCESS_STATUS_RUNNING);
    OK(shx_execution_kill(running, NULL, &error));
    OK(shx_execution_wait(running, SHX_FOREVER, NULL, &error));
    shx_execution_free(running);
    shx_execution_free(settled);
    shx_spec_free(spec);
    bed_free(b);
}

// T1: descriptors 0 to 2 are closed
static void closed_streams(void) {
    bed b;
    shx_result *result;
    int report = dup(2);
    CHECK(report > 2);
    close(0);
    close(1);
    close(2);
    b = bed_new();
    shx_request *request = request_of("cat; echo out; echo err >&2");
    OK(shx_request_set_stdin(request, shx_str("in\n"), &error));
    result = ran(b.bash, request);
    CHECK(view_is(shx_result_text(result, SHX_STREAM_STDOUT), "in\nout\n"));
    CHECK(view_is(shx_result_text(result, SHX_STREAM_STDERR), "err\n"));
    shx_result_free(result);
    bed_free(b);
    CHECK(dup2(report, 1) == 1 && dup2(report, 2) == 2);
}

void hosts(const char *part) {
    static const struct {
        const char *name;
        void (*play)(void);
    } parts[] = {
        {"host-sigpipe", default_sigpipe}, {"host-sigchld", ignored_sigchld}, {"host-blocked", blocked_signals},
        {"host-stack", small_stack},       {"host-forked", forked},           {"host-closed", closed_streams},
    };
    for (size_t at = 0; at < sizeof parts / sizeof *parts; at++) {
        if (strcmp(parts[at].name, part) == 0) {
            parts[at].play();
            return;
        }
    }
    CHECK(!"a part of this name");
}
