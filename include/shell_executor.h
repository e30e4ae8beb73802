// shell-executor: runs shell commands for programs that must not be surprised by them.
//
// This file is generated from the source of the library and describes all of its C interface.
//
// WHAT HOLDS FOR ALL FUNCTIONS
//
// Objects. Each is opaque, and belongs to whoever got it, who frees it once with its own `_free`, which accepts null. An
// object that was made from others does not need them any more: they can be freed in any order. (Executors and executions do
// not keep their service alive: they outlive it, and then say SHX_STATUS_DISPOSED.)
//
// Status. A function that can fail gives a shx_status. Outputs are set only when it is SHX_STATUS_OK. If `error` is not
// null, it is set in any case: to null, or to an object that says what went wrong, to be freed with shx_error_free. What it
// held before is not freed. A function that cannot fail gives its value, and for a null object the one that it says: 0, false
// or an empty view where it says nothing else.
//
// Null. An object or an output that must not be null, and is, gives SHX_STATUS_INVALID_ARGUMENT, and nothing was done.
// Outputs that may be null say so, and `error` always may.
//
// Text and bytes are a pointer and a length (shx_view). Nothing is taken to end in a NUL, except what shx_str is given.
//
// Numbers with names (modes, streams, what to do at a deadline): any other number gives SHX_STATUS_INVALID_ARGUMENT.
//
// Threads. Any thread may call anything on a live object, at the same time as others. Only freeing an object while another
// call uses it is forbidden, as is using it afterwards: neither can be seen, and both are undefined. To wait on one thread and
// free on another, give each its own handle (shx_execution_clone, shx_abort_token_clone, shx_service_clone). A stack of 32
// KiB is enough for every function.
//
// Outputs of one call must be different places.
//
// Callbacks. Each says on which thread it is called, what becomes of its user pointer, and what a failure in it does. It may
// call any function of this library. It must return: neither longjmp nor a C++ exception may leave it.
//
// Panics. A defect of the library is caught, and gives SHX_STATUS_PANIC, or, from a function without a status, what it gives
// for null. The objects of the call can still be used and freed. Only running out of memory ends the process.
//
// fork. In a process that the host has forked, handles can be asked for what is settled, and freed. Nothing can be started or
// stopped there (SHX_STATUS_DISPOSED), and a wait for what has not settled does not end: the threads are the host's.
//
// exit. At the host's `exit`, every process that the library still runs is killed.
//
// WHAT THE LIBRARY NEVER DOES TO ITS HOST
//
// It installs no signal handler (but for shx_service_dispose_on_signals), changes no disposition and no signal mask of the
// host's threads; waits for no child but its own, and never for "any child"; never calls fork; prints nothing, unless
// it has a defect; changes neither locale, environment, umask, working directory nor limits; leaves descriptors 0, 1 and 2 alone. It starts threads,
// all with every signal blocked.
//
// The interface has a number; see SHX_ABI_VERSION.


#ifndef SHELL_EXECUTOR_H
#define SHELL_EXECUTOR_H


#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>


// For a wait without an end, in milliseconds.
#define SHX_FOREVER UINT64_MAX

// The number of this interface. It changes when a function, type or constant of an earlier header is removed or changes
// its meaning or form; what is added does not change it. A program compares it with `shx_abi_version`, if it loads the
// library by itself; the name of the shared library as `cargo cinstall` installs it (`libshell_executor.so.0`) has it as
// well.
#define SHX_ABI_VERSION 0

// Cuts executions short from outside. Clones are the same token.
typedef struct shx_abort_token shx_abort_token;

// The defaults and caps of an executor. It can be changed and used from any thread; an executor takes a copy.
typedef struct shx_config shx_config;

// The execution that values are collected for. It exists while the callback runs; its views live as long.
typedef struct shx_env_call shx_env_call;

// A part of the host that gives managed variables, built by setters and then registered. It can be registered again, in
// another registry.
typedef struct shx_env_contributor shx_env_contributor;

// The variables that are declared in a registry. They never change; their views live as long as they.
typedef struct shx_env_declarations shx_env_declarations;

// Keeps a contributor registered.
typedef struct shx_env_registration shx_env_registration;

// Who fills the managed environment (`DSH_*`) of a host's commands. It can be used from any thread; no lock is held while
// a contributor is called, so one may use the registry itself.
typedef struct shx_env_registry shx_env_registry;

// The managed environment of one execution: each variable once, by name. It never changes; its views live as long as it.
typedef struct shx_env_snapshot shx_env_snapshot;

// Where a contributor puts its values. It exists while the callback runs.
typedef struct shx_env_values shx_env_values;

// Why a call failed. It never changes.
typedef struct shx_error shx_error;

// What an approver is asked to grant. It exists while the callback runs; its views live as long.
typedef struct shx_escalation shx_escalation;

// One command, or one process that was started by its argv, live or settled. Handles made by `shx_execution_clone` are
// the same execution. Every function can be called from any thread, at any time, also for ever after the settlement;
// freeing a handle stops nothing.
typedef struct shx_execution shx_execution;

// Runs shell commands. It can be used from any thread.
typedef struct shx_executor shx_executor;

// One read of one stream. It never changes; its views live as long as it.
typedef struct shx_output_read shx_output_read;

// Rendered text, taken apart. It never changes; its views live as long as it.
typedef struct shx_parsed_output shx_parsed_output;

// Decides the policy of each call by its session. It can be used from any thread.
typedef struct shx_policy_service shx_policy_service;

// One consuming read of both streams. It never changes; its views live as long as it.
typedef struct shx_process_read shx_process_read;

// An offer, which answers once. Freed without an answer, it declines.
typedef struct shx_promotion_offer shx_promotion_offer;

// A command, and whatever of its terms the caller wants to set. All but the command has a default. It can be changed and
// used from any thread; resolving it takes a copy, so it can be resolved again.
typedef struct shx_request shx_request;

// The outcome of one execution. It never changes; its views live as long as it.
typedef struct shx_result shx_result;

// The sandbox facts of one run. They never change; their views live as long as they.
typedef struct shx_sandbox_info shx_sandbox_info;

// What one command may do to files. It never changes.
typedef struct shx_sandbox_policy shx_sandbox_policy;

// What confines the commands of an executor. It is set up first and used then: a change is not seen by executors that
// have it already, and makes a chain try its backends again.
typedef struct shx_sandbox_provider shx_sandbox_provider;

// What became of each backend of a chain.
typedef struct shx_sandbox_rungs shx_sandbox_rungs;

// Runs processes and owns all that they start, until it is disposed of. Handles made by `shx_service_clone` are the same
// service; executors and executions do not keep it alive.
typedef struct shx_service shx_service;

// What a service is set up with. It can be changed and used from any thread; a service takes a copy.
typedef struct shx_service_config shx_service_config;

// Keeps `shx_service_dispose_on_signals` in force.
typedef struct shx_signal_guard shx_signal_guard;

// An order to start one process, built by setters. It can be changed and used from any thread, and spawned again.
typedef struct shx_spawn_spec shx_spawn_spec;

// A command with all its terms explicit. It never changes; made by `shx_executor_resolve` and `shx_spec_escalate`.
// The views that its functions give live as long as it.
typedef struct shx_spec shx_spec;

// Text or bytes that belong to the caller. They never change.
typedef struct shx_text shx_text;

// How a call went. The numbers are fixed; new ones may be added.
typedef int32_t shx_status;

// Bytes that belong to somebody else: a pointer and a length. Nothing stands behind the last one, no NUL either.
//
// Given to a function, they are copied before it returns; `data` may be null when `len` is 0. Got from a function, they
// live as long as that function says, and `data` is never null. Text is UTF-8 where a function says so; names of files,
// commands and values of the environment are any bytes on Unix, and UTF-8 on Windows.
typedef struct {
  // The first byte.
  const char *data;
  // How many there are.
  size_t len;
} shx_view;

// Which effects on files a command may have.
typedef int32_t shx_sandbox_mode;

