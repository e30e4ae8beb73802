// Bad input: a status and a message that names the thing, and nothing done.
#include "check.h"

// F4, R3, R4
static void requests(void) {
    bed b = bed_new();
    shx_request *request;
    shx_spec *spec;
    // Absurd lengths.
    FAILS(SHX_STATUS_INVALID_ARGUMENT, "command has a length",
          shx_request_new(shx_bytes("x", (size_t)-1), &request, &error));
    FAILS(SHX_STATUS_INVALID_ARGUMENT, "command is null", shx_request_new(shx_bytes(NULL, 3), &request, &error));
    OK(shx_request_new(shx_bytes(NULL, 0), &request, &error));
    shx_request_free(request);

    // A NUL, an empty key, a key with `=`: told when it is resolved.
    request = request_of("true");
    OK(shx_request_set_env(request, shx_bytes("A\0B", 3), shx_str("x"), &error));
    FAILS(SHX_STATUS_INVALID_REQUEST, "NUL", shx_executor_resolve(b.bash, request, &spec, &error));
    shx_request_free(request);
    request = request_of("true");
    OK(shx_request_set_env(request, shx_str(""), shx_str("x"), &error));
    FAILS(SHX_STATUS_INVALID_REQUEST, "env", shx_executor_resolve(b.bash, request, &spec, &error));
    shx_request_free(request);
    request = request_of("true");
    OK(shx_request_set_managed_env(request, shx_str("OTHER"), shx_str("x"), &error));
    FAILS(SHX_STATUS_INVALID_REQUEST, "OTHER", shx_executor_resolve(b.bash, request, &spec, &error));
    shx_request_free(request);
    OK(shx_request_new(shx_bytes("echo a\0; rm x", 13), &request, &error));
    FAILS(SHX_STATUS_INVALID_REQUEST, "command", shx_executor_resolve(b.bash, request, &spec, &error));
    shx_request_free(request);

    request = request_of("true");
    OK(shx_request_set_timeout_ms(request, 0, &error));
    FAILS(SHX_STATUS_INVALID_REQUEST, "timeout", shx_executor_resolve(b.bash, request, &spec, &error));
    OK(shx_request_set_timeout_ms(request, UINT64_MAX, &error));
    OK(shx_request_set_stdout_max_bytes(request, 0, &error));
    FAILS(SHX_STATUS_INVALID_REQUEST, "stdout_max_bytes", shx_executor_resolve(b.bash, request, &spec, &error));
    OK(shx_request_set_stdout_max_bytes(request, (size_t)-1, &error));
    OK(shx_executor_resolve(b.bash, request, &spec, &error));
    CHECK(shx_spec_timeout_ms(spec) == 600000);
    shx_result *result;
    OK(shx_executor_run(b.bash, spec, &result, &error));
    CHECK(exited_with(result, 0));
    shx_result_free(result);
    shx_spec_free(spec);
    for (int32_t number = -3; number < 9; number++) {
        shx_status expected = number >= 0 && number <= 2 ? SHX_STATUS_OK : SHX_STATUS_INVALID_ARGUMENT;
        CHECK(shx_request_set_on_expiry(request, number, NULL) == expected);
    }
    CHECK(shx_request_set_on_expiry(request, INT32_MAX, NULL) == SHX_STATUS_INVALID_ARGUMENT);
    shx_request_free(request);
    bed_free(b);
}

// X1
static void starts(void) {
    bed b = bed_new();
    shx_request *request = request_of("true");
    OK(shx_request_set_workdir(request, shx_str("/nonexistent/place"), &error));
    shx_spec *spec = resolved(b.bash, request);
    shx_execution *execution;
    shx_error *error = NULL;
    CHECK(shx_executor_start(b.bash, spec, &execution, &error) == SHX_STATUS_SPAWN);
    CHECK(shx_error_stage(error) == SHX_STAGE_WORKDIR && shx_error_errno(error) == ENOENT);
    CHECK(view_is(shx_error_path(error), "/nonexistent/place") && view_is(shx_error_code(error), "SPAWN"));
    CHECK(shx_error_field(error).len == 0);
    shx_error_free(error);
    shx_spec_free(spec);

    shx_config *config = shx_config_new();
    OK(shx_config_set_shell(config, shx_str("no-such-shell"), &error));
    shx_executor *bash;
    OK(shx_bash_executor_new(b.service, config, NULL, NULL, &bash, &error));
    spec = resolved(bash, request_of("true"));
    shx_result *result;
    CHECK(shx_executor_run(bash, spec, &result, &error) == SHX_STATUS_SPAWN);
    CHECK(shx_error_stage(error) == SHX_STAGE_SHELL);
    shx_error_free(error);
    shx_spec_free(spec);
    shx_executor_free(bash);
    OK(shx_config_set_default_timeout_ms(config, 0, &error));
    FAILS(SHX_STATUS_INVALID_REQUEST, "default_timeout",
          shx_bash_executor_new(b.service, config, NULL, NULL, &bash, &error));
    shx_config_free(config);

    shx_spawn_spec *order;
    OK(shx_spawn_spec_new(shx_str("/"), &order, &error));
    FAILS(SHX_STATUS_INVALID_REQUEST, "argv", shx_service_spawn(b.service, order, &execution, &error));
    OK(shx_spawn_spec_add_arg(order, shx_str("no-such-program"), &error));
    CHECK(shx_service_spawn(b.service, order, &execution, &error) == SHX_STATUS_SPAWN);
    CHECK(shx_error_stage(error) == SHX_STAGE_EXEC);
    shx_error_free(error);
    FAILS(SHX_STATUS_INVALID_ARGUMENT, "stream", shx_spawn_spec_pipe(order, 0, &error));
    FAILS(SHX_STATUS_INVALID_ARGUMENT, "stream", shx_spawn_spec_collect(order, 3, 1, 0, &error));
    shx_spawn_spec_free(order);
    bed_free(b);
}

