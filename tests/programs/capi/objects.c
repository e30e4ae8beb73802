// Each object's life: made, used in every way, freed.
#include "check.h"

#include <pthread.h>
#include <unistd.h>

// E2, E3, C2, O2
static void foreground(void) {
    bed b = bed_new();
    shx_request *request = request_of("cat; printf 'o\\xff'; echo \"$A\" >&2; exit 3");
    OK(shx_request_set_stdin(request, shx_bytes("a\0b\n", 4), &error));
    OK(shx_request_set_env(request, shx_str("A"), shx_str("value"), &error));
    OK(shx_request_set_timeout_ms(request, 60000, &error));
    shx_result *result = ran(b.bash, request);
    CHECK(exited_with(result, 3));
    CHECK(!shx_result_signal(result, NULL) && !shx_result_success(result));
    CHECK(!shx_result_timed_out(result) && !shx_result_aborted(result));
    CHECK(shx_result_status(result) == SHX_PROCESS_STATUS_COMPLETED);
    CHECK(shx_result_cause(result) == SHX_CAUSE_EXIT);
    shx_view bytes = shx_result_bytes(result, SHX_STREAM_STDOUT);
    CHECK(bytes.len == 6 && memcmp(bytes.data, "a\0b\no\xff", 6) == 0);
    CHECK(shx_result_text(result, SHX_STREAM_STDOUT).len == 8);  // U+FFFD has three bytes
    CHECK(view_is(shx_result_text(result, SHX_STREAM_STDERR), "value\n"));
    CHECK(shx_result_total_bytes(result, SHX_STREAM_STDOUT) == 6);
    CHECK(!shx_result_truncated(result, SHX_STREAM_STDOUT));
    CHECK(shx_result_spill_path(result, SHX_STREAM_STDOUT).len == 0);
    CHECK(shx_result_spill_error(result, SHX_STREAM_STDOUT).len == 0);
    uint64_t ms = 0, user = 0, system = 0, rss = 0;
    CHECK(shx_result_timeout_ms(result, &ms) && ms == 60000);
    CHECK(shx_result_usage(result, &user, &system, &rss) && rss > 0);
    CHECK(shx_result_duration_us(result) > 0);
    CHECK(!shx_result_pipes_held(result) && shx_result_survivors(result) == 0);
    CHECK(!shx_result_stdin_truncated(result) && !shx_result_sandbox(result));

    shx_text *text;
    OK(shx_render_result(result, &text, &error));
    CHECK(view_has(shx_text_view(text), "[stderr]\nvalue\n[exit code: 3]"));
    shx_parsed_output *parsed;
    OK(shx_parse_exit_status(shx_text_view(text), &parsed, &error));
    CHECK(shx_parsed_output_kind(parsed) == SHX_EXIT_KIND_CODE && shx_parsed_output_code(parsed) == 3);
    CHECK(shx_parsed_output_body(parsed).len == shx_text_view(text).len - strlen("[exit code: 3]"));
    CHECK(shx_parsed_output_signal(parsed).len == 0);
    shx_parsed_output_free(parsed);
    shx_text_free(text);
    shx_result_free(result);
    bed_free(b);
}

// O1, O5, O9, O10
static void output(void) {
    bed b = bed_new();
    shx_config *config = shx_config_new();
    OK(shx_config_set_output_max_bytes(config, 100, &error));
    shx_executor *bash;
    OK(shx_bash_executor_new(b.service, config, NULL, NULL, &bash, &error));
    shx_execution *execution = started(bash, request_of("seq 1 1000; read go <&0 || seq 1 3 >&2"));
    shx_result *result;
    OK(shx_execution_result(execution, &result, &error));
    CHECK(shx_result_truncated(result, SHX_STREAM_STDOUT));
    CHECK(shx_result_total_bytes(result, SHX_STREAM_STDOUT) == 3893);
    CHECK(shx_execution_total_bytes(execution, SHX_STREAM_STDOUT) == 3893);
    CHECK(shx_result_spill_path(result, SHX_STREAM_STDOUT).len > 0);

    shx_output_read *piece;
    OK(shx_execution_read_text_from(execution, SHX_STREAM_STDOUT, 0, &piece, &error));
    CHECK(shx_output_read_view(piece).len == 3893 && shx_output_read_next_offset(piece) == 3893);
    CHECK(!shx_output_read_lossy(piece) && shx_output_read_spill_path(piece).len > 0);
    shx_output_read_free(piece);
    OK(shx_execution_read_bytes_from(execution, SHX_STREAM_STDOUT, 3888, &piece, &error));
    CHECK(view_is(shx_output_read_view(piece), "1000\n"));
    shx_output_read_free(piece);

    bool news = false;
    OK(shx_execution_wait_output(execution, SHX_FOREVER, &news, &error));
    CHECK(news);
    shx_process_read *read;
    OK(shx_execution_read_output(execution, &read, &error));
    CHECK(shx_process_read_delta(read).len == 3893 + strlen("[stderr]\n1\n2\n3\n"));
    CHECK(!shx_process_read_lossy(read) && shx_process_read_stdout_spill_path(read).len > 0);
    CHECK(shx_process_read_stderr_spill_path(read).len == 0);
    shx_text *text;
    OK(shx_render_read(read, result, NULL, &text, &error));
    CHECK(view_has(shx_text_view(text), "[stderr]\n1\n2\n3\n"));
    shx_text_free(text);
    shx_process_read_free(read);
    OK(shx_execution_wait_stream(execution, SHX_STREAM_STDERR, 0, &news, &error));
    CHECK(!news);
    OK(shx_execution_read_stream(execution, SHX_STREAM_STDOUT, &piece, &error));
    CHECK(shx_output_read_view(piece).len == 0);
    shx_output_read_free(piece);

    shx_result_free(result);
    shx_execution_free(execution);
    shx_executor_free(bash);
    shx_config_free(config);
    bed_free(b);
}