// Grants an escalation (true), or does not. Called once, on the thread that called `shx_spec_escalate`, before that returns;
// it may block, and may call anything. Must return: neither `longjmp` nor an exception may leave it.
typedef bool (*shx_approve_fn)(void *user, const shx_escalation *escalation);

// Gives the values for one execution by `shx_env_values_set`, or fails by `shx_env_values_fail`. Called on the thread that
// collects, on several at once if several collect; it may block, and may call anything. Must return: neither `longjmp` nor
// an exception may leave it.
typedef void (*shx_env_collect_fn)(void *user,
                                   const shx_env_call *call,
                                   const shx_env_values *values);

// Frees what a callback was given as `user`. Called once, on whichever thread lets go of it last, when it will not be used
// any more.
typedef void (*shx_free_fn)(void *user);

// At which stage of starting a process it failed.
typedef int32_t shx_stage;

// Where an execution stands.
typedef int32_t shx_process_status;

// One of the two streams of a command.
typedef int32_t shx_stream;

// A file descriptor on Unix, a `HANDLE` on Windows. It belongs to the caller, who closes it.
typedef ptrdiff_t shx_descriptor;

// By which means what a command starts is held together.
typedef int32_t shx_containment;

// How completely a mode is enforced.
typedef int32_t shx_enforcement;

// What ended an execution, or cut it short: the first of them.
typedef int32_t shx_cause;

// A way to confine commands.
typedef int32_t shx_sandbox_backend;

// How a command ended, as rendered text tells it.
typedef int32_t shx_exit_kind;

// What the deadline does.
typedef int32_t shx_on_expiry;

// What a command reads.
typedef int32_t shx_stdin;

// It did what it says.
#define SHX_STATUS_OK 0

// A parameter is null that must not be, a number that names nothing, a length that no memory has, or text that is not
// UTF-8 where it has to be. Nothing was done.
#define SHX_STATUS_INVALID_ARGUMENT 1

// A field of the request or of the configuration has a value that nothing can be run with. Nothing was spawned.
#define SHX_STATUS_INVALID_REQUEST 2

// The process could not be started. See `shx_error_stage`.
#define SHX_STATUS_SPAWN 3

// A confined mode was asked for, and nothing here can confine. The command was not run.
#define SHX_STATUS_SANDBOX_UNAVAILABLE 4

// An escalation was not granted. Nothing was run.
#define SHX_STATUS_NOT_APPROVED 5

// The abort token had fired before a process existed. Nothing was spawned.
#define SHX_STATUS_ABORTED 6

// The service was disposed of, or is that of a process that has forked this one, or the host is exiting.
#define SHX_STATUS_DISPOSED 7

// A contributor to the managed environment failed, or gave what it must not.
#define SHX_STATUS_MANAGED_ENV 8

// The command has ended, and nobody can tell how.
#define SHX_STATUS_STATUS_LOST 9

// A defect of this library, which was caught. The objects of the call can still be used and freed.
#define SHX_STATUS_PANIC 10

// The system refused; see `shx_error_errno`.
#define SHX_STATUS_OS 11

// Not a failure to start a process.
#define SHX_STAGE_NONE 0

// The working directory is missing, is no directory, or may not be entered.
#define SHX_STAGE_WORKDIR 1

// The shell was not found, or is not executable.
#define SHX_STAGE_SHELL 2

// The program was not found, is not executable, or its arguments are too long.
#define SHX_STAGE_EXEC 3

// Descriptors, processes, threads or memory ran out. The same call may work later.
#define SHX_STAGE_RESOURCES 4

// No mode: an executor or a command that is not confined.
#define SHX_SANDBOX_MODE_NONE -1

// Writes only to sinks such as `/dev/null`.
#define SHX_SANDBOX_MODE_READ_ONLY 0

// The workspace root and the temp directory as well.
#define SHX_SANDBOX_MODE_WORKSPACE_WRITE 1

// No confinement.
#define SHX_SANDBOX_MODE_DANGER_FULL_ACCESS 2

// Namespaces and a Landlock domain, by the spawn itself (Linux). Full.
#define SHX_SANDBOX_BACKEND_NATIVE 0

// The installed bubblewrap (Linux). Full.
#define SHX_SANDBOX_BACKEND_BWRAP 1

// A Landlock domain alone (Linux). Partial.
#define SHX_SANDBOX_BACKEND_LANDLOCK 2

// `sandbox-exec` (macOS). Reported as partial.
#define SHX_SANDBOX_BACKEND_SEATBELT 3

// Not confined, or not known yet.
#define SHX_ENFORCEMENT_NONE 0

// Every effect on files that the mode forbids is stopped.
#define SHX_ENFORCEMENT_FULL 1

// Some are not.
#define SHX_ENFORCEMENT_PARTIAL 2

// It exited with 0, or the text has no status line.
#define SHX_EXIT_KIND_SUCCESS 0

// It exited with another code.
#define SHX_EXIT_KIND_CODE 1

// A signal ended it.
#define SHX_EXIT_KIND_SIGNAL 2

// It never started, or nobody can tell.
#define SHX_EXIT_KIND_MISSING 3

// It had not ended when it was read.
#define SHX_EXIT_KIND_RUNNING 4

// The command is stopped, and its result says `timed_out`.
#define SHX_ON_EXPIRY_KILL 0

// The command goes on while an offer to keep it is open; see `shx_execution_promotion`.
#define SHX_ON_EXPIRY_OFFER 1

// There is no deadline.
#define SHX_ON_EXPIRY_NONE 2

// Standard output.
#define SHX_STREAM_STDOUT 1

// Standard error.
#define SHX_STREAM_STDERR 2

// Not settled yet.
#define SHX_PROCESS_STATUS_RUNNING 0

// The leader exited by itself.
#define SHX_PROCESS_STATUS_COMPLETED 1

// Cut short, or the leader died of a signal, or it never started.
#define SHX_PROCESS_STATUS_KILLED 2

// None yet.
#define SHX_CAUSE_NONE 0

// The leader ended by itself, by exiting or by a signal that this library did not send.
#define SHX_CAUSE_EXIT 1

// The deadline passed, or an offer to keep the command was declined or not answered.
#define SHX_CAUSE_TIMEOUT 2

// The abort token was fired.
#define SHX_CAUSE_ABORT 3

// `shx_execution_kill` was called.
#define SHX_CAUSE_KILL 4

// The service was disposed of.
#define SHX_CAUSE_DISPOSAL 5

// The leader's process group only.
#define SHX_CONTAINMENT_PROCESS_GROUP 0

// The leader's session, its descendants, and whoever carries the range's marker in the environment (Linux).
#define SHX_CONTAINMENT_SESSION 1

// `/dev/null`.
#define SHX_STDIN_NULL 0

// Bytes that were given.
#define SHX_STDIN_BYTES 1

// A pipe.
#define SHX_STDIN_PIPE 2

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// A token that has not been fired. Free it with `shx_abort_token_free`. Null only if memory has run out in a way that can
// be caught.
shx_abort_token *shx_abort_token_new(void);

// Another handle of the same token, to be freed by itself; null for null.
shx_abort_token *shx_abort_token_clone(const shx_abort_token *token);

// Fires it: every execution it was given to is cut short, and what is executed with it from now on is not started.
// `first` (may be null) is set to whether this call did it. Returns as soon as all have been told; it does not wait for
// them to end.
shx_status shx_abort_token_fire(const shx_abort_token *token,
                                bool *first,
                                shx_error **error);

// Whether it has been fired; false for null.
bool shx_abort_token_is_fired(const shx_abort_token *token);

// Frees the handle. The executions it was given to keep what it stands for. Null is fine.
void shx_abort_token_free(shx_abort_token *token);

// The command.
shx_view shx_escalation_command(const shx_escalation *escalation);

// Where it runs.
shx_view shx_escalation_workdir(const shx_escalation *escalation);

// The mode that it would run in.
shx_sandbox_mode shx_escalation_current_mode(const shx_escalation *escalation);

