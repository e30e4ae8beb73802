// What the C tests share: a check that says what it was, and the few objects that nearly all of them need.
#ifndef CHECK_H
#define CHECK_H

#include "shell_executor.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                                  \
    do {                                                                                  \
        if (!(condition)) {                                                               \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);       \
            exit(1);                                                                      \
        }                                                                                 \
    } while (0)

// A call that must succeed; its error is shown where it does not.
#define OK(call)                                                                          \
    do {                                                                                  \
        shx_error *error = NULL;                                                          \
        shx_status status_ = (call);                                                      \
        if (status_ != SHX_STATUS_OK || error) {                                          \
            shx_view why_ = shx_error_message(error);                                     \
            fprintf(stderr, "%s:%d: %s: %d, %.*s\n", __FILE__, __LINE__, #call, status_,  \
                    (int)why_.len, why_.data);                                            \
            exit(1);                                                                      \
        }                                                                                 \
    } while (0)

// A call that must fail like this, with a message that has `word` in it. It is given `&error`.
#define FAILS(expected, word, call)                                                       \
    do {                                                                                  \
        shx_error *error = NULL;                                                          \
        shx_status status_ = (call);                                                      \
        check_error(__FILE__, __LINE__, #call, status_, expected, error, word);           \
        shx_error_free(error);                                                            \
    } while (0)

static inline int view_is(shx_view view, const char *text) {
    return view.data && view.len == strlen(text) && memcmp(view.data, text, view.len) == 0;
}

static inline int view_has(shx_view view, const char *text) {
    size_t len = strlen(text);
    for (size_t at = 0; at + len <= view.len; at++) {
        if (memcmp(view.data + at, text, len) == 0) {
            return 1;
        }
    }
    return 0;
}

static inline void check_error(const char *file, int line, const char *call, shx_status status,
                               shx_status expected, const shx_error *error, const char *word) {
    shx_view message = shx_error_message(error);
    if (status != expected || shx_error_status(error) != expected || !view_has(message, word)) {
        fprintf(stderr, "%s:%d: %s: %d instead of %d, \"%.*s\"\n", file, line, call, status, expected,
                (int)message.len, message.data);
        exit(1);
    }
}

// A service and an executor, which most parts begin with.
typedef struct {
    shx_service *service;
    shx_executor *bash;
} bed;

static inline bed bed_new(void) {
    bed made;
    OK(shx_service_new(NULL, &made.service, &error));
    OK(shx_bash_executor_new(made.service, NULL, NULL, NULL, &made.bash, &error));
    return made;
}

static inline void bed_free(bed made) {
    shx_executor_free(made.bash);
    shx_service_free(made.service);
}

static inline shx_request *request_of(const char *command) {
    shx_request *request;
    OK(shx_request_new(shx_str(command), &request, &error));
    return request;
}

// Resolves and frees the request.
static inline shx_spec *resolved(const shx_executor *bash, shx_request *request) {
    shx_spec *spec;
    OK(shx_executor_resolve(bash, request, &spec, &error));
    shx_request_free(request);
    return spec;
}

static inline shx_execution *started(const shx_executor *bash, shx_request *request) {
    shx_spec *spec = resolved(bash, request);
    shx_execution *execution;
    OK(shx_executor_start(bash, spec, &execution, &error));
    shx_spec_free(spec);
    return execution;
}

static inline shx_result *ran(const shx_executor *bash, shx_request *request) {
    shx_spec *spec = resolved(bash, request);
    shx_result *result;
    OK(shx_executor_run(bash, spec, &result, &error));
    shx_spec_free(spec);
    return result;
}

static inline int exited_with(const shx_result *result, int expected) {
    int code = -1;
    return shx_result_exit_code(result, &code) && code == expected;
}

// The parts, by their names.
void objects(const char *part);
void refusals(const char *part);
void hosts(const char *part);
void nulls(void);

#endif