// R1, R2: every field of a spec can be read
static void spec(void) {
    bed b = bed_new();
    shx_config *config = shx_config_new();
    OK(shx_config_set_max_timeout_ms(config, 5000, &error));
    OK(shx_config_set_default_timeout_ms(config, 4000, &error));
    OK(shx_config_set_grace_ms(config, 0, &error));
    OK(shx_config_set_drain_idle_ms(config, 70, &error));
    OK(shx_config_set_answer_window_ms(config, 80, &error));
    OK(shx_config_set_spill_max_bytes(config, 90, &error));
    OK(shx_config_set_no_spill(config, &error));
    OK(shx_config_set_shell(config, shx_str("bash"), &error));
    OK(shx_config_set_workdir(config, shx_str("/"), &error));
    OK(shx_config_set_inherit_nothing(config, &error));
    OK(shx_config_add_inherited_env(config, shx_str("MY_TOKEN"), shx_str("x"), &error));
    OK(shx_config_add_inherited_env(config, shx_str("KEPT_TOKEN"), shx_str("x"), &error));
    OK(shx_config_add_inherited_env(config, shx_str("PLAIN"), shx_str("x"), &error));
    OK(shx_config_add_scrub(config, shx_str("plain"), &error));
    OK(shx_config_add_scrub_exempt(config, shx_str("KEPT_TOKEN"), &error));
    shx_executor *bash;
    OK(shx_bash_executor_new(b.service, config, NULL, NULL, &bash, &error));
    shx_config_free(config);
    CHECK(shx_executor_sandbox_mode(bash) == SHX_SANDBOX_MODE_NONE);

    shx_abort_token *token = shx_abort_token_new();
    shx_request *request = request_of("-n");
    OK(shx_request_set_workdir(request, shx_str("usr"), &error));
    OK(shx_request_set_timeout_ms(request, 999999, &error));
    OK(shx_request_set_stdout_max_bytes(request, 123, &error));
    OK(shx_request_set_abort(request, token, &error));
    OK(shx_request_set_stdin(request, shx_str("in"), &error));
    OK(shx_request_set_env(request, shx_str("A"), shx_str("1"), &error));
    OK(shx_request_remove_env(request, shx_str("PAGER"), &error));
    OK(shx_request_set_managed_env(request, shx_str("DSH_X"), shx_str("y"), &error));
    OK(shx_request_set_on_expiry(request, SHX_ON_EXPIRY_OFFER, &error));
    OK(shx_request_set_backpressure(request, true, &error));
    shx_spec *first = resolved(bash, request);
    shx_spec *spec = shx_spec_clone(first);
    shx_spec_free(first);
    CHECK(view_is(shx_spec_command(spec), "-n") && view_is(shx_spec_workdir(spec), "/usr"));
    CHECK(shx_spec_timeout_ms(spec) == 5000 && shx_spec_on_expiry(spec) == SHX_ON_EXPIRY_OFFER);
    CHECK(shx_spec_stdout_max_bytes(spec) == 123 && shx_spec_stderr_max_bytes(spec) == 64000);
    CHECK(shx_spec_spill_max_bytes(spec) == 0 && shx_spec_grace_ms(spec) == 0);
    CHECK(shx_spec_drain_idle_ms(spec) == 70 && shx_spec_answer_window_ms(spec) == 80);
    CHECK(shx_spec_has_abort(spec) && shx_spec_backpressure(spec));
    CHECK(shx_spec_stdin(spec) == SHX_STDIN_BYTES && view_is(shx_spec_stdin_bytes(spec), "in"));
    CHECK(shx_spec_sandbox_mode(spec) == SHX_SANDBOX_MODE_NONE);
    CHECK(shx_spec_workspace_root(spec).len == 0 && shx_spec_sandbox_session(spec).len == 0);
    CHECK(shx_spec_scrubbed_count(spec) == 2 && view_is(shx_spec_scrubbed_at(spec, 0), "MY_TOKEN"));
    CHECK(view_is(shx_spec_scrubbed_at(spec, 1), "PLAIN") && shx_spec_scrubbed_at(spec, 2).len == 0);
    int seen = 0;
    shx_view name, value;
    for (size_t at = 0; shx_spec_env_at(spec, at, &name, &value); at++) {
        seen += view_is(name, "A") && view_is(value, "1");
        seen += view_is(name, "DSH_X") && view_is(value, "y");
        seen += view_is(name, "KEPT_TOKEN");
        CHECK(!view_is(name, "PAGER") && !view_is(name, "MY_TOKEN"));
    }
    CHECK(seen == 3 && shx_spec_env_count(spec) > 3);
    CHECK(!shx_spec_env_at(spec, (size_t)-1, NULL, NULL));
    shx_spec_free(spec);
    shx_abort_token_free(token);
    shx_executor_free(bash);
    bed_free(b);
}