// The mode that is asked for, strictly wider.
shx_sandbox_mode shx_escalation_requested_mode(const shx_escalation *escalation);

// The workspace root of the policy, which a grant leaves as it is.
shx_view shx_escalation_workspace_root(const shx_escalation *escalation);

// Why, in the words of whoever asks (UTF-8).
shx_view shx_escalation_justification(const shx_escalation *escalation);

// The same call in the wider `mode`, if `approve` grants that very call now. Nothing but the mode changes. The
// `justification` is UTF-8 and not blank; `user` is passed to the callback and not kept. `escalated` is set to a spec of
// its own, to be freed with `shx_spec_free`.
//
// `SHX_STATUS_INVALID_REQUEST` when the call is not confined, the mode is not strictly wider, or the root is none for it;
// `SHX_STATUS_NOT_APPROVED` when it was not granted.
shx_status shx_spec_escalate(const shx_spec *spec,
                             shx_sandbox_mode mode,
                             shx_view justification,
                             shx_approve_fn approve,
                             void *user,
                             shx_spec **escalated,
                             shx_error **error);

// A configuration with the defaults: `bash`, 120 s of time unless a request says otherwise and 600 s at most, 64,000 bytes
// of each stream in memory, 64 MiB of it in a file, 3 s from the polite signal to the forceful one. Free it with
// `shx_config_free`.
shx_config *shx_config_new(void);

// Frees a configuration. The executors made with it keep their copies. Null is fine.
void shx_config_free(shx_config *config);

// The shell: a name to look up on this process's `PATH`, or an absolute path. Default: `bash`.
shx_status shx_config_set_shell(const shx_config *config, shx_view shell, shx_error **error);

// Where commands run that do not say. Default: the host's current directory at the time of `shx_executor_resolve`.
shx_status shx_config_set_workdir(const shx_config *config,
                                  shx_view workdir,
                                  shx_error **error);

// How long a command may run that does not say, in milliseconds. Not 0. Default: 120,000.
shx_status shx_config_set_default_timeout_ms(const shx_config *config,
                                             uint64_t ms,
                                             shx_error **error);

// How long a command may run at most, in milliseconds; a longer request is clamped. Not 0. Default: 600,000.
shx_status shx_config_set_max_timeout_ms(const shx_config *config,
                                         uint64_t ms,
                                         shx_error **error);

// How many of each stream's last bytes are kept in memory. Not 0. Default: 64,000.
shx_status shx_config_set_output_max_bytes(const shx_config *config,
                                           size_t bytes,
                                           shx_error **error);

// How large the spill file of one stream may become, in bytes. Not 0. Default: 64 MiB.
shx_status shx_config_set_spill_max_bytes(const shx_config *config,
                                          uint64_t bytes,
                                          shx_error **error);

// No spill files.
shx_status shx_config_set_no_spill(const shx_config *config, shx_error **error);

// From the polite signal to the forceful one, in milliseconds. 0 is allowed. Default: 3,000.
shx_status shx_config_set_grace_ms(const shx_config *config, uint64_t ms, shx_error **error);

// How long a stream held open by a descendant must be quiet, after the shell's exit, to be given up, in milliseconds.
// Default: 250.
shx_status shx_config_set_drain_idle_ms(const shx_config *config,
                                        uint64_t ms,
                                        shx_error **error);

// How long an offer to keep a command stays open, in milliseconds. Default: 1,000.
shx_status shx_config_set_answer_window_ms(const shx_config *config,
                                           uint64_t ms,
                                           shx_error **error);

// Adds a name to those that are kept from commands. Case does not matter. UTF-8.
shx_status shx_config_add_scrub(const shx_config *config, shx_view name, shx_error **error);

// Exempts a name from the scrub of what looks like a credential. Case does not matter. UTF-8.
shx_status shx_config_add_scrub_exempt(const shx_config *config, shx_view name, shx_error **error);

// Commands inherit nothing of this process's environment, only what `shx_config_add_inherited_env` adds.
shx_status shx_config_set_inherit_nothing(const shx_config *config,
                                          shx_error **error);

// Adds an entry to the environment that commands inherit, instead of this process's own.
shx_status shx_config_add_inherited_env(const shx_config *config,
                                        shx_view name,
                                        shx_view value,
                                        shx_error **error);

// A registry without contributors, of a host that keeps its state in `home` (`DSH_HOME`). Free it with
// `shx_env_registry_free`.
shx_status shx_env_registry_new(shx_view home,
                                shx_env_registry **registry,
                                shx_error **error);

// Frees a registry. Its contributors go as soon as their registrations are freed as well. Null is fine.
void shx_env_registry_free(shx_env_registry *registry);

// The session (UTF-8) that it belongs to; empty outside of one.
shx_view shx_env_call_session(const shx_env_call *call);

// Where it will run; empty if the host has not told.
shx_view shx_env_call_workdir(const shx_env_call *call);

// The command; empty if the host has not told.
shx_view shx_env_call_command(const shx_env_call *call);

// Gives a variable that was declared (its name is UTF-8) its value for this execution. The names are checked when the
// callback has returned.
shx_status shx_env_values_set(const shx_env_values *values,
                              shx_view name,
                              shx_view value,
                              shx_error **error);

// Makes the collection fail, with a reason (UTF-8) for a person.
shx_status shx_env_values_fail(const shx_env_values *values, shx_view reason, shx_error **error);

// A contributor by its unique `name` (UTF-8), and its callback. `user` is passed to the callback, and then to `free_user`
// (which may be null) when neither this object nor any registration of it is left; also when this call fails, unless its
// status is `SHX_STATUS_PANIC`. Free it with `shx_env_contributor_free`.
shx_status shx_env_contributor_new(shx_view name,
                                   shx_env_collect_fn collect,
                                   void *user,
                                   shx_free_fn free_user,
                                   shx_env_contributor **contributor,
                                   shx_error **error);

// Declares a variable that it may give: `DSH_` and then `[A-Z][A-Z0-9_]*`, and what it tells (UTF-8, not blank). Both are
// checked when it is registered.
shx_status shx_env_contributor_declare(const shx_env_contributor *contributor,
                                       shx_view name,
                                       shx_view description,
                                       shx_error **error);

// Frees a contributor. Its registrations stay. Null is fine.
void shx_env_contributor_free(shx_env_contributor *contributor);

// Takes a contributor in, as it is now, until `registration` is freed with `shx_env_registration_free`.
// `SHX_STATUS_INVALID_REQUEST`, with a message that names the contributor and the variable, when its name or one of its
// variables is not valid, or belongs to another.
shx_status shx_env_registry_register(const shx_env_registry *registry,
                                     const shx_env_contributor *contributor,
                                     shx_env_registration **registration,
                                     shx_error **error);

// Ends a registration: its name and its variables are free for another. Null is fine.
void shx_env_registration_free(shx_env_registration *registration);

// Collects the managed environment of one execution of `command` in `workdir`, for `session` (UTF-8): each may be empty,
// and is then not told to the contributors. They are called one after the other on this thread. Free it with
// `shx_env_snapshot_free`. `SHX_STATUS_MANAGED_ENV`, with a message that names the contributor, when one fails or gives
// what it must not.
shx_status shx_env_registry_collect(const shx_env_registry *registry,
                                    shx_view session,
                                    shx_view workdir,
                                    shx_view command,
                                    shx_env_snapshot **snapshot,
                                    shx_error **error);

// How many variables there are; 0 for null.
size_t shx_env_snapshot_count(const shx_env_snapshot *snapshot);

// Sets `name` and `value` (either may be null) to those of a variable, in the order of the names. `false`, and nothing set,
// past the last.
bool shx_env_snapshot_at(const shx_env_snapshot *snapshot,
                         size_t index,
                         shx_view *name,
                         shx_view *value);

// Frees a snapshot. The requests it was added to keep its variables. Null is fine.
void shx_env_snapshot_free(shx_env_snapshot *snapshot);

