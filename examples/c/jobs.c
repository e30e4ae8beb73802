// A small job runner: three commands at once, their output as it comes, and how each ended.
//
//     jobs [MILLISECONDS]
//
// One command is answered and ends by itself. One is killed. One outruns its deadline of so many milliseconds
// (1000), and is kept. For Unix: it writes to descriptors.
//
//     cc -Iinclude examples/c/jobs.c -Ltarget/release -lshell_executor -o jobs
//     LD_LIBRARY_PATH=target/release ./jobs
//
// The static library: see foreground.c.

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shell_executor.h"

struct job {
    const char *name, *command;
    shx_on_expiry on_expiry;
    shx_execution *execution;
};

static int fail(shx_error *error) {
    shx_view message = shx_error_message(error);
    fprintf(stderr, "jobs: %.*s\n", (int)message.len, message.data);
    shx_error_free(error);
    return 125;
}

// Returns as soon as the command runs. What it was built from is not needed any more then.
static shx_status start(const shx_executor *bash, struct job *job, uint64_t timeout_ms, shx_error **error) {
    shx_request *request = NULL;
    shx_spec *spec = NULL;
    shx_status status = shx_request_new(shx_str(job->command), &request, error);
    if (!status) status = shx_request_set_timeout_ms(request, timeout_ms, error);
    if (!status) status = shx_request_set_on_expiry(request, job->on_expiry, error);
    if (!status) status = shx_request_set_stdin_piped(request, error);
    if (!status) status = shx_executor_resolve(bash, request, &spec, error);
    if (!status) status = shx_executor_start(bash, spec, &job->execution, error);
    shx_spec_free(spec);
    shx_request_free(request);
    return status;
}

// Shows what is new, line by line. These commands write whole lines; others may be read in the middle of one.
static size_t show(const struct job *job, shx_view text) {
    size_t lines = 0;
    while (text.len > 0) {
        const char *end = (const char *)memchr(text.data, '\n', text.len);
        size_t length = end ? (size_t)(end - text.data) : text.len;
        printf("%s: %.*s\n", job->name, (int)length, text.data);
        if (end) length++;
        text = shx_bytes(text.data + length, text.len - length);
        lines++;
    }
    return lines;
}

// Shows what comes, until there were so many lines, or there will be no more. Nothing looks in vain.
static shx_status follow(const struct job *job, size_t lines, shx_error **error) {
    bool news = true;
    size_t shown = 0;
    shx_status status = SHX_STATUS_OK;
    while (!status && news && shown < lines) {
        shx_process_read *read = NULL;
        status = shx_execution_wait_output(job->execution, SHX_FOREVER, &news, error);
        if (!status) status = shx_execution_read_output(job->execution, &read, error);
        shown += show(job, shx_process_read_delta(read));
        shx_process_read_free(read);
    }
    return status;
}

// The descriptor is ours. Closing it is the command's end of file.
static shx_status tell(const struct job *job, const char *line, shx_error **error) {
    shx_descriptor input = -1;
    shx_status status = shx_execution_take_stdin(job->execution, &input, error);
    if (!status && input >= 0) {
        if (write((int)input, line, strlen(line)) < 0) printf("%s: reads no more\n", job->name);
        close((int)input);
    }
    return status;
}

// Blocks until the deadline has passed, or the command has ended before it.
static shx_status keep(const struct job *job, shx_error **error) {
    bool kept = false;
    shx_promotion_offer *offer = NULL;
    shx_status status = shx_execution_promotion(job->execution, &offer, error);
    if (!status && offer) status = shx_promotion_offer_accept(offer, &kept, error);
    printf("%s: %s\n", job->name, kept ? "past its deadline, kept" : "not kept");
    shx_promotion_offer_free(offer); // Without an answer, this would decline.
    return status;
}

static shx_status finish(const struct job *job, shx_error **error) {
    shx_result *result = NULL;
    int32_t code;
    shx_status status = follow(job, SIZE_MAX, error);
    if (!status) status = shx_execution_result(job->execution, &result, error);
    if (!status && shx_result_exit_code(result, &code)) {
        printf("%s ended: exit code %" PRId32 "\n", job->name, code);
    } else if (!status) {
        shx_view name = shx_result_signal_name(result);
        const char *cause = shx_result_cause(result) == SHX_CAUSE_KILL ? ", killed by us" : ", not by us";
        printf("%s ended: %.*s%s\n", job->name, (int)name.len, name.data, cause);
    }
    shx_result_free(result);
    return status;
}

int main(int argc, char **argv) {
    uint64_t deadline_ms = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000;
    struct job asks = {"asks", "echo who?; read -r a; echo hello $a; exit 3", SHX_ON_EXPIRY_NONE, NULL};
    struct job late = {"late", "echo working; read -r a; echo done: $a", SHX_ON_EXPIRY_OFFER, NULL};
    struct job stuck = {"stuck", "echo waiting; read -r a", SHX_ON_EXPIRY_NONE, NULL};
    shx_config *config = shx_config_new();
    shx_service *service = NULL;
    shx_executor *bash = NULL;
    shx_error *error = NULL;
    int code = 0;

    signal(SIGPIPE, SIG_IGN); // So that writing to a command that has ended is an error, and not our end.

    // The offer stays open while we look after the other jobs. Not answered in time, it is declined.
    if (shx_config_set_answer_window_ms(config, 60000, &error) || shx_service_new(NULL, &service, &error) ||
        shx_bash_executor_new(service, config, NULL, NULL, &bash, &error) ||
        start(bash, &asks, 60000, &error) || start(bash, &late, deadline_ms, &error) ||
        start(bash, &stuck, 60000, &error) ||
        follow(&asks, 1, &error) || tell(&asks, "you\n", &error) || finish(&asks, &error) ||
        follow(&stuck, 1, &error) || shx_execution_kill(stuck.execution, NULL, &error) || finish(&stuck, &error) ||
        follow(&late, 1, &error) || keep(&late, &error) || tell(&late, "late\n", &error) || finish(&late, &error)) {
        code = fail(error);
    }

    // Freeing a handle stops nothing. Freeing the service does.
    shx_execution_free(asks.execution);
    shx_execution_free(late.execution);
    shx_execution_free(stuck.execution);
    shx_executor_free(bash);
    shx_config_free(config);
    shx_service_free(service);
    return code;
}