// W4: the stand-in for pwsh is told where it is by the config
static void powershell(void) {
    bed b = bed_new();
    char dir[] = "/tmp/shx-capi-XXXXXX";
    CHECK(mkdtemp(dir));
    char path[64], command[512];
    snprintf(path, sizeof path, "%s/pwsh", dir);
    snprintf(command, sizeof command,
             "printf '%%s\\n' '#!/bin/sh' 'for word; do echo \"$word\"; done; exit 5' >%s; chmod +x %s", path, path);
    shx_result *result = ran(b.bash, request_of(command));
    CHECK(exited_with(result, 0));
    shx_result_free(result);
    shx_config *config = shx_config_new();
    OK(shx_config_set_shell(config, shx_str(path), &error));
    shx_executor *pwsh;
    OK(shx_pwsh_executor_new(b.service, config, NULL, NULL, &pwsh, &error));
    shx_config_free(config);
    result = ran(pwsh, request_of("Write-Output 'hello'"));
    shx_view words = shx_result_text(result, SHX_STREAM_STDOUT);
    CHECK(exited_with(result, 5) && view_has(words, "-NoProfile\n") && view_has(words, "Write-Output 'hello'\n"));
    shx_result_free(result);
    shx_executor_free(pwsh);
    bed_free(b);
    snprintf(command, sizeof command, "rm -r %s", dir);
    CHECK(system(command) == 0);
}

// T4, T8, E8, C1
static void stopping(void) {
    bed b = bed_new();
    shx_execution *job = started(b.bash, request_of("echo ready; exec sleep 300"));
    CHECK(shx_execution_pid(job) > 0);
    OK(shx_execution_wait_started(job, &error));
    OK(shx_execution_wait_output(job, SHX_FOREVER, NULL, &error));
    CHECK(shx_execution_status(job) == SHX_PROCESS_STATUS_RUNNING);
    shx_process_status status = -1;
    OK(shx_execution_wait(job, 0, &status, &error));
    CHECK(status == SHX_PROCESS_STATUS_RUNNING);
    CHECK(!shx_execution_exit_code(job, NULL) && !shx_execution_signal(job, NULL));
    bool first = false;
    OK(shx_execution_kill(job, &first, &error));
    CHECK(first);
    OK(shx_execution_kill(job, &first, &error));
    CHECK(!first);
    OK(shx_execution_wait(job, SHX_FOREVER, &status, &error));
    int number = 0;
    CHECK(status == SHX_PROCESS_STATUS_KILLED && shx_execution_signal(job, &number) && number == 15);
    shx_result *result;
    OK(shx_execution_result(job, &result, &error));
    CHECK(shx_result_cause(result) == SHX_CAUSE_KILL);
    CHECK(view_is(shx_result_signal_name(result), "SIGTERM"));
    CHECK(shx_result_containment(result) == shx_execution_containment(job));
    shx_result_free(result);
    shx_execution_free(job);

    job = started(b.bash, request_of("sleep 300 & echo $!"));
    bool gone = true;
    OK(shx_execution_result(job, &result, &error));
    CHECK(exited_with(result, 0) && shx_result_pipes_held(result) && shx_result_survivors(result) == 1);
    shx_result_free(result);
    OK(shx_execution_wait_range(job, 0, &gone, &error));
    CHECK(!gone);
    bool any = false;
    OK(shx_execution_kill_survivors(job, &any, &error));
    CHECK(any);
    OK(shx_execution_wait_range(job, SHX_FOREVER, &gone, &error));
    CHECK(gone);
    shx_execution_free(job);

    // What runs when the service is disposed of is stopped, and counted.
    job = started(b.bash, request_of("exec sleep 300"));
    size_t stopped = 0, survivors = 1;
    OK(shx_service_dispose(b.service, &stopped, &survivors, &error));
    CHECK(stopped == 1 && survivors == 0);
    CHECK(shx_execution_status(job) == SHX_PROCESS_STATUS_KILLED);
    shx_execution_free(job);
    bed_free(b);
}