// All variables that are declared now, the built-in ones among them, by name. No contributor is called. Free it with
// `shx_env_declarations_free`.
shx_status shx_env_registry_list(const shx_env_registry *registry,
                                 shx_env_declarations **declarations,
                                 shx_error **error);

// How many there are; 0 for null.
size_t shx_env_declarations_count(const shx_env_declarations *declarations);

// Sets what is known of a variable, each of which may be null: its name, what it tells, and the contributor it belongs to
// (empty for one that is built in). `false`, and nothing set, past the last.
bool shx_env_declarations_at(const shx_env_declarations *declarations,
                             size_t index,
                             shx_view *name,
                             shx_view *description,
                             shx_view *contributor);

// Frees them. Null is fine.
void shx_env_declarations_free(shx_env_declarations *declarations);

// The status of the call that made the error; `SHX_STATUS_OK` for null.
shx_status shx_error_status(const shx_error *error);

// A stable name of the status, such as `SPAWN`; empty for null. Lives as long as the program.
shx_view shx_error_code(const shx_error *error);

// What went wrong, to what, and why, for a person: lower case, UTF-8, without a full stop. Empty for null. Lives as long
// as the error.
shx_view shx_error_message(const shx_error *error);

// The stage at which starting a process failed; `SHX_STAGE_NONE` for every other error and for null.
shx_stage shx_error_stage(const shx_error *error);

// The path that it failed over: the working directory, the shell or the program. Empty when there is none. Lives as long
// as the error.
shx_view shx_error_path(const shx_error *error);

// The system's error number (`errno`), where the system said one; otherwise 0.
int32_t shx_error_errno(const shx_error *error);

// What of the call is to blame: the parameter (`SHX_STATUS_INVALID_ARGUMENT`), the field of the request
// (`SHX_STATUS_INVALID_REQUEST`; an entry of the environment as `env NAME`), or the contributor
// (`SHX_STATUS_MANAGED_ENV`). Empty for every other error. Lives as long as the error.
shx_view shx_error_field(const shx_error *error);

// Frees an error. Null is fine.
void shx_error_free(shx_error *error);

// Another handle of the same execution, to be freed by itself; null for null.
shx_execution *shx_execution_clone(const shx_execution *execution);

// Frees the handle. The command goes on, and its other handles stay. Null is fine.
void shx_execution_free(shx_execution *execution);

// Blocks until the command has settled, and gives its outcome, to be freed with `shx_result_free`. Asked again, it gives
// the same again. An error only when the command could not be started, or its status was lost.
shx_status shx_execution_result(const shx_execution *execution,
                                shx_result **result,
                                shx_error **error);

// Blocks until the process exists, or the execution has settled without one; an error when there never was a process
// because of one.
shx_status shx_execution_wait_started(const shx_execution *execution,
                                      shx_error **error);

// Blocks until the command has settled, or the time is over (0: at once; `SHX_FOREVER`: without an end). `status` (may be
// null) is set to where it stands then: `SHX_PROCESS_STATUS_RUNNING` when the time was over first.
shx_status shx_execution_wait(const shx_execution *execution,
                              uint64_t timeout_ms,
                              shx_process_status *status,
                              shx_error **error);

// Where it stands: `SHX_PROCESS_STATUS_RUNNING` until it has settled, and for null. Does not block.
shx_process_status shx_execution_status(const shx_execution *execution);

// Sets `code` (may be null) to the exit code. `false`, and nothing set, while it runs, and when it ended without one.
bool shx_execution_exit_code(const shx_execution *execution,
                             int32_t *code);

// Sets `signal` (may be null) to the number of the signal that ended it. `false`, and nothing set, while it runs, and when
// none did.
bool shx_execution_signal(const shx_execution *execution,
                          int32_t *signal);

// The process id of the leader, for showing and never for signalling; 0 before it was started, and where there is none.
int32_t shx_execution_pid(const shx_execution *execution);

// What is new on both streams since the last consuming read, to be freed with `shx_process_read_free`. Consecutive reads
// never repeat and never skip silently. Does not wait for the command.
shx_status shx_execution_read_output(const shx_execution *execution,
                                     shx_process_read **read,
                                     shx_error **error);

// What is new on one stream, exactly as it was written, to be freed with `shx_output_read_free`. It shares the stream's
// place with the reads of both.
shx_status shx_execution_read_stream(const shx_execution *execution,
                                     shx_stream stream,
                                     shx_output_read **read,
                                     shx_error **error);

// Blocks until a consuming read has something new to give, the command has settled, or the time is over (0: at once;
// `SHX_FOREVER`: without an end). `news` (may be null) is set to whether there is something new. Without an end, false means
// that the command has settled and everything was read; with one, ask `shx_execution_status` before the wait.
shx_status shx_execution_wait_output(const shx_execution *execution,
                                     uint64_t timeout_ms,
                                     bool *news,
                                     shx_error **error);

// `shx_execution_wait_output` for one stream.
shx_status shx_execution_wait_stream(const shx_execution *execution,
                                     shx_stream stream,
                                     uint64_t timeout_ms,
                                     bool *news,
                                     shx_error **error);

// The text of one stream from `offset` (in bytes) on, to be freed with `shx_output_read_free`. It consumes nothing, so any
// number of readers are independent of each other.
shx_status shx_execution_read_text_from(const shx_execution *execution,
                                        shx_stream stream,
                                        uint64_t offset,
                                        shx_output_read **read,
                                        shx_error **error);

// The same, exactly as it was written.
shx_status shx_execution_read_bytes_from(const shx_execution *execution,
                                         shx_stream stream,
                                         uint64_t offset,
                                         shx_output_read **read,
                                         shx_error **error);

// How many bytes a stream has carried so far; 0 for null and for a number that is no stream.
uint64_t shx_execution_total_bytes(const shx_execution *execution, shx_stream stream);

// Stops the command and all it started: SIGTERM, the grace, SIGKILL. `first` (may be null) is set to whether this call
// started that on a command that nothing had ended yet; otherwise nothing is sent. Returns at once.
shx_status shx_execution_kill(const shx_execution *execution,
                              bool *first,
                              shx_error **error);

// Stops what a command that has ended left running. `any` (may be null) is set to whether there was something. Returns at
// once.
shx_status shx_execution_kill_survivors(const shx_execution *execution,
                                        bool *any,
                                        shx_error **error);

// Blocks until nothing that the command started is left, or the time is over (0: at once; `SHX_FOREVER`: without an end).
// `gone` (may be null) is set to whether nothing is left.
shx_status shx_execution_wait_range(const shx_execution *execution,
                                    uint64_t timeout_ms,
                                    bool *gone,
                                    shx_error **error);

// Blocks until the command has outrun its deadline under `SHX_ON_EXPIRY_OFFER`, and gives the offer to keep it, to be
// freed with `shx_promotion_offer_free`. `offer` is set to null when it settles first, at once under every other policy,
// and for every caller but the first.
shx_status shx_execution_promotion(const shx_execution *execution,
                                   shx_promotion_offer **offer,
                                   shx_error **error);

// The other end of a piped stdin, once: `descriptor` is set to it, and to -1 when there is none, it was taken, or the
// command has ended. Closing it is the command's end of file. Blocks until the command has started. Writing to a command
// that reads no more raises SIGPIPE in a process that has not ignored it.
shx_status shx_execution_take_stdin(const shx_execution *execution,
                                    shx_descriptor *descriptor,
                                    shx_error **error);

// The other end of a piped stream, once: `descriptor` is set to it, and to -1 when there is none, or it was taken. Only of
// a process that was started by its argv. Blocks until the process has started.
shx_status shx_execution_take_stream(const shx_execution *execution,
                                     shx_stream stream,
                                     shx_descriptor *descriptor,
                                     shx_error **error);

// The sandbox facts as they are now, present before a confined run settles, to be freed with `shx_sandbox_info_free`; null
// from an executor that does not confine.
shx_sandbox_info *shx_execution_sandbox(const shx_execution *execution);