// F4
static void numbers_and_text(void) {
    bed b = bed_new();
    const char latin[] = "\xe9t\xe9";
    shx_sandbox_policy *policy;
    shx_policy_service *policies;
    shx_sandbox_provider *provider;
    for (int32_t number = 3; number < 300; number += 99) {
        FAILS(SHX_STATUS_INVALID_ARGUMENT, "no sandbox mode",
              shx_sandbox_policy_new(number, shx_str("/"), shx_str(""), &policy, &error));
        provider = shx_sandbox_chain_new();
        FAILS(SHX_STATUS_INVALID_ARGUMENT, "backend",
              shx_sandbox_chain_set_backends(provider, &number, number == 3 ? 17 : 1, &error));
        FAILS(SHX_STATUS_INVALID_ARGUMENT, "backends is null",
              shx_sandbox_chain_set_backends(provider, NULL, 1, &error));
        shx_sandbox_provider_free(provider);
    }
    FAILS(SHX_STATUS_INVALID_ARGUMENT, "not UTF-8",
          shx_sandbox_policy_new(SHX_SANDBOX_MODE_READ_ONLY, shx_str("/"), shx_str(latin), &policy, &error));
    OK(shx_policy_service_new(SHX_SANDBOX_MODE_READ_ONLY, shx_str("/nonexistent"), &policies, &error));
    FAILS(SHX_STATUS_INVALID_REQUEST, "workspace_root",
          shx_policy_service_resolve(policies, shx_str(""), SHX_SANDBOX_MODE_NONE, &policy, &error));
    FAILS(SHX_STATUS_INVALID_ARGUMENT, "approved",
          shx_policy_service_resolve(policies, shx_str(""), 99, &policy, &error));
    shx_policy_service_free(policies);
    FAILS(SHX_STATUS_INVALID_ARGUMENT, "enforcement",
          shx_sandbox_runner_new(NULL, 0, 7, &provider, &error));
    FAILS(SHX_STATUS_INVALID_ARGUMENT, "words is null",
          shx_sandbox_runner_new(NULL, 2, SHX_ENFORCEMENT_FULL, &provider, &error));
    FAILS(SHX_STATUS_INVALID_ARGUMENT, "count", shx_sandbox_runner_new((const shx_view *)latin, (size_t)-1,
                                                                      SHX_ENFORCEMENT_FULL, &provider, &error));
    shx_parsed_output *parsed;
    FAILS(SHX_STATUS_INVALID_ARGUMENT, "not UTF-8", shx_parse_exit_status(shx_str(latin), &parsed, &error));

    // A command and a value are bytes: they go through as they are.
    shx_request *request = request_of("printf %s \"$A\"");
    OK(shx_request_set_env(request, shx_str("A"), shx_str(latin), &error));
    shx_result *result = ran(b.bash, request);
    CHECK(view_is(shx_result_bytes(result, SHX_STREAM_STDOUT), latin));
    CHECK(shx_result_text(result, 9).len == 0 && shx_result_total_bytes(result, -1) == 0);
    shx_result_free(result);
    shx_execution *execution = started(b.bash, request_of("true"));
    shx_output_read *read;
    FAILS(SHX_STATUS_INVALID_ARGUMENT, "stream", shx_execution_read_stream(execution, 0, &read, &error));
    FAILS(SHX_STATUS_INVALID_ARGUMENT, "stream", shx_execution_read_text_from(execution, 7, 0, &read, &error));
    OK(shx_execution_read_text_from(execution, SHX_STREAM_STDOUT, UINT64_MAX, &read, &error));
    CHECK(shx_output_read_view(read).len == 0);
    shx_output_read_free(read);
    shx_execution_free(execution);
    bed_free(b);
}

void refusals(const char *part) {
    if (strcmp(part, "refuse-requests") == 0) {
        requests();
    } else if (strcmp(part, "refuse-starts") == 0) {
        starts();
    } else if (strcmp(part, "refuse-values") == 0) {
        numbers_and_text();
    } else {
        CHECK(!"a part of this name");
    }
}