// C5, C1
static void aborting(void) {
    bed b = bed_new();
    shx_abort_token *token = shx_abort_token_new();
    shx_abort_token *other = shx_abort_token_clone(token);
    shx_request *request = request_of("echo ready; exec sleep 300");
    OK(shx_request_set_abort(request, token, &error));
    shx_spec *spec = resolved(b.bash, request);
    shx_execution *job;
    OK(shx_executor_execute(b.bash, spec, &job, &error));
    OK(shx_execution_wait_output(job, SHX_FOREVER, NULL, &error));
    bool first = false;
    CHECK(!shx_abort_token_is_fired(token));
    OK(shx_abort_token_fire(other, &first, &error));
    CHECK(first && shx_abort_token_is_fired(token));
    OK(shx_abort_token_fire(token, &first, &error));
    CHECK(!first);
    shx_result *result;
    OK(shx_execution_result(job, &result, &error));
    CHECK(shx_result_aborted(result) && !shx_result_timed_out(result));
    CHECK(shx_result_cause(result) == SHX_CAUSE_ABORT);
    shx_result_free(result);
    shx_execution_free(job);
    FAILS(SHX_STATUS_ABORTED, "aborted", shx_executor_start(b.bash, spec, &job, &error));
    shx_spec_free(spec);
    shx_abort_token_free(other);
    shx_abort_token_free(token);
    bed_free(b);
}

// A command that waits for a line and is kept past its deadline; asked again with a longer one until it was there in time.
static shx_execution *offered(const shx_executor *bash, shx_promotion_offer **offer) {
    for (uint64_t ms = 100; ms < 60000; ms *= 2) {
        shx_request *request = request_of("echo ready; read word; echo \"got $word\"");
        OK(shx_request_set_timeout_ms(request, ms, &error));
        OK(shx_request_set_on_expiry(request, SHX_ON_EXPIRY_OFFER, &error));
        OK(shx_request_set_stdin_piped(request, &error));
        shx_execution *job = started(bash, request);
        OK(shx_execution_promotion(job, offer, &error));
        if (*offer) {
            return job;
        }
        shx_execution_free(job);
    }
    CHECK(!"it was never offered");
    return NULL;
}

// P1, P2, P3, I1
static void promotion(void) {
    bed b = bed_new();
    shx_promotion_offer *offer = NULL;
    shx_execution *job = offered(b.bash, &offer);
    bool kept = false, stopped = true;
    OK(shx_promotion_offer_accept(offer, &kept, &error));
    OK(shx_promotion_offer_decline(offer, &stopped, &error));
    CHECK(kept && !stopped);
    shx_promotion_offer_free(offer);
    OK(shx_execution_promotion(job, &offer, &error));
    CHECK(!offer);
    shx_descriptor input = -1, none = 0;
    OK(shx_execution_take_stdin(job, &input, &error));
    OK(shx_execution_take_stdin(job, &none, &error));
    CHECK(input > 2 && none == -1);
    CHECK(write((int)input, "news\n", 5) == 5 && close((int)input) == 0);
    shx_result *result;
    OK(shx_execution_result(job, &result, &error));
    CHECK(exited_with(result, 0) && !shx_result_timed_out(result));
    CHECK(view_has(shx_result_text(result, SHX_STREAM_STDOUT), "got news\n"));
    shx_result_free(result);
    shx_execution_free(job);

    job = offered(b.bash, &offer);
    shx_promotion_offer_free(offer);
    OK(shx_execution_result(job, &result, &error));
    CHECK(shx_result_timed_out(result));
    shx_result_free(result);
    shx_execution_free(job);
    bed_free(b);
}