// By which means what it starts is held together.
shx_containment shx_execution_containment(const shx_execution *execution);

// How many names were kept from its environment.
size_t shx_execution_scrubbed_count(const shx_execution *execution);

// A name that was kept from its environment, in their order; empty past the last. Lives as long as the handle.
shx_view shx_execution_scrubbed_at(const shx_execution *execution,
                                   size_t index);

// An executor that runs each command by a fresh `bash -c`, in `service`. `config` may be null for the defaults.
// `provider` and `policy` come together, or are both null: then commands are not confined. Otherwise each is confined by
// `provider`, under its request's policy or else under `policy`. Copies are taken of all of them. Free it with
// `shx_executor_free`. Whether there is a shell, and whether anything can confine, is seen when a command is executed.
shx_status shx_bash_executor_new(const shx_service *service,
                                 const shx_config *config,
                                 const shx_sandbox_provider *provider,
                                 const shx_sandbox_policy *policy,
                                 shx_executor **executor,
                                 shx_error **error);

// The same by PowerShell: `pwsh`, else `powershell`, unless `config` names another shell. How the exit code of a command
// comes about stands in the documentation of `PwshExecutor`.
shx_status shx_pwsh_executor_new(const shx_service *service,
                                 const shx_config *config,
                                 const shx_sandbox_provider *provider,
                                 const shx_sandbox_policy *policy,
                                 shx_executor **executor,
                                 shx_error **error);

// The mode that commands are confined to unless their request says otherwise; `SHX_SANDBOX_MODE_NONE` from an executor
// that does not confine.
shx_sandbox_mode shx_executor_sandbox_mode(const shx_executor *executor);

// Applies defaults and caps: `spec` is set to what will be run, which can be read before it is. Nothing is started. Free
// it with `shx_spec_free`.
shx_status shx_executor_resolve(const shx_executor *executor,
                                const shx_request *request,
                                shx_spec **spec,
                                shx_error **error);

// Starts the command, and gives its live handle at once. A failure to start is what `shx_execution_result` gives. Free
// the handle with `shx_execution_free`; that stops nothing.
shx_status shx_executor_execute(const shx_executor *executor,
                                const shx_spec *spec,
                                shx_execution **execution,
                                shx_error **error);

// The same, waiting until the process exists: a failure to start is an error, and there is no handle. A deadline that
// passes before is not an error; the handle's result says `timed_out`.
shx_status shx_executor_start(const shx_executor *executor,
                              const shx_spec *spec,
                              shx_execution **execution,
                              shx_error **error);

// Runs the command to its end. A command that fails, times out or is aborted has a result, not an error. Free the result
// with `shx_result_free`.
shx_status shx_executor_run(const shx_executor *executor,
                            const shx_spec *spec,
                            shx_result **result,
                            shx_error **error);

// Frees an executor. Its commands go on: they belong to the service. Null is fine.
void shx_executor_free(shx_executor *executor);

// The name of a status, such as `SPAWN`: what `shx_error_code` gives, and `OK`. Like all names it ends in a NUL and lives
// as long as the program; a number that names nothing gives `unknown`.
const char *shx_status_name(shx_status status);

// The name of a stage, such as `workdir`; `none` for `SHX_STAGE_NONE`.
const char *shx_stage_name(shx_stage stage);

// The name of a sandbox mode, such as `read-only`; `none` for `SHX_SANDBOX_MODE_NONE`.
const char *shx_sandbox_mode_name(shx_sandbox_mode mode);

// The name of how completely a mode is enforced: `none`, `full` or `partial`.
const char *shx_enforcement_name(shx_enforcement enforcement);

// The name of where an execution stands: `running`, `completed` or `killed`.
const char *shx_process_status_name(shx_process_status status);

// The name of a cause, such as `timeout`; `none` for `SHX_CAUSE_NONE`.
const char *shx_cause_name(shx_cause cause);

// The name of a containment: `process-group` or `session`.
const char *shx_containment_name(shx_containment containment);

// Keeps the command: no deadline and no abort token from now on. `kept` (may be null) is set to whether it came in time;
// false too when it was answered before. The offer is still to be freed.
shx_status shx_promotion_offer_accept(const shx_promotion_offer *offer,
                                      bool *kept,
                                      shx_error **error);

// Stops the command now, as a timeout. `stopped` (may be null) is set to whether this did it. The offer is still to be
// freed.
shx_status shx_promotion_offer_decline(const shx_promotion_offer *offer,
                                       bool *stopped,
                                       shx_error **error);

// Frees an offer; one that has no answer declines. Null is fine.
void shx_promotion_offer_free(shx_promotion_offer *offer);

// A policy of `mode` over the directory `workspace_root`. `session` (UTF-8) is whose session the call belongs to; it
// changes nothing by itself, and may be empty. Free it with `shx_sandbox_policy_free`.
shx_status shx_sandbox_policy_new(shx_sandbox_mode mode,
                                  shx_view workspace_root,
                                  shx_view session,
                                  shx_sandbox_policy **policy,
                                  shx_error **error);

// Its mode; `SHX_SANDBOX_MODE_NONE` for null.
shx_sandbox_mode shx_sandbox_policy_mode(const shx_sandbox_policy *policy);

// Its root, as it was given or resolved. Empty for null. Lives as long as the policy.
shx_view shx_sandbox_policy_workspace_root(const shx_sandbox_policy *policy);

// Its session; empty without one. Lives as long as the policy.
shx_view shx_sandbox_policy_session(const shx_sandbox_policy *policy);

// Frees a policy. What was given it keeps a copy. Null is fine.
void shx_sandbox_policy_free(shx_sandbox_policy *policy);

// A service whose calls get `default_mode` over `root` unless something else is set. Free it with
// `shx_policy_service_free`.
shx_status shx_policy_service_new(shx_sandbox_mode default_mode,
                                  shx_view root,
                                  shx_policy_service **policies,
                                  shx_error **error);

// Sets the mode of the calls of `session` (UTF-8); `SHX_SANDBOX_MODE_NONE` gives them the default again.
shx_status shx_policy_service_set_session_mode(const shx_policy_service *policies,
                                               shx_view session,
                                               shx_sandbox_mode mode,
                                               shx_error **error);

// Sets the directory that the calls of `session` (UTF-8) work in.
shx_status shx_policy_service_set_session_root(const shx_policy_service *policies,
                                               shx_view session,
                                               shx_view root,
                                               shx_error **error);

// Forgets all that was set for `session` (UTF-8). Nothing set is fine.
shx_status shx_policy_service_forget_session(const shx_policy_service *policies,
                                             shx_view session,
                                             shx_error **error);

// The policy of one call: `approved`, if it is not `SHX_SANDBOX_MODE_NONE`, else the mode of `session` (UTF-8, empty for
// none), else the default; over the session's directory, else the configured root. Free it with `shx_sandbox_policy_free`.
// A directory that is missing is `SHX_STATUS_INVALID_REQUEST`.
shx_status shx_policy_service_resolve(const shx_policy_service *policies,
                                      shx_view session,
                                      shx_sandbox_mode approved,
                                      shx_sandbox_policy **policy,
                                      shx_error **error);

// Frees the service. Null is fine.
void shx_policy_service_free(shx_policy_service *policies);

// The chain of this system's backends: the first that works confines. Each is tried once, when it is first needed. Free it
// with `shx_sandbox_provider_free`.
shx_sandbox_provider *shx_sandbox_chain_new(void);

// Tries only these `count` backends, in this order.
shx_status shx_sandbox_chain_set_backends(const shx_sandbox_provider *provider,
                                          const shx_sandbox_backend *backends,
                                          size_t count,
                                          shx_error **error);

// Whether a backend that stops only part of what a mode forbids is refused. Default: no.
shx_status shx_sandbox_chain_set_require_full(const shx_sandbox_provider *provider,
                                              bool require,
                                              shx_error **error);

