// Runs one command to its end, shows what it printed, and ends as it did.
//
//     foreground [COMMAND]
//
// Ends with the command's exit code, with 128+N after signal N, with 124 when its time was over, and with 125
// when it could not be run at all.
//
// With the shared library, in the directory of this repository, after `cargo build --release --features capi`:
//
//     cc -Iinclude examples/c/foreground.c -Ltarget/release -lshell_executor -o foreground
//     LD_LIBRARY_PATH=target/release ./foreground 'echo hello'
//
// With the static one, and the libraries of the system (Linux, glibc) that it needs:
//
//     LIBS='-lgcc_s -lutil -lrt -lpthread -lm -ldl -lc'
//     cc -Iinclude examples/c/foreground.c target/release/libshell_executor.a $LIBS -o foreground
//
// They are named for any system by
//
//     cargo rustc --release --features capi --crate-type staticlib -- --print native-static-libs

#include <inttypes.h>
#include <stdio.h>

#include "shell_executor.h"

enum { TIMED_OUT = 124, NOT_RUN = 125 };

// What is printed of a view is as long as it says: no NUL stands at its end.
static void print(FILE *file, shx_view text) {
    fwrite(text.data, 1, text.len, file);
}

// Says what went wrong, and frees the error. Gives the exit code for it.
static int fail(shx_error *error) {
    print(stderr, shx_str("foreground: "));
    print(stderr, shx_error_message(error));
    print(stderr, shx_str("\n"));
    shx_error_free(error);
    return NOT_RUN;
}

static void show_stream(const shx_result *result, shx_stream stream, const char *name) {
    shx_view text = shx_result_text(result, stream);
    printf("[%s, %" PRIu64 " bytes]\n", name, shx_result_total_bytes(result, stream));
    print(stdout, text);
    if (text.len > 0 && text.data[text.len - 1] != '\n') {
        printf("\n");
    }
    if (shx_result_truncated(result, stream)) {
        // Only the end is in memory. Read the file before the service goes: it goes with the service.
        printf("[the beginning is missing; all of it: ");
        print(stdout, shx_result_spill_path(result, stream));
        printf("]\n");
    }
}

// The facts stand side by side: a command can have timed out, and have an exit code.
static int show(const shx_result *result) {
    int32_t number;
    int code = 0;
    show_stream(result, SHX_STREAM_STDOUT, "stdout");
    show_stream(result, SHX_STREAM_STDERR, "stderr");
    if (shx_result_exit_code(result, &number)) {
        printf("exit code %" PRId32 "\n", number);
        code = number;
    } else if (shx_result_signal(result, &number)) {
        printf("killed by ");
        print(stdout, shx_result_signal_name(result));
        printf("\n");
        code = 128 + number;
    }
    if (shx_result_timed_out(result)) {
        printf("timed out\n");
        code = TIMED_OUT;
    }
    return code;
}

int main(int argc, char **argv) {
    const char *command = argc > 1 ? argv[1] : "echo out; echo err >&2; exit 3";
    shx_service *service = NULL;
    shx_executor *bash = NULL;
    shx_request *request = NULL;
    shx_spec *spec = NULL;
    shx_result *result = NULL;
    shx_error *error = NULL;
    int code;

    // SHX_STATUS_OK is 0, so a chain goes on as long as all is well, and `error` is what its last call has said.
    if (shx_service_new(NULL, &service, &error) ||
        shx_bash_executor_new(service, NULL, NULL, NULL, &bash, &error) ||
        shx_request_new(shx_str(command), &request, &error) ||
        shx_request_set_timeout_ms(request, 60000, &error) ||
        shx_executor_resolve(bash, request, &spec, &error) ||
        shx_executor_run(bash, spec, &result, &error)) {
        code = fail(error);
    } else {
        // A command that fails is not an error. It has a result.
        code = show(result);
    }

    // Null is fine, so this is right however far the chain came. The service goes with all that it still runs.
    shx_result_free(result);
    shx_spec_free(spec);
    shx_request_free(request);
    shx_executor_free(bash);
    shx_service_free(service);
    return code;
}