// E9
static void spawning(void) {
    bed b = bed_new();
    shx_spawn_spec *spec;
    OK(shx_spawn_spec_new(shx_str("/"), &spec, &error));
    OK(shx_spawn_spec_add_arg(spec, shx_str("sh"), &error));
    OK(shx_spawn_spec_add_arg(spec, shx_str("-c"), &error));
    OK(shx_spawn_spec_add_arg(spec, shx_str("cat; echo \"$A\" >&2; pwd"), &error));
    OK(shx_spawn_spec_inherit_env(spec, &error));
    OK(shx_spawn_spec_add_env(spec, shx_str("A"), shx_str("1"), &error));
    OK(shx_spawn_spec_set_grace_ms(spec, 100, &error));
    OK(shx_spawn_spec_set_drain_idle_ms(spec, 100, &error));
    OK(shx_spawn_spec_set_deadline(spec, 60000, SHX_ON_EXPIRY_KILL, 1000, &error));
    OK(shx_spawn_spec_set_stdin_piped(spec, &error));
    OK(shx_spawn_spec_pipe(spec, SHX_STREAM_STDOUT, &error));
    OK(shx_spawn_spec_collect(spec, SHX_STREAM_STDERR, 100, 1000, &error));
    shx_execution *process;
    OK(shx_service_spawn(b.service, spec, &process, &error));
    shx_descriptor in = -1, out = -1, none = 0;
    OK(shx_execution_take_stdin(process, &in, &error));
    OK(shx_execution_take_stream(process, SHX_STREAM_STDOUT, &out, &error));
    OK(shx_execution_take_stream(process, SHX_STREAM_STDERR, &none, &error));
    CHECK(in > 2 && out > 2 && none == -1);
    CHECK(write((int)in, "hello\n", 6) == 6 && close((int)in) == 0);
    char text[64] = {0};
    size_t len = 0;
    ssize_t got;
    while ((got = read((int)out, text + len, sizeof text - 1 - len)) > 0) {
        len += (size_t)got;
    }
    CHECK(got == 0 && strcmp(text, "hello\n/\n") == 0 && close((int)out) == 0);
    shx_result *result;
    OK(shx_execution_result(process, &result, &error));
    CHECK(exited_with(result, 0) && view_is(shx_result_text(result, SHX_STREAM_STDERR), "1\n"));
    shx_result_free(result);
    shx_execution_free(process);

    OK(shx_spawn_spec_set_stdin(spec, shx_str("bytes"), &error));
    OK(shx_spawn_spec_relay(spec, SHX_STREAM_STDOUT, 64, &error));
    OK(shx_spawn_spec_inherit(spec, SHX_STREAM_STDERR, &error));
    shx_abort_token *token = shx_abort_token_new();
    OK(shx_spawn_spec_set_abort(spec, token, &error));
    OK(shx_service_spawn(b.service, spec, &process, &error));
    shx_execution *same = shx_execution_clone(process);
    shx_execution_free(process);
    shx_output_read *piece;
    OK(shx_execution_wait(same, SHX_FOREVER, NULL, &error));
    OK(shx_execution_read_stream(same, SHX_STREAM_STDOUT, &piece, &error));
    CHECK(view_has(shx_output_read_view(piece), "bytes"));
    shx_output_read_free(piece);
    shx_execution_free(same);
    shx_abort_token_free(token);
    shx_spawn_spec_free(spec);
    bed_free(b);
}

typedef struct {
    int asked;
    bool answer;
} approver;

static bool approve(void *user, const shx_escalation *escalation) {
    approver *person = (approver *)user;
    person->asked++;
    CHECK(view_is(shx_escalation_command(escalation), "echo x >made"));
    CHECK(shx_escalation_workdir(escalation).len > 0 && shx_escalation_workspace_root(escalation).len > 0);
    CHECK(shx_escalation_current_mode(escalation) == SHX_SANDBOX_MODE_READ_ONLY);
    CHECK(shx_escalation_requested_mode(escalation) == SHX_SANDBOX_MODE_WORKSPACE_WRITE);
    CHECK(view_is(shx_escalation_justification(escalation), "because"));
    return person->answer;
}