// How much the scratch directory of `SHX_SANDBOX_MODE_READ_ONLY` holds, in bytes of memory. Default: 64 MiB.
shx_status shx_sandbox_chain_set_scratch_max_bytes(const shx_sandbox_provider *provider,
                                                   uint64_t bytes,
                                                   shx_error **error);

// The directory that `SHX_SANDBOX_MODE_WORKSPACE_WRITE` opens besides the workspace. Default: the host's temp directory.
shx_status shx_sandbox_chain_set_temp_dir(const shx_sandbox_provider *provider,
                                          shx_view directory,
                                          shx_error **error);

// Where bubblewrap stands, for a host that has its own. Default: where systems install it.
shx_status shx_sandbox_chain_set_bwrap(const shx_sandbox_provider *provider,
                                       shx_view program,
                                       shx_error **error);

// What became of each backend of the chain `provider` here. Those that have not been tried are tried now, in `service`.
// Free it with `shx_sandbox_rungs_free`.
shx_status shx_service_sandbox_rungs(const shx_service *service,
                                     const shx_sandbox_provider *provider,
                                     shx_sandbox_rungs **rungs,
                                     shx_error **error);

// How many backends there are; 0 for null.
size_t shx_sandbox_rungs_count(const shx_sandbox_rungs *rungs);

// The name of a backend, such as `native`; empty past the last. Lives as long as the program.
shx_view shx_sandbox_rungs_name(const shx_sandbox_rungs *rungs, size_t index);

// Whether commands are confined by it: it is the first that works.
bool shx_sandbox_rungs_is_chosen(const shx_sandbox_rungs *rungs, size_t index);

// Why it cannot be used; empty for one that works. Lives as long as the object.
shx_view shx_sandbox_rungs_unavailable(const shx_sandbox_rungs *rungs, size_t index);

// The effects on files that it does not stop, in words; empty for one that stops all. Lives as long as the object.
shx_view shx_sandbox_rungs_ungoverned(const shx_sandbox_rungs *rungs,
                                      size_t index);

// Frees it. Null is fine.
void shx_sandbox_rungs_free(shx_sandbox_rungs *rungs);

// A runner: a program that confines what it is given to run, by its `count` words. The first is a name to look up on this
// process's `PATH`, or an absolute path. In the words, `{mode}`, `{workspace_root}` and `{temp_dir}` stand for what they
// say. The shell and its arguments follow them. How complete the confinement is, the host says by `enforcement`. Free it
// with `shx_sandbox_provider_free`.
shx_status shx_sandbox_runner_new(const shx_view *words,
                                  size_t count,
                                  shx_enforcement enforcement,
                                  shx_sandbox_provider **provider,
                                  shx_error **error);

// The `count` exit codes by which a runner says that it has failed and the command has not run.
shx_status shx_sandbox_runner_set_failure_exit_codes(const shx_sandbox_provider *provider,
                                                     const int32_t *codes,
                                                     size_t count,
                                                     shx_error **error);

// The `count` texts (UTF-8) that a runner prints on stderr when it has failed. Case is ignored.
shx_status shx_sandbox_runner_set_failure_signatures(const shx_sandbox_provider *provider,
                                                     const shx_view *texts,
                                                     size_t count,
                                                     shx_error **error);

// The `count` texts (UTF-8) that a failing command's stderr has when the runner has denied it something. Case is ignored.
shx_status shx_sandbox_runner_set_denial_signatures(const shx_sandbox_provider *provider,
                                                    const shx_view *texts,
                                                    size_t count,
                                                    shx_error **error);

// Frees a provider. Executors that have it keep it. Null is fine.
void shx_sandbox_provider_free(shx_sandbox_provider *provider);

// What is new: stdout, then, if there is any, a line `[stderr]` and stderr. UTF-8. Empty for null.
shx_view shx_process_read_delta(const shx_process_read *read);

// Whether unread bytes are gone for good.
bool shx_process_read_lossy(const shx_process_read *read);

// The file with all of stdout, if stdout overflowed and the file stands there; else empty.
shx_view shx_process_read_stdout_spill_path(const shx_process_read *read);

// The same of stderr.
shx_view shx_process_read_stderr_spill_path(const shx_process_read *read);

// Frees it. Null is fine.
void shx_process_read_free(shx_process_read *read);

// The text (UTF-8) or the bytes that were read. Empty for null.
shx_view shx_output_read_view(const shx_output_read *read);

// The offset, in bytes of the stream, to read from next. 0 for null and for a consuming read.
uint64_t shx_output_read_next_offset(const shx_output_read *read);

// Whether bytes before these are gone for good; these are then the whole retained tail.
bool shx_output_read_lossy(const shx_output_read *read);

// The file with the complete stream, if it stands there; else empty. Only of a read of text from an offset.
shx_view shx_output_read_spill_path(const shx_output_read *read);

// Frees it. Null is fine.
void shx_output_read_free(shx_output_read *read);

// The result as text (UTF-8) for a model: stdout, stderr below a line `[stderr]`, what cut it short, and last, unless it is
// 0, how it ended. Free it with `shx_text_free`.
shx_status shx_render_result(const shx_result *result,
                             shx_text **text,
                             shx_error **error);

// One consuming read as text (UTF-8) for a model that polls. `result` and `failure` are what `shx_execution_result` has
// given: both null as long as the execution has not settled, and otherwise one of them. Ask whether it has settled before
// reading. Free it with `shx_text_free`.
shx_status shx_render_read(const shx_process_read *read,
                           const shx_result *result,
                           const shx_error *failure,
                           shx_text **text,
                           shx_error **error);

// Takes rendered text (UTF-8) apart. Any text can be given. Free it with `shx_parsed_output_free`.
shx_status shx_parse_exit_status(shx_view text, shx_parsed_output **parsed, shx_error **error);

// Everything before the status line; all of the text if there is none.
shx_view shx_parsed_output_body(const shx_parsed_output *parsed);

// How the command ended.
shx_exit_kind shx_parsed_output_kind(const shx_parsed_output *parsed);

// The exit code; 0 for every kind but `SHX_EXIT_KIND_CODE`.
int32_t shx_parsed_output_code(const shx_parsed_output *parsed);

// The name of the signal; empty for every kind but `SHX_EXIT_KIND_SIGNAL`.
shx_view shx_parsed_output_signal(const shx_parsed_output *parsed);

// Frees it. Null is fine.
void shx_parsed_output_free(shx_parsed_output *parsed);

// A request for `command`, in the shell's language. It may be empty, begin with `-`, and be longer than the system's limit
// for one argument. Free it with `shx_request_free`.
shx_status shx_request_new(shx_view command,
                           shx_request **request,
                           shx_error **error);

// Frees a request. What was resolved from it stays. Null is fine.
void shx_request_free(shx_request *request);

// Where it runs; a relative path is below the executor's own working directory.
shx_status shx_request_set_workdir(const shx_request *request, shx_view workdir, shx_error **error);

// How long it may run, in milliseconds. Clamped to the executor's cap. 0 is refused when the request is resolved.
shx_status shx_request_set_timeout_ms(const shx_request *request,
                                      uint64_t ms,
                                      shx_error **error);

// How many of stdout's last bytes are kept in memory, for this one execution. 0 is refused when the request is resolved.
shx_status shx_request_set_stdout_max_bytes(const shx_request *request,
                                            size_t bytes,
                                            shx_error **error);

// Cuts the command short when `token` is fired. Null: nothing does.
shx_status shx_request_set_abort(const shx_request *request,
                                 const shx_abort_token *token,
                                 shx_error **error);

// Gives the command these bytes to read, of any number, and then end of file. Without, it reads `/dev/null`.
shx_status shx_request_set_stdin(const shx_request *request,
                                 shx_view bytes,
                                 shx_error **error);

// Gives the command a pipe to read, whose other end the caller takes with `shx_execution_take_stdin`.
shx_status shx_request_set_stdin_piped(const shx_request *request,
                                       shx_error **error);

