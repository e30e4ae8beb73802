// A command that may only read, and the same command once more after somebody has allowed it to write.
//
//     sandboxed [WORKSPACE [COMMAND]]
//
// The workspace is the current directory unless it is named, and the command makes a file there. Where nothing can
// confine, it says so, and runs nothing.
//
//     cc -Iinclude examples/c/sandboxed.c -Ltarget/release -lshell_executor -o sandboxed
//     LD_LIBRARY_PATH=target/release ./sandboxed
//
// The static library: see foreground.c.

#include <inttypes.h>
#include <stdio.h>

#include "shell_executor.h"

// What is printed of a view is as long as it says: no NUL stands at its end.
static void print(FILE *file, shx_view text) {
    fwrite(text.data, 1, text.len, file);
}

// A host without a sandbox is nothing to be ashamed of, but has to be said: the command was not run.
static int fail(shx_error *error) {
    bool unavailable = shx_error_status(error) == SHX_STATUS_SANDBOX_UNAVAILABLE;
    FILE *file = unavailable ? stdout : stderr;
    fprintf(file, unavailable ? "nothing here can confine, so nothing was run: " : "sandboxed: ");
    print(file, shx_error_message(error));
    fprintf(file, "\n");
    shx_error_free(error);
    return unavailable ? 0 : 125;
}

static void show(const shx_result *result) {
    // These facts belong to the result: they are not freed.
    const shx_sandbox_info *facts = shx_result_sandbox(result);
    int32_t code;
    printf("mode %s, backend ", shx_sandbox_mode_name(shx_sandbox_info_mode(facts)));
    print(stdout, shx_sandbox_info_backend(facts));
    printf(", enforcement %s, denied %s\n", shx_enforcement_name(shx_sandbox_info_enforcement(facts)),
           shx_sandbox_info_denied(facts) ? "yes" : "no");
    print(stdout, shx_result_text(result, SHX_STREAM_STDOUT));
    print(stdout, shx_result_text(result, SHX_STREAM_STDERR));
    if (shx_result_exit_code(result, &code)) {
        printf("exit code %" PRId32 "\n", code);
    }
}

static shx_status run(const shx_executor *bash, const shx_spec *spec, shx_error **error) {
    shx_result *result = NULL;
    shx_status status = shx_executor_run(bash, spec, &result, error);
    if (!status) show(result);
    shx_result_free(result);
    return status;
}

// Asked once, for that very call, on the thread that wants it. A real host asks a person. `user` is what we gave.
static bool approve(void *user, const shx_escalation *escalation) {
    int *asked = (int *)user;
    *asked += 1;
    printf("asked to run \"");
    print(stdout, shx_escalation_command(escalation));
    printf("\" in %s instead of %s, because ", shx_sandbox_mode_name(shx_escalation_requested_mode(escalation)),
           shx_sandbox_mode_name(shx_escalation_current_mode(escalation)));
    print(stdout, shx_escalation_justification(escalation));
    printf("\n");
    return shx_escalation_requested_mode(escalation) == SHX_SANDBOX_MODE_WORKSPACE_WRITE;
}

int main(int argc, char **argv) {
    shx_view workspace = shx_str(argc > 1 ? argv[1] : ".");
    shx_view command = shx_str(argc > 2 ? argv[2] : "echo text >note.txt && echo written");
    shx_view reason = shx_str("it makes a file");
    int asked = 0;
    shx_service *service = NULL;
    shx_sandbox_provider *chain = shx_sandbox_chain_new();
    shx_sandbox_policy *policy = NULL;
    shx_executor *bash = NULL;
    shx_request *request = NULL;
    shx_spec *spec = NULL;
    shx_spec *wider = NULL;
    shx_error *error = NULL;
    int code = 0;

    // The first run finds out what can confine here.
    if (shx_service_new(NULL, &service, &error) ||
        shx_sandbox_policy_new(SHX_SANDBOX_MODE_READ_ONLY, workspace, shx_str(""), &policy, &error) ||
        shx_bash_executor_new(service, NULL, chain, policy, &bash, &error) ||
        shx_request_new(command, &request, &error) ||
        shx_request_set_workdir(request, workspace, &error) ||
        shx_executor_resolve(bash, request, &spec, &error) ||
        run(bash, spec, &error) ||
        shx_spec_escalate(spec, SHX_SANDBOX_MODE_WORKSPACE_WRITE, reason, approve, &asked, &wider, &error) ||
        run(bash, wider, &error)) {
        code = fail(error);
    }
    printf("approvals asked for: %d\n", asked);

    shx_spec_free(wider);
    shx_spec_free(spec);
    shx_request_free(request);
    shx_executor_free(bash);
    shx_sandbox_policy_free(policy);
    shx_sandbox_provider_free(chain);
    shx_service_free(service);
    return code;
}