// S1, S3, S5, S10
static void sandbox(void) {
    bed b = bed_new();
    char dir[] = "/tmp/shx-capi-XXXXXX";
    CHECK(mkdtemp(dir));
    shx_sandbox_provider *chain = shx_sandbox_chain_new();
    shx_sandbox_rungs *rungs;
    OK(shx_service_sandbox_rungs(b.service, chain, &rungs, &error));
    bool works = false;
    for (size_t at = 0; at < shx_sandbox_rungs_count(rungs); at++) {
        CHECK(shx_sandbox_rungs_name(rungs, at).len > 0);
        CHECK(!shx_sandbox_rungs_is_chosen(rungs, at) || shx_sandbox_rungs_unavailable(rungs, at).len == 0);
        works |= shx_sandbox_rungs_is_chosen(rungs, at);
        (void)shx_sandbox_rungs_ungoverned(rungs, at);
    }
    shx_sandbox_rungs_free(rungs);
    shx_sandbox_policy *policy;
    OK(shx_sandbox_policy_new(SHX_SANDBOX_MODE_READ_ONLY, shx_str(dir), shx_str("s"), &policy, &error));
    CHECK(shx_sandbox_policy_mode(policy) == SHX_SANDBOX_MODE_READ_ONLY);
    CHECK(view_is(shx_sandbox_policy_workspace_root(policy), dir));
    CHECK(view_is(shx_sandbox_policy_session(policy), "s"));
    shx_executor *bash;
    OK(shx_bash_executor_new(b.service, NULL, chain, policy, &bash, &error));
    CHECK(shx_executor_sandbox_mode(bash) == SHX_SANDBOX_MODE_READ_ONLY);
    shx_request *request = request_of("echo x >made");
    OK(shx_request_set_workdir(request, shx_str(dir), &error));
    OK(shx_request_set_sandbox_policy(request, policy, &error));
    shx_spec *spec = resolved(bash, request);
    CHECK(shx_spec_sandbox_mode(spec) == SHX_SANDBOX_MODE_READ_ONLY);
    approver person = {0, false};
    shx_spec *wider;
    FAILS(SHX_STATUS_NOT_APPROVED, "not approved",
          shx_spec_escalate(spec, SHX_SANDBOX_MODE_WORKSPACE_WRITE, shx_str("because"), approve, &person, &wider,
                            &error));
    FAILS(SHX_STATUS_INVALID_REQUEST, "wider",
          shx_spec_escalate(spec, SHX_SANDBOX_MODE_READ_ONLY, shx_str("because"), approve, &person, &wider,
                            &error));
    CHECK(person.asked == 1);
    person.answer = true;
    OK(shx_spec_escalate(spec, SHX_SANDBOX_MODE_WORKSPACE_WRITE, shx_str("because"), approve, &person, &wider,
                         &error));
    CHECK(shx_spec_sandbox_mode(wider) == SHX_SANDBOX_MODE_WORKSPACE_WRITE);
    CHECK(shx_spec_sandbox_mode(spec) == SHX_SANDBOX_MODE_READ_ONLY);
    shx_result *result;
    if (works) {
        OK(shx_executor_run(bash, spec, &result, &error));
        const shx_sandbox_info *info = shx_result_sandbox(result);
        CHECK(exited_with(result, 1) && info && shx_sandbox_info_backend(info).len > 0);
        CHECK(shx_sandbox_info_mode(info) == SHX_SANDBOX_MODE_READ_ONLY);
        CHECK(shx_sandbox_info_enforcement(info) != SHX_ENFORCEMENT_NONE);
        CHECK(shx_sandbox_info_denied(info) || shx_sandbox_info_enforcement(info) == SHX_ENFORCEMENT_PARTIAL);
        CHECK(!shx_sandbox_info_runner_failed(info));
        shx_result_free(result);
        shx_execution *execution;
        OK(shx_executor_start(bash, wider, &execution, &error));
        OK(shx_execution_result(execution, &result, &error));
        CHECK(exited_with(result, 0));
        shx_sandbox_info *facts = shx_execution_sandbox(execution);
        CHECK(shx_sandbox_info_mode(facts) == SHX_SANDBOX_MODE_WORKSPACE_WRITE);
        shx_sandbox_info_free(facts);
        shx_result_free(result);
        shx_execution_free(execution);
    }
    shx_spec_free(wider);
    shx_executor_free(bash);

    // A chain that is changed, and one that can find nothing.
    OK(shx_sandbox_chain_set_require_full(chain, true, &error));
    OK(shx_sandbox_chain_set_scratch_max_bytes(chain, 4096, &error));
    OK(shx_sandbox_chain_set_temp_dir(chain, shx_str(dir), &error));
    OK(shx_sandbox_chain_set_bwrap(chain, shx_str("/nonexistent/bwrap"), &error));
    const shx_sandbox_backend only[] = {SHX_SANDBOX_BACKEND_BWRAP};
    OK(shx_sandbox_chain_set_backends(chain, only, 1, &error));
    OK(shx_bash_executor_new(b.service, NULL, chain, policy, &bash, &error));
    FAILS(SHX_STATUS_SANDBOX_UNAVAILABLE, "bwrap", shx_executor_run(bash, spec, &result, &error));
    shx_executor_free(bash);
    shx_sandbox_provider_free(chain);

    // A runner of the host's.
    const shx_view words[] = {shx_str("env"), shx_str("RUN_AS={mode}")};
    OK(shx_sandbox_runner_new(words, 2, SHX_ENFORCEMENT_PARTIAL, &chain, &error));
    const int32_t codes[] = {71};
    const shx_view texts[] = {shx_str("runner:")};
    OK(shx_sandbox_runner_set_failure_exit_codes(chain, codes, 1, &error));
    OK(shx_sandbox_runner_set_failure_signatures(chain, texts, 1, &error));
    OK(shx_sandbox_runner_set_denial_signatures(chain, texts, 1, &error));
    FAILS(SHX_STATUS_INVALID_ARGUMENT, "runner", shx_sandbox_chain_set_require_full(chain, true, &error));
    OK(shx_bash_executor_new(b.service, NULL, chain, policy, &bash, &error));
    result = ran(bash, request_of("echo $RUN_AS"));
    CHECK(view_is(shx_result_text(result, SHX_STREAM_STDOUT), "read-only\n"));
    shx_result_free(result);
    // As the runner says that it has failed, and so says a command.
    shx_spec *failing = resolved(bash, request_of("echo runner: no >&2; exit 71"));
    FAILS(SHX_STATUS_SANDBOX_UNAVAILABLE, "runner: no", shx_executor_run(bash, failing, &result, &error));
    shx_spec_free(failing);
    shx_executor_free(bash);
    shx_sandbox_provider_free(chain);
    shx_spec_free(spec);
    shx_sandbox_policy_free(policy);

    shx_policy_service *policies;
    OK(shx_policy_service_new(SHX_SANDBOX_MODE_READ_ONLY, shx_str(dir), &policies, &error));
    OK(shx_policy_service_set_session_mode(policies, shx_str("s"), SHX_SANDBOX_MODE_WORKSPACE_WRITE, &error));
    OK(shx_policy_service_set_session_root(policies, shx_str("s"), shx_str("/usr"), &error));
    OK(shx_policy_service_resolve(policies, shx_str("s"), SHX_SANDBOX_MODE_NONE, &policy, &error));
    CHECK(shx_sandbox_policy_mode(policy) == SHX_SANDBOX_MODE_WORKSPACE_WRITE);
    CHECK(view_is(shx_sandbox_policy_workspace_root(policy), "/usr"));
    shx_sandbox_policy_free(policy);
    OK(shx_policy_service_set_session_mode(policies, shx_str("s"), SHX_SANDBOX_MODE_NONE, &error));
    OK(shx_policy_service_forget_session(policies, shx_str("s"), &error));
    OK(shx_policy_service_resolve(policies, shx_str("s"), SHX_SANDBOX_MODE_DANGER_FULL_ACCESS, &policy, &error));
    CHECK(shx_sandbox_policy_mode(policy) == SHX_SANDBOX_MODE_DANGER_FULL_ACCESS);
    shx_sandbox_policy_free(policy);
    shx_policy_service_free(policies);
    bed_free(b);
    char command[64];
    snprintf(command, sizeof command, "rm -r %s", dir);
    CHECK(system(command) == 0);
}