// Sets a variable of the command's environment. A later entry of a name comes after an earlier one.
shx_status shx_request_set_env(const shx_request *request,
                               shx_view name,
                               shx_view value,
                               shx_error **error);

// Takes a name away from the command's environment.
shx_status shx_request_remove_env(const shx_request *request, shx_view name, shx_error **error);

// Adds a fact of the host's: `DSH_` and then `[A-Z][A-Z0-9_]*`. Another name is refused when the request is resolved.
shx_status shx_request_set_managed_env(const shx_request *request,
                                       shx_view name,
                                       shx_view value,
                                       shx_error **error);

// Adds all facts of a snapshot.
shx_status shx_request_add_managed_snapshot(const shx_request *request,
                                            const shx_env_snapshot *snapshot,
                                            shx_error **error);

// What the command may do to files; for executors that confine. Null: the executor's own policy.
shx_status shx_request_set_sandbox_policy(const shx_request *request,
                                          const shx_sandbox_policy *policy,
                                          shx_error **error);

// What the deadline does.
shx_status shx_request_set_on_expiry(const shx_request *request,
                                     shx_on_expiry on_expiry,
                                     shx_error **error);

// Whether the command waits while its output is not read, instead of dropping the oldest of it. A caller that does not
// read then stops the command.
shx_status shx_request_set_backpressure(const shx_request *request,
                                        bool backpressure,
                                        shx_error **error);

// The mode that the command ran under; `SHX_SANDBOX_MODE_NONE` for null.
shx_sandbox_mode shx_sandbox_info_mode(const shx_sandbox_info *info);

// Whether the sandbox is known to have denied an operation on a file.
bool shx_sandbox_info_denied(const shx_sandbox_info *info);

// How completely the mode is enforced.
shx_enforcement shx_sandbox_info_enforcement(const shx_sandbox_info *info);

// Whether the sandbox failed before the command could run.
bool shx_sandbox_info_runner_failed(const shx_sandbox_info *info);

// The backend that confines the command; empty without confinement, and as long as none has been chosen.
shx_view shx_sandbox_info_backend(const shx_sandbox_info *info);

// Frees facts that `shx_execution_sandbox` has given; those of a result belong to the result. Null is fine.
void shx_sandbox_info_free(shx_sandbox_info *info);

// Sets `code` (may be null) to the exit code. `false`, and nothing set, when a signal ended the leader, or it never
// started.
bool shx_result_exit_code(const shx_result *result,
                          int32_t *code);

// Sets `signal` (may be null) to the number of the signal that ended the leader. `false`, and nothing set, when none did.
bool shx_result_signal(const shx_result *result,
                       int32_t *signal);

// The signal's name, such as `SIGTERM`; empty without one.
shx_view shx_result_signal_name(const shx_result *result);

// Whether the command ended by itself with exit code 0.
bool shx_result_success(const shx_result *result);

// Whether the deadline was the first cause to cut the command short.
bool shx_result_timed_out(const shx_result *result);

// Whether the abort token was the first cause to cut the command short.
bool shx_result_aborted(const shx_result *result);

// Sets `milliseconds` (may be null) to the effective timeout. `false`, and nothing set, for a run without a deadline.
bool shx_result_timeout_ms(const shx_result *result,
                           uint64_t *milliseconds);

// The kept end of a stream as text (UTF-8). Empty for null and for a number that is no stream.
shx_view shx_result_text(const shx_result *result, shx_stream number);

// The kept end of a stream, exactly as it was written.
shx_view shx_result_bytes(const shx_result *result, shx_stream number);

// Whether bytes were dropped from the beginning of the stream.
bool shx_result_truncated(const shx_result *result, shx_stream number);

// How many bytes the stream ever carried.
uint64_t shx_result_total_bytes(const shx_result *result, shx_stream number);

// The file that holds the complete stream; empty without one. It lives until the service is disposed of, unless the service
// keeps spill files.
shx_view shx_result_spill_path(const shx_result *result,
                               shx_stream number);

// Why the stream overflowed and yet there is no file (UTF-8); else empty.
shx_view shx_result_spill_error(const shx_result *result, shx_stream number);

// The sandbox facts; null from an executor that does not confine. They belong to the result.
const shx_sandbox_info *shx_result_sandbox(const shx_result *result);

// `SHX_PROCESS_STATUS_COMPLETED` or `SHX_PROCESS_STATUS_KILLED`.
shx_process_status shx_result_status(const shx_result *result);

// The first cause.
shx_cause shx_result_cause(const shx_result *result);

// From the start of the execution until it settled, in microseconds.
uint64_t shx_result_duration_us(const shx_result *result);

// Sets what the leader used, each of which may be null: CPU time in user mode and in the kernel, in microseconds, and its
// largest resident size, in bytes, an upper bound. `false`, and nothing set, when it is not known.
bool shx_result_usage(const shx_result *result,
                      uint64_t *user_us,
                      uint64_t *system_us,
                      uint64_t *max_rss_upper_bound);

// Whether a descendant still held stdout or stderr when the run settled.
bool shx_result_pipes_held(const shx_result *result);

// How many processes of the range were alive when the run settled.
size_t shx_result_survivors(const shx_result *result);

// Whether the command ended, or closed its input, before all of the input was written to its pipe.
bool shx_result_stdin_truncated(const shx_result *result);

// How the range was held together.
shx_containment shx_result_containment(const shx_result *result);

// How many names were kept from the command's environment.
size_t shx_result_scrubbed_count(const shx_result *result);

// A name that was kept from the command's environment, in their order; empty past the last.
shx_view shx_result_scrubbed_at(const shx_result *result, size_t index);

// Frees a result. Null is fine.
void shx_result_free(shx_result *result);

// A configuration with the defaults: spill files below the system's temp directory, which go with the service. Free it
// with `shx_service_config_free`.
shx_service_config *shx_service_config_new(void);

// Under which directory the private directory for spill files is made.
shx_status shx_service_config_set_spill_root(const shx_service_config *config,
                                             shx_view directory,
                                             shx_error **error);

// Whether spill files outlive the service. Default: no.
shx_status shx_service_config_set_keep_spill(const shx_service_config *config,
                                             bool keep,
                                             shx_error **error);

// Frees a configuration. The services made with it keep their copies. Null is fine.
void shx_service_config_free(shx_service_config *config);

// A service. `config` may be null for the defaults. At this process's `exit`, every process that a service still runs is
// killed. Free it with `shx_service_free`.
shx_status shx_service_new(const shx_service_config *config,
                           shx_service **service,
                           shx_error **error);

// Another handle of the same service, to be freed by itself; null for null.
shx_service *shx_service_clone(const shx_service *service);

// Stops everything that the service runs, waits until it is gone or given up, joins every thread and removes the spill
// files. What is executed afterwards fails with `SHX_STATUS_DISPOSED`. A second call waits for the first and gives the
// same. In a process that has been forked off it does nothing.
//
// `stopped` is set to how many commands were alive and had to be stopped, `survivors` to how many processes could not be.
// Both may be null.
shx_status shx_service_dispose(const shx_service *service,
                               size_t *stopped,
                               size_t *survivors,
                               shx_error **error);

// Frees the handle. The last one of a service disposes of it, which blocks like `shx_service_dispose`. Null is fine.
void shx_service_free(shx_service *service);

// From now on SIGINT, SIGTERM and SIGHUP dispose of the service, and this process then dies of that signal as it would
// have; one that is ignored now stays ignored. The one function of this library that changes the dispositions of signals.
// It lasts until `guard` is freed with `shx_signal_guard_free`.
shx_status shx_service_dispose_on_signals(const shx_service *service,
                                          shx_signal_guard **guard,
                                          shx_error **error);

// Gives the signals back. Null is fine.
void shx_signal_guard_free(shx_signal_guard *guard);