static int freed;

static void free_user(void *user) {
    freed++;
    free(user);
}

static void contribute(void *user, const shx_env_call *call, const shx_env_values *values) {
    const char *value = (const char *)user;
    if (view_is(shx_env_call_session(call), "broken")) {
        OK(shx_env_values_fail(values, shx_str("no answer today"), &error));
        return;
    }
    CHECK(shx_env_call_workdir(call).len == 0 && view_is(shx_env_call_command(call), "make"));
    OK(shx_env_values_set(values, shx_str(value), shx_str("given"), &error));
}

// M1
static void environment(void) {
    bed b = bed_new();
    shx_env_registry *registry;
    OK(shx_env_registry_new(shx_str("/home"), &registry, &error));
    shx_env_contributor *part;
    OK(shx_env_contributor_new(shx_str("part"), contribute, strdup("DSH_PART"), free_user, &part, &error));
    OK(shx_env_contributor_declare(part, shx_str("DSH_PART"), shx_str("what it is"), &error));
    shx_env_registration *registration, *second;
    OK(shx_env_registry_register(registry, part, &registration, &error));
    FAILS(SHX_STATUS_INVALID_REQUEST, "already", shx_env_registry_register(registry, part, &second, &error));
    shx_env_contributor_free(part);
    CHECK(freed == 0);

    shx_env_declarations *all;
    OK(shx_env_registry_list(registry, &all, &error));
    CHECK(shx_env_declarations_count(all) == 4);
    shx_view name, about, owner;
    CHECK(shx_env_declarations_at(all, 1, &name, &about, &owner));
    CHECK(view_is(name, "DSH_PART") && view_is(about, "what it is") && view_is(owner, "part"));
    CHECK(!shx_env_declarations_at(all, 4, NULL, NULL, NULL));
    shx_env_declarations_free(all);

    shx_view none = shx_str("");
    shx_env_snapshot *snapshot;
    FAILS(SHX_STATUS_MANAGED_ENV, "no answer today",
          shx_env_registry_collect(registry, shx_str("broken"), none, none, &snapshot, &error));
    OK(shx_env_registry_collect(registry, shx_str("s"), none, shx_str("make"), &snapshot, &error));
    CHECK(shx_env_snapshot_count(snapshot) == 4);
    shx_view value;
    CHECK(shx_env_snapshot_at(snapshot, 1, &name, &value));
    CHECK(view_is(name, "DSH_PART") && view_is(value, "given"));
    shx_request *request = request_of("echo $DSH_PART $DSH_SHELL $DSH_SESSION_ID $DSH_HOME");
    OK(shx_request_add_managed_snapshot(request, snapshot, &error));
    shx_env_snapshot_free(snapshot);
    shx_result *result = ran(b.bash, request);
    CHECK(view_is(shx_result_text(result, SHX_STREAM_STDOUT), "given 1 s /home\n"));
    shx_result_free(result);
    shx_env_registration_free(registration);
    CHECK(freed == 1);
    OK(shx_env_registry_collect(registry, none, none, none, &snapshot, &error));
    CHECK(shx_env_snapshot_count(snapshot) == 2);
    shx_env_snapshot_free(snapshot);

    // One that gives what it has not declared fails that collection, with its name.
    OK(shx_env_contributor_new(shx_str("liar"), contribute, strdup("DSH_OTHER"), free_user, &part, &error));
    OK(shx_env_registry_register(registry, part, &registration, &error));
    shx_env_contributor_free(part);
    FAILS(SHX_STATUS_MANAGED_ENV, "liar",
          shx_env_registry_collect(registry, none, none, shx_str("make"), &snapshot, &error));
    shx_env_registry_free(registry);
    shx_env_registration_free(registration);
    CHECK(freed == 2);
    bed_free(b);
}

// O5, O6, O8
static void service(void) {
    char dir[] = "/tmp/shx-capi-XXXXXX";
    CHECK(mkdtemp(dir));
    shx_service_config *config = shx_service_config_new();
    OK(shx_service_config_set_spill_root(config, shx_str(dir), &error));
    OK(shx_service_config_set_keep_spill(config, true, &error));
    shx_service *service;
    OK(shx_service_new(config, &service, &error));
    shx_service_config_free(config);
    shx_service *same = shx_service_clone(service);
    shx_service_free(service);
    shx_executor *bash;
    OK(shx_bash_executor_new(same, NULL, NULL, NULL, &bash, &error));
    shx_result *result = ran(bash, request_of("seq 1 20000"));
    shx_view path = shx_result_spill_path(result, SHX_STREAM_STDOUT);
    CHECK(view_has(path, dir));
    char *kept = strndup(path.data, path.len);
    shx_result_free(result);
    shx_signal_guard *guard;
    OK(shx_service_dispose_on_signals(same, &guard, &error));
    shx_signal_guard_free(guard);
    shx_service_free(same);
    CHECK(access(kept, R_OK) == 0);
    free(kept);
    // The executor has outlived its service.
    shx_spec *spec = resolved(bash, request_of("true"));
    FAILS(SHX_STATUS_DISPOSED, "disposed", shx_executor_run(bash, spec, &result, &error));
    shx_execution *execution;
    OK(shx_executor_execute(bash, spec, &execution, &error));
    shx_error *failure = NULL;
    CHECK(shx_execution_result(execution, &result, &failure) == SHX_STATUS_DISPOSED);
    shx_process_read *read;
    OK(shx_execution_read_output(execution, &read, &error));
    shx_text *text;
    OK(shx_render_read(read, NULL, failure, &text, &error));
    CHECK(view_has(shx_text_view(text), "[no exit status]"));
    shx_text_free(text);
    shx_process_read_free(read);
    shx_error_free(failure);
    shx_execution_free(execution);
    shx_spec_free(spec);
    shx_executor_free(bash);
    char command[64];
    snprintf(command, sizeof command, "rm -r %s", dir);
    CHECK(system(command) == 0);
}

static void *wait_for_it(void *handle) {
    shx_execution *mine = (shx_execution *)handle;
    shx_process_status status = SHX_PROCESS_STATUS_RUNNING;
    OK(shx_execution_wait(mine, SHX_FOREVER, &status, &error));
    CHECK(status == SHX_PROCESS_STATUS_KILLED);
    shx_execution_free(mine);
    return NULL;
}

// F5, E2: handles are freed while other threads wait on others of the same execution
static void sharing(void) {
    bed b = bed_new();
    shx_execution *job = started(b.bash, request_of("exec sleep 300"));
    pthread_t threads[4];
    for (int at = 0; at < 4; at++) {
        CHECK(pthread_create(&threads[at], NULL, wait_for_it, shx_execution_clone(job)) == 0);
    }
    shx_execution *last = shx_execution_clone(job);
    shx_execution_free(job);
    OK(shx_execution_kill(last, NULL, &error));
    shx_execution_free(last);
    for (int at = 0; at < 4; at++) {
        CHECK(pthread_join(threads[at], NULL) == 0);
    }
    bed_free(b);
}

void objects(const char *part) {
    static const struct {
        const char *name;
        void (*play)(void);
    } parts[] = {
        {"foreground", foreground}, {"output", output},           {"spec", spec},       {"stopping", stopping},
        {"aborting", aborting},     {"promotion", promotion},     {"spawning", spawning}, {"sandbox", sandbox},
        {"environment", environment}, {"service", service},       {"sharing", sharing},
        {"powershell", powershell},
    };
    for (size_t at = 0; at < sizeof parts / sizeof *parts; at++) {
        if (strcmp(parts[at].name, part) == 0) {
            parts[at].play();
            return;
        }
    }
    CHECK(!"a part of this name");
}