// An order to start a program in the absolute directory `cwd`: without arguments, with an empty environment, reading
// `/dev/null`, with 64,000 bytes of each stream kept in memory and no file, a grace of 3 s, and without a deadline. The
// first `shx_spawn_spec_add_arg` is the program. Free it with `shx_spawn_spec_free`.
shx_status shx_spawn_spec_new(shx_view cwd,
                              shx_spawn_spec **spec,
                              shx_error **error);

// Frees an order. What was started by it goes on. Null is fine.
void shx_spawn_spec_free(shx_spawn_spec *spec);

// Adds a word to the argv. The first is a bare program name, looked up on the child's `PATH`, or an absolute path.
shx_status shx_spawn_spec_add_arg(const shx_spawn_spec *spec,
                                  shx_view arg,
                                  shx_error **error);

// Adds a variable to the environment.
shx_status shx_spawn_spec_add_env(const shx_spawn_spec *spec,
                                  shx_view name,
                                  shx_view value,
                                  shx_error **error);

// Adds all variables of this process's own environment, as it is now.
shx_status shx_spawn_spec_inherit_env(const shx_spawn_spec *spec, shx_error **error);

// Gives the process these bytes to read, of any number, and then end of file.
shx_status shx_spawn_spec_set_stdin(const shx_spawn_spec *spec, shx_view bytes, shx_error **error);

// Gives the process a pipe to read, whose other end the caller takes with `shx_execution_take_stdin`.
shx_status shx_spawn_spec_set_stdin_piped(const shx_spawn_spec *spec,
                                          shx_error **error);

// Collects a stream: the last `max_bytes` in memory, and on overflow all of it in a private file of at most
// `spill_max_bytes`, or in none for 0.
shx_status shx_spawn_spec_collect(const shx_spawn_spec *spec,
                                  shx_stream stream,
                                  size_t max_bytes,
                                  uint64_t spill_max_bytes,
                                  shx_error **error);

// Keeps a stream in memory until a consuming read has taken it, `max_bytes` at most (and at least 16): then the process
// waits for the reader.
shx_status shx_spawn_spec_relay(const shx_spawn_spec *spec,
                                shx_stream stream,
                                size_t max_bytes,
                                shx_error **error);

// Makes a stream a pipe, whose other end the caller takes with `shx_execution_take_stream`. Nothing is collected.
shx_status shx_spawn_spec_pipe(const shx_spawn_spec *spec,
                               shx_stream stream,
                               shx_error **error);

// Gives the process this process's own stream. Nothing is collected.
shx_status shx_spawn_spec_inherit(const shx_spawn_spec *spec, shx_stream stream, shx_error **error);

// From the polite signal to the forceful one, in milliseconds. 0 is allowed.
shx_status shx_spawn_spec_set_grace_ms(const shx_spawn_spec *spec, uint64_t ms, shx_error **error);

// How long a stream held open by a descendant must be quiet, after the leader's exit, to be given up, in milliseconds.
shx_status shx_spawn_spec_set_drain_idle_ms(const shx_spawn_spec *spec,
                                            uint64_t ms,
                                            shx_error **error);

// Sets a deadline, in milliseconds (not 0) from the spawn, what it does, and how long an offer stays open, in
// milliseconds (without effect except under `SHX_ON_EXPIRY_OFFER`).
shx_status shx_spawn_spec_set_deadline(const shx_spawn_spec *spec,
                                       uint64_t timeout_ms,
                                       shx_on_expiry on_expiry,
                                       uint64_t answer_window_ms,
                                       shx_error **error);

// Cuts the process short when `token` is fired. Null: nothing does.
shx_status shx_spawn_spec_set_abort(const shx_spawn_spec *spec,
                                    const shx_abort_token *token,
                                    shx_error **error);

// Starts the process, and waits until it exists: a failure to start is an error, and there is no handle. Free the handle
// with `shx_execution_free`; that stops nothing.
shx_status shx_service_spawn(const shx_service *service,
                             const shx_spawn_spec *spec,
                             shx_execution **execution,
                             shx_error **error);

// Another spec of the same terms, to be freed by itself; null for null.
shx_spec *shx_spec_clone(const shx_spec *spec);

// Frees a spec. What was executed with it goes on. Null is fine.
void shx_spec_free(shx_spec *spec);

// The command. Empty for null.
shx_view shx_spec_command(const shx_spec *spec);

// Where it runs, absolute. Empty for null.
shx_view shx_spec_workdir(const shx_spec *spec);

// How long it may run, in milliseconds, after default and cap. Without effect under `SHX_ON_EXPIRY_NONE`. 0 for null.
uint64_t shx_spec_timeout_ms(const shx_spec *spec);

// What the deadline does. `SHX_ON_EXPIRY_KILL` for null.
shx_on_expiry shx_spec_on_expiry(const shx_spec *spec);

// How many of stdout's last bytes are kept in memory. 0 for null.
size_t shx_spec_stdout_max_bytes(const shx_spec *spec);

// How many of stderr's last bytes are kept in memory. 0 for null.
size_t shx_spec_stderr_max_bytes(const shx_spec *spec);

// How large the spill file of one stream may become, in bytes; 0 for no file.
uint64_t shx_spec_spill_max_bytes(const shx_spec *spec);

// From the polite signal to the forceful one, in milliseconds. 0 for null.
uint64_t shx_spec_grace_ms(const shx_spec *spec);

// How long a held stream must be quiet to be given up, in milliseconds. 0 for null.
uint64_t shx_spec_drain_idle_ms(const shx_spec *spec);

// How long an offer to keep the command stays open, in milliseconds. 0 for null.
uint64_t shx_spec_answer_window_ms(const shx_spec *spec);

// Whether an abort token can cut it short.
bool shx_spec_has_abort(const shx_spec *spec);

// What it reads. `SHX_STDIN_NULL` for null.
shx_stdin shx_spec_stdin(const shx_spec *spec);

// The bytes that it reads; empty for another kind of input.
shx_view shx_spec_stdin_bytes(const shx_spec *spec);

// How many variables its environment has: all of them, but for the marker of its range.
size_t shx_spec_env_count(const shx_spec *spec);

// Sets `name` and `value` (either may be null) to those of a variable. `false`, and nothing set, past the last.
bool shx_spec_env_at(const shx_spec *spec,
                     size_t index,
                     shx_view *name,
                     shx_view *value);

// How many names the scrub has kept from its environment.
size_t shx_spec_scrubbed_count(const shx_spec *spec);

// A name that the scrub has kept from its environment, in their order; empty past the last.
shx_view shx_spec_scrubbed_at(const shx_spec *spec, size_t index);

// The mode that it is confined to; `SHX_SANDBOX_MODE_NONE` without confinement.
shx_sandbox_mode shx_spec_sandbox_mode(const shx_spec *spec);

// The workspace that its confinement speaks of; empty without confinement.
shx_view shx_spec_workspace_root(const shx_spec *spec);

// The session of its sandbox policy; empty without one.
shx_view shx_spec_sandbox_session(const shx_spec *spec);

// Whether the command waits while its output is not read.
bool shx_spec_backpressure(const shx_spec *spec);

// The bytes. Empty for null. Lives as long as the object.
shx_view shx_text_view(const shx_text *text);

// Frees the text. Null is fine.
void shx_text_free(shx_text *text);

// The version of the library, such as `0.1.0`, as text that ends in a NUL. Lives as long as the program.
const char *shx_version(void);

// The number of the interface that the library has; see `SHX_ABI_VERSION` for that of the header.
uint32_t shx_abi_version(void);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* SHELL_EXECUTOR_H */


#ifdef __cplusplus
extern "C" {
#endif

// A view of text that ends in a NUL, without it. Null gives an empty view.
static inline shx_view shx_str(const char *text) {
    shx_view view;
    view.data = text;
    view.len = 0;
    if (text) {
        while (text[view.len]) {
            view.len++;
        }
    }
    return view;
}

// A view of `len` bytes.
static inline shx_view shx_bytes(const void *data, size_t len) {
    shx_view view;
    view.data = (const char *)data;
    view.len = len;
    return view;
}

#ifdef __cplusplus
}  // extern "C"
#endif
