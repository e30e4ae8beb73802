"""Runs shell commands through the library shell-executor: bounded output, one first cause, the whole process range.

    import shell_executor as shx

    with shx.Service() as service, shx.Bash(service) as bash:
        result = bash.run("echo out; echo err >&2; exit 3", timeout=10)
        print(result.exit_code, result.stdout.text, result.stderr.text)

        with bash.start("echo ready; sleep 1000", on_expiry=shx.OnExpiry.NONE) as job:
            job.wait_output()
            print(job.read().delta)
            job.kill()
            print(job.result().signal_name)

A command that fails, times out or is aborted has a result. What could not be run raises ShellError.

Text can be given as str, bytes or a path. What a command prints comes as str, and also as bytes. Times are seconds;
None is without an end where a call waits, and the default where a command is described.

The service owns what runs: leaving its `with` stops all of it. Everything else can be left to the garbage
collector; closing it early frees memory and stops nothing. Any thread may call anything, also close(): an object
that another thread is using is freed when that thread has left it.

Python 3.8 or later, on Unix; nothing but the standard library. The shared library is the one at the path given to
load(), or in the environment variable SHELL_EXECUTOR_LIB, or where the system looks for `shell_executor`.
"""

import contextlib
import ctypes
import ctypes.util
import enum
import math
import os
import threading
import time
import warnings
from ctypes import POINTER, byref, c_bool, c_char, c_int32, c_size_t, c_ssize_t, c_uint32, c_uint64, c_void_p
from dataclasses import dataclass
from typing import Any, BinaryIO, Callable, Dict, Iterable, List, Mapping, Optional, Tuple, Union

__all__ = [
    "AbortToken", "Backend", "Bash", "Cause", "Enforcement", "Escalation", "Execution", "Mode", "Offer", "OnExpiry",
    "Output", "PIPE", "Policy", "Read", "Result", "Rung", "Sandbox", "SandboxFacts", "Service", "ShellError", "Spec",
    "Stage", "Status", "Stream", "TextRead", "Usage", "load", "version",
]

Text = Union[str, bytes, "os.PathLike[str]", "os.PathLike[bytes]"]

ABI_VERSION = 0
FOREVER = 2**64 - 1
# A wait in C cannot be interrupted by Ctrl-C. So the main thread waits so many seconds at a time.
SLICE = 0.2
PIPE = object()  # For `stdin`: the command reads what is written to Execution.take_stdin().


class Mode(enum.IntEnum):
    READ_ONLY = 0
    WORKSPACE_WRITE = 1
    DANGER_FULL_ACCESS = 2

    def __str__(self) -> str:
        return self.name.lower().replace("_", "-")


class Backend(enum.IntEnum):
    NATIVE = 0
    BWRAP = 1
    LANDLOCK = 2
    SEATBELT = 3


class Enforcement(enum.IntEnum):
    NONE = 0
    FULL = 1
    PARTIAL = 2


class OnExpiry(enum.IntEnum):
    KILL = 0
    OFFER = 1
    NONE = 2


class Stream(enum.IntEnum):
    STDOUT = 1
    STDERR = 2


class Status(enum.IntEnum):
    RUNNING = 0
    COMPLETED = 1
    KILLED = 2


class Cause(enum.IntEnum):
    NONE = 0
    EXIT = 1
    TIMEOUT = 2
    ABORT = 3
    KILL = 4
    DISPOSAL = 5


class Stage(enum.IntEnum):
    NONE = 0
    WORKDIR = 1
    SHELL = 2
    EXEC = 3
    RESOURCES = 4


class ShellError(Exception):
    """Why a call failed. `code` is a stable name, such as SPAWN; `errno` is 0 where the system said no number."""

    def __init__(self, code: str, message: str, stage: Stage, path: str, errno: int, field: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.stage = stage
        self.path = path
        self.errno = errno
        self.field = field


# --- what a command has to tell ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Output:
    """The kept end of one stream."""

    text: str
    data: bytes
    truncated: bool
    total_bytes: int
    spill_path: Optional[str]
    spill_error: str


@dataclass(frozen=True)
class SandboxFacts:
    mode: Mode
    denied: bool
    enforcement: Enforcement
    backend: str
    runner_failed: bool


@dataclass(frozen=True)
class Usage:
    user_seconds: float
    system_seconds: float
    max_rss_upper_bound: int


@dataclass(frozen=True)
class Result:
    """The outcome of one command. `rendered` is all of it as text for a model."""

    exit_code: Optional[int]
    signal: Optional[int]
    signal_name: str
    success: bool
    timed_out: bool
    aborted: bool
    timeout: Optional[float]
    stdout: Output
    stderr: Output
    sandbox: Optional[SandboxFacts]
    status: Status
    cause: Cause
    duration: float
    usage: Optional[Usage]
    pipes_held: bool
    survivors: int
    stdin_truncated: bool
    scrubbed: Tuple[str, ...]
    rendered: str


@dataclass(frozen=True)
class Read:
    """What was new on both streams."""

    delta: str
    lossy: bool
    stdout_spill_path: Optional[str]
    stderr_spill_path: Optional[str]


@dataclass(frozen=True)
class TextRead:
    """The text of one stream from an offset on."""

    text: str
    next_offset: int
    lossy: bool
    spill_path: Optional[str]


@dataclass(frozen=True)
class Policy:
    """What a command may do to files."""

    mode: Mode
    workspace_root: Text
    session: str = ""


@dataclass(frozen=True)
class Escalation:
    """What an approver is asked to grant."""

    command: str
    workdir: str
    current_mode: Mode
    requested_mode: Mode
    workspace_root: str
    justification: str


@dataclass(frozen=True)
class Rung:
    """What became of one backend of a chain."""

    name: str
    chosen: bool
    unavailable: str
    ungoverned: str


# --- the functions ----------------------------------------------------------------------------------------------------


class _View(ctypes.Structure):
    _fields_ = [("data", POINTER(c_char)), ("len", c_size_t)]


_Approve = ctypes.CFUNCTYPE(c_bool, c_void_p, c_void_p)
_OBJECT, _OBJECT_OUT = c_void_p, POINTER(c_void_p)

# What gives a status and takes, after these parameters, where to put an error.
_CALLS = {
    "shx_abort_token_fire": (_OBJECT, POINTER(c_bool)),
    "shx_bash_executor_new": (_OBJECT, _OBJECT, _OBJECT, _OBJECT, _OBJECT_OUT),
    "shx_config_add_inherited_env": (_OBJECT, _View, _View),
    "shx_config_add_scrub": (_OBJECT, _View),
    "shx_config_add_scrub_exempt": (_OBJECT, _View),
    "shx_config_set_answer_window_ms": (_OBJECT, c_uint64),
    "shx_config_set_default_timeout_ms": (_OBJECT, c_uint64),
    "shx_config_set_drain_idle_ms": (_OBJECT, c_uint64),
    "shx_config_set_grace_ms": (_OBJECT, c_uint64),
    "shx_config_set_inherit_nothing": (_OBJECT,),
    "shx_config_set_max_timeout_ms": (_OBJECT, c_uint64),
    "shx_config_set_no_spill": (_OBJECT,),
    "shx_config_set_output_max_bytes": (_OBJECT, c_size_t),
    "shx_config_set_shell": (_OBJECT, _View),
    "shx_config_set_spill_max_bytes": (_OBJECT, c_uint64),
    "shx_config_set_workdir": (_OBJECT, _View),
    "shx_execution_kill": (_OBJECT, POINTER(c_bool)),
    "shx_execution_kill_survivors": (_OBJECT, POINTER(c_bool)),
    "shx_execution_promotion": (_OBJECT, _OBJECT_OUT),
    "shx_execution_read_output": (_OBJECT, _OBJECT_OUT),
    "shx_execution_read_stream": (_OBJECT, c_int32, _OBJECT_OUT),
    "shx_execution_read_text_from": (_OBJECT, c_int32, c_uint64, _OBJECT_OUT),
    "shx_execution_result": (_OBJECT, _OBJECT_OUT),
    "shx_execution_take_stdin": (_OBJECT, POINTER(c_ssize_t)),
    "shx_execution_wait": (_OBJECT, c_uint64, POINTER(c_int32)),
    "shx_execution_wait_output": (_OBJECT, c_uint64, POINTER(c_bool)),
    "shx_execution_wait_range": (_OBJECT, c_uint64, POINTER(c_bool)),
    "shx_executor_execute": (_OBJECT, _OBJECT, _OBJECT_OUT),
    "shx_executor_resolve": (_OBJECT, _OBJECT, _OBJECT_OUT),
    "shx_executor_start": (_OBJECT, _OBJECT, _OBJECT_OUT),
    "shx_promotion_offer_accept": (_OBJECT, POINTER(c_bool)),
    "shx_promotion_offer_decline": (_OBJECT, POINTER(c_bool)),
    "shx_render_result": (_OBJECT, _OBJECT_OUT),
    "shx_request_new": (_View, _OBJECT_OUT),
    "shx_request_remove_env": (_OBJECT, _View),
    "shx_request_set_abort": (_OBJECT, _OBJECT),
    "shx_request_set_backpressure": (_OBJECT, c_bool),
    "shx_request_set_env": (_OBJECT, _View, _View),
    "shx_request_set_managed_env": (_OBJECT, _View, _View),
    "shx_request_set_on_expiry": (_OBJECT, c_int32),
    "shx_request_set_sandbox_policy": (_OBJECT, _OBJECT),
    "shx_request_set_stdin": (_OBJECT, _View),
    "shx_request_set_stdin_piped": (_OBJECT,),
    "shx_request_set_stdout_max_bytes": (_OBJECT, c_size_t),
    "shx_request_set_timeout_ms": (_OBJECT, c_uint64),
    "shx_request_set_workdir": (_OBJECT, _View),
    "shx_sandbox_chain_set_backends": (_OBJECT, POINTER(c_int32), c_size_t),
    "shx_sandbox_chain_set_bwrap": (_OBJECT, _View),
    "shx_sandbox_chain_set_require_full": (_OBJECT, c_bool),
    "shx_sandbox_chain_set_scratch_max_bytes": (_OBJECT, c_uint64),
    "shx_sandbox_chain_set_temp_dir": (_OBJECT, _View),
    "shx_sandbox_policy_new": (c_int32, _View, _View, _OBJECT_OUT),
    "shx_service_config_set_keep_spill": (_OBJECT, c_bool),
    "shx_service_config_set_spill_root": (_OBJECT, _View),
    "shx_service_dispose": (_OBJECT, POINTER(c_size_t), POINTER(c_size_t)),
    "shx_service_new": (_OBJECT, _OBJECT_OUT),
    "shx_service_sandbox_rungs": (_OBJECT, _OBJECT, _OBJECT_OUT),
    "shx_spec_escalate": (_OBJECT, c_int32, _View, _Approve, c_void_p, _OBJECT_OUT),
}

# What gives its value: first its type, then its parameters.
_VALUES = {
    "shx_abort_token_is_fired": (c_bool, _OBJECT),
    "shx_abort_token_new": (_OBJECT,),
    "shx_config_new": (_OBJECT,),
    "shx_error_code": (_View, _OBJECT),
    "shx_error_errno": (c_int32, _OBJECT),
    "shx_error_field": (_View, _OBJECT),
    "shx_error_message": (_View, _OBJECT),
    "shx_error_path": (_View, _OBJECT),
    "shx_error_stage": (c_int32, _OBJECT),
    "shx_escalation_command": (_View, _OBJECT),
    "shx_escalation_current_mode": (c_int32, _OBJECT),
    "shx_escalation_justification": (_View, _OBJECT),
    "shx_escalation_requested_mode": (c_int32, _OBJECT),
    "shx_escalation_workdir": (_View, _OBJECT),
    "shx_escalation_workspace_root": (_View, _OBJECT),
    "shx_execution_exit_code": (c_bool, _OBJECT, POINTER(c_int32)),
    "shx_execution_pid": (c_int32, _OBJECT),
    "shx_execution_sandbox": (_OBJECT, _OBJECT),
    "shx_execution_signal": (c_bool, _OBJECT, POINTER(c_int32)),
    "shx_execution_status": (c_int32, _OBJECT),
    "shx_output_read_lossy": (c_bool, _OBJECT),
    "shx_output_read_next_offset": (c_uint64, _OBJECT),
    "shx_output_read_spill_path": (_View, _OBJECT),
    "shx_output_read_view": (_View, _OBJECT),
    "shx_process_read_delta": (_View, _OBJECT),
    "shx_process_read_lossy": (c_bool, _OBJECT),
    "shx_process_read_stderr_spill_path": (_View, _OBJECT),
    "shx_process_read_stdout_spill_path": (_View, _OBJECT),
    "shx_result_aborted": (c_bool, _OBJECT),
    "shx_result_bytes": (_View, _OBJECT, c_int32),
    "shx_result_cause": (c_int32, _OBJECT),
    "shx_result_duration_us": (c_uint64, _OBJECT),
    "shx_result_exit_code": (c_bool, _OBJECT, POINTER(c_int32)),
    "shx_result_pipes_held": (c_bool, _OBJECT),
    "shx_result_sandbox": (_OBJECT, _OBJECT),
    "shx_result_scrubbed_at": (_View, _OBJECT, c_size_t),
    "shx_result_scrubbed_count": (c_size_t, _OBJECT),
    "shx_result_signal": (c_bool, _OBJECT, POINTER(c_int32)),
    "shx_result_signal_name": (_View, _OBJECT),
    "shx_result_spill_error": (_View, _OBJECT, c_int32),
    "shx_result_spill_path": (_View, _OBJECT, c_int32),
    "shx_result_status": (c_int32, _OBJECT),
    "shx_result_stdin_truncated": (c_bool, _OBJECT),
    "shx_result_success": (c_bool, _OBJECT),
    "shx_result_survivors": (c_size_t, _OBJECT),
    "shx_result_text": (_View, _OBJECT, c_int32),
    "shx_result_timed_out": (c_bool, _OBJECT),
    "shx_result_timeout_ms": (c_bool, _OBJECT, POINTER(c_uint64)),
    "shx_result_total_bytes": (c_uint64, _OBJECT, c_int32),
    "shx_result_truncated": (c_bool, _OBJECT, c_int32),
    "shx_result_usage": (c_bool, _OBJECT, POINTER(c_uint64), POINTER(c_uint64), POINTER(c_uint64)),
    "shx_sandbox_chain_new": (_OBJECT,),
    "shx_sandbox_info_backend": (_View, _OBJECT),
    "shx_sandbox_info_denied": (c_bool, _OBJECT),
    "shx_sandbox_info_enforcement": (c_int32, _OBJECT),
    "shx_sandbox_info_mode": (c_int32, _OBJECT),
    "shx_sandbox_info_runner_failed": (c_bool, _OBJECT),
    "shx_sandbox_rungs_count": (c_size_t, _OBJECT),
    "shx_sandbox_rungs_is_chosen": (c_bool, _OBJECT, c_size_t),
    "shx_sandbox_rungs_name": (_View, _OBJECT, c_size_t),
    "shx_sandbox_rungs_unavailable": (_View, _OBJECT, c_size_t),
    "shx_sandbox_rungs_ungoverned": (_View, _OBJECT, c_size_t),
    "shx_service_config_new": (_OBJECT,),
    "shx_spec_command": (_View, _OBJECT),
    "shx_spec_on_expiry": (c_int32, _OBJECT),
    "shx_spec_sandbox_mode": (c_int32, _OBJECT),
    "shx_spec_timeout_ms": (c_uint64, _OBJECT),
    "shx_spec_workdir": (_View, _OBJECT),
    "shx_text_view": (_View, _OBJECT),
    "shx_version": (ctypes.c_char_p,),
}

_FREES = [
    "shx_abort_token_free", "shx_config_free", "shx_error_free", "shx_execution_free", "shx_executor_free",
    "shx_output_read_free", "shx_process_read_free", "shx_promotion_offer_free", "shx_request_free", "shx_result_free",
    "shx_sandbox_info_free", "shx_sandbox_policy_free", "shx_sandbox_provider_free", "shx_sandbox_rungs_free",
    "shx_service_config_free", "shx_service_free", "shx_spec_free", "shx_text_free",
]

_library: Optional[ctypes.CDLL] = None
_loading = threading.Lock()


def load(path: Optional[Text] = None) -> ctypes.CDLL:
    """Loads the library, once for this process: the first call decides which. Whatever needs it makes that call."""
    global _library
    # Not under the lock: a finalizer can come here in the middle of anything on the same thread.
    if _library is not None:
        return _library
    with _loading:
        if _library is None:
            named = path or os.environ.get("SHELL_EXECUTOR_LIB") or ctypes.util.find_library("shell_executor")
            if not named:
                raise OSError("there is no shared library shell_executor; SHELL_EXECUTOR_LIB can name its file")
            file = os.fsdecode(named)
            library = ctypes.CDLL(file)
            # First of all: another interface may have other functions.
            _declare(library, "shx_abi_version", c_uint32, ())
            if library.shx_abi_version() != ABI_VERSION:
                raise OSError(f"{file} has interface {library.shx_abi_version()}, not {ABI_VERSION}")
            for name, parameters in _CALLS.items():
                _declare(library, name, c_int32, parameters + (_OBJECT_OUT,))
            for name, types in _VALUES.items():
                _declare(library, name, types[0], types[1:])
            for name in _FREES:
                _declare(library, name, None, (_OBJECT,))
            _library = library
        return _library


def version() -> str:
    """The version of the library."""
    return load().shx_version().decode()


def _declare(library: ctypes.CDLL, name: str, result: Any, parameters: Tuple[Any, ...]) -> None:
    function = getattr(library, name)
    function.restype = result
    function.argtypes = parameters


def _call(name: str, *arguments: Any) -> None:
    error = c_void_p()
    status = getattr(load(), name)(*arguments, byref(error))
    if status != 0:
        try:
            raise _shell_error(error)
        finally:
            load().shx_error_free(error)


def _shell_error(error: c_void_p) -> ShellError:
    lib = load()
    return ShellError(
        code=_text(lib.shx_error_code(error)),
        message=_text(lib.shx_error_message(error)),
        stage=Stage(lib.shx_error_stage(error)),
        path=os.fsdecode(_bytes(lib.shx_error_path(error))),
        errno=lib.shx_error_errno(error),
        field=_text(lib.shx_error_field(error)),
    )


@contextlib.contextmanager
def _made(kind: str, name: str, *arguments: Any):
    """The object that a call makes, for as long as it is needed here."""
    made = c_void_p()
    _call(name, *arguments, byref(made))
    try:
        yield made.value
    finally:
        getattr(load(), f"shx_{kind}_free")(made)


def _in(text: Text) -> _View:
    """A view of bytes that live as long as the view: ctypes keeps what a field was set from."""
    raw = os.fsencode(text)
    return _View(ctypes.cast(ctypes.c_char_p(raw), POINTER(c_char)), len(raw))


def _bytes(view: _View) -> bytes:
    return ctypes.string_at(view.data, view.len)


def _text(view: _View) -> str:
    return _bytes(view).decode()


def _path(view: _View) -> Optional[str]:
    return os.fsdecode(_bytes(view)) if view.len else None


def _ms(seconds: Optional[float]) -> int:
    """Milliseconds, rounded up, so that no time becomes none."""
    if seconds is None or seconds == math.inf:
        return FOREVER
    if not seconds >= 0:
        raise ValueError(f"{seconds} seconds are no time to wait")
    return min(math.ceil(seconds * 1000), FOREVER)


def _maybe(function: Any, pointer: int, kind: Any) -> Any:
    """What a function that may have nothing to tell has told."""
    value = kind()
    return value.value if function(pointer, byref(value)) else None


# --- objects ----------------------------------------------------------------------------------------------------------


class _Object:
    """An object of the library, which is freed once: when it is closed, and nobody uses it any more."""

    _kind = ""
    _pointer: Optional[int] = None

    def __init__(self, pointer: Optional[int]) -> None:
        if pointer is None:
            raise MemoryError(f"no {self._kind}")
        # A handler of a signal may use the object that its own thread is just using.
        self._lock = threading.RLock()
        self._users = 0
        self._closed = False
        # Kept here, since a finalizer may run when the module is half gone.
        self._free = getattr(load(), f"shx_{self._kind}_free")
        self._pointer = pointer

    @contextlib.contextmanager
    def _use(self):
        with self._lock:
            if self._closed:
                raise ValueError(f"this {type(self).__name__} has been closed")
            self._users += 1
        try:
            yield self._pointer
        finally:
            self._leave(1)

    def _leave(self, users: int) -> None:
        with self._lock:
            self._users -= users
            if not self._closed or self._users > 0:
                return
            pointer, self._pointer = self._pointer, None
        if pointer is not None:
            self._free(pointer)

    def close(self) -> None:
        """Frees the object, or leaves that to whoever is using it. A second time does nothing."""
        with self._lock:
            self._closed = True
        self._leave(0)

    def __enter__(self):
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __del__(self) -> None:
        if self._pointer is not None:
            self.close()


class AbortToken(_Object):
    """Cuts short the commands that it was given to."""

    _kind = "abort_token"

    def __init__(self) -> None:
        super().__init__(load().shx_abort_token_new())

    def fire(self) -> bool:
        """Whether this call was the one that fired it."""
        first = c_bool()
        with self._use() as token:
            _call("shx_abort_token_fire", token, byref(first))
        return first.value

    @property
    def fired(self) -> bool:
        with self._use() as token:
            return load().shx_abort_token_is_fired(token)


class Service(_Object):
    """Owns all that runs. Closing it stops everything, waits until it is gone, and removes the spill files."""

    _kind = "service"

    def __init__(self, spill_root: Optional[Text] = None, keep_spill: bool = False) -> None:
        lib = load()
        config, service = lib.shx_service_config_new(), c_void_p()
        try:
            if spill_root is not None:
                _call("shx_service_config_set_spill_root", config, _in(spill_root))
            _call("shx_service_config_set_keep_spill", config, keep_spill)
            _call("shx_service_new", config, byref(service))
        finally:
            lib.shx_service_config_free(config)
        super().__init__(service.value)

    def dispose(self) -> Tuple[int, int]:
        """Stops everything. How many commands had to be stopped, and how many processes could not be."""
        stopped, survivors = c_size_t(), c_size_t()
        with self._use() as service:
            _call("shx_service_dispose", service, byref(stopped), byref(survivors))
        return stopped.value, survivors.value

    def __del__(self) -> None:
        if self._pointer is not None:
            warnings.warn("a Service was never closed", ResourceWarning, source=self)
            self.close()


class Sandbox(_Object):
    """What confines commands: the first of this system's backends that works."""

    _kind = "sandbox_provider"

    def __init__(
        self,
        backends: Optional[Iterable[Backend]] = None,
        require_full: bool = False,
        scratch_max_bytes: Optional[int] = None,
        temp_dir: Optional[Text] = None,
        bwrap: Optional[Text] = None,
    ) -> None:
        super().__init__(load().shx_sandbox_chain_new())
        if backends is not None:
            numbers = [int(backend) for backend in backends]
            array = (c_int32 * len(numbers))(*numbers)
            _call("shx_sandbox_chain_set_backends", self._pointer, array, len(numbers))
        _call("shx_sandbox_chain_set_require_full", self._pointer, require_full)
        if scratch_max_bytes is not None:
            _call("shx_sandbox_chain_set_scratch_max_bytes", self._pointer, scratch_max_bytes)
        if temp_dir is not None:
            _call("shx_sandbox_chain_set_temp_dir", self._pointer, _in(temp_dir))
        if bwrap is not None:
            _call("shx_sandbox_chain_set_bwrap", self._pointer, _in(bwrap))

    def rungs(self, service: Service) -> List[Rung]:
        """What became of each backend here. Those that have not been tried are tried now."""
        lib = load()
        with self._use() as chain, service._use() as owner:
            with _made("sandbox_rungs", "shx_service_sandbox_rungs", owner, chain) as rungs:
                return [
                    Rung(
                        name=_text(lib.shx_sandbox_rungs_name(rungs, index)),
                        chosen=lib.shx_sandbox_rungs_is_chosen(rungs, index),
                        unavailable=_text(lib.shx_sandbox_rungs_unavailable(rungs, index)),
                        ungoverned=_text(lib.shx_sandbox_rungs_ungoverned(rungs, index)),
                    )
                    for index in range(lib.shx_sandbox_rungs_count(rungs))
                ]


@contextlib.contextmanager
def _policy(policy: Optional[Policy]):
    if policy is None:
        yield None
        return
    arguments = int(policy.mode), _in(policy.workspace_root), _in(policy.session.encode())
    with _made("sandbox_policy", "shx_sandbox_policy_new", *arguments) as pointer:
        yield pointer


class Spec(_Object):
    """A command with all its terms explicit. Bash.resolve makes it."""

    _kind = "spec"

    @property
    def command(self) -> str:
        with self._use() as spec:
            return os.fsdecode(_bytes(load().shx_spec_command(spec)))

    @property
    def workdir(self) -> str:
        with self._use() as spec:
            return os.fsdecode(_bytes(load().shx_spec_workdir(spec)))

    @property
    def timeout(self) -> float:
        with self._use() as spec:
            return load().shx_spec_timeout_ms(spec) / 1000

    @property
    def on_expiry(self) -> OnExpiry:
        with self._use() as spec:
            return OnExpiry(load().shx_spec_on_expiry(spec))

    @property
    def mode(self) -> Optional[Mode]:
        with self._use() as spec:
            number = load().shx_spec_sandbox_mode(spec)
        return Mode(number) if number >= 0 else None

    def escalate(self, mode: Mode, justification: str, approve: Callable[[Escalation], bool]) -> "Spec":
        """The same call in a wider mode, if `approve` grants it. What it raises comes out here, and grants nothing."""
        raised: List[BaseException] = []

        def ask(_user: Optional[int], escalation: int) -> bool:
            try:
                return bool(approve(_escalation(escalation)))
            except BaseException as exception:  # No exception may go through the library.
                raised.append(exception)
                return False

        # It is called before the call returns and not kept, so it need not live longer than this name.
        callback = _Approve(ask)
        escalated = c_void_p()
        try:
            with self._use() as spec:
                reason = _in(justification.encode())
                _call("shx_spec_escalate", spec, int(mode), reason, callback, None, byref(escalated))
        except ShellError:
            if raised:
                raise raised[0] from None
            raise
        finally:
            raised = []
        return Spec(escalated.value)


def _escalation(pointer: int) -> Escalation:
    lib = load()
    return Escalation(
        command=os.fsdecode(_bytes(lib.shx_escalation_command(pointer))),
        workdir=os.fsdecode(_bytes(lib.shx_escalation_workdir(pointer))),
        current_mode=Mode(lib.shx_escalation_current_mode(pointer)),
        requested_mode=Mode(lib.shx_escalation_requested_mode(pointer)),
        workspace_root=os.fsdecode(_bytes(lib.shx_escalation_workspace_root(pointer))),
        justification=_text(lib.shx_escalation_justification(pointer)),
    )


class Offer(_Object):
    """The offer to keep a command. Closed without an answer, it declines."""

    _kind = "promotion_offer"

    def accept(self) -> bool:
        """Keeps the command. Whether that came in time."""
        return self._answer("shx_promotion_offer_accept")

    def decline(self) -> bool:
        """Stops the command, as a timeout. Whether this did it."""
        return self._answer("shx_promotion_offer_decline")

    def _answer(self, name: str) -> bool:
        did = c_bool()
        with self._use() as offer:
            _call(name, offer, byref(did))
        return did.value


class Execution(_Object):
    """One command, live or settled. Closing it stops nothing."""

    _kind = "execution"

    def __init__(self, pointer: Optional[int], offer_due: Optional[float] = None) -> None:
        super().__init__(pointer)
        self._offer_due = offer_due

    @property
    def status(self) -> Status:
        with self._use() as execution:
            return Status(load().shx_execution_status(execution))

    @property
    def pid(self) -> Optional[int]:
        with self._use() as execution:
            return load().shx_execution_pid(execution) or None

    @property
    def exit_code(self) -> Optional[int]:
        with self._use() as execution:
            return _maybe(load().shx_execution_exit_code, execution, c_int32)

    @property
    def signal(self) -> Optional[int]:
        with self._use() as execution:
            return _maybe(load().shx_execution_signal, execution, c_int32)

    @property
    def sandbox(self) -> Optional[SandboxFacts]:
        """The facts as they are now, also while the command runs."""
        lib = load()
        with self._use() as execution:
            facts = lib.shx_execution_sandbox(execution)
            try:
                return _facts(facts)
            finally:
                lib.shx_sandbox_info_free(facts)

    def wait(self, timeout: Optional[float] = None) -> Status:
        """Waits until the command has settled; Status.RUNNING when the time was over first."""
        with self._use() as execution:
            return Status(_wait("shx_execution_wait", execution, timeout, c_int32))

    def wait_output(self, timeout: Optional[float] = None) -> bool:
        """Waits until there is something new to read (True), the command has settled, or the time is over."""
        with self._use() as execution:
            return _wait("shx_execution_wait_output", execution, timeout, c_bool)

    def wait_range(self, timeout: Optional[float] = None) -> bool:
        """Waits until nothing that the command started is left; False when the time was over first."""
        with self._use() as execution:
            return _wait("shx_execution_wait_range", execution, timeout, c_bool)

    def result(self) -> Result:
        """Waits until the command has settled, and gives its outcome; a second time the same."""
        with self._use() as execution:
            _wait("shx_execution_wait", execution, None, c_int32)
            with _made("result", "shx_execution_result", execution) as result:
                return _result(result)

    def read(self) -> Read:
        """What is new on both streams since the last read."""
        lib = load()
        with self._use() as execution, _made("process_read", "shx_execution_read_output", execution) as read:
            return Read(
                delta=_text(lib.shx_process_read_delta(read)),
                lossy=lib.shx_process_read_lossy(read),
                stdout_spill_path=_path(lib.shx_process_read_stdout_spill_path(read)),
                stderr_spill_path=_path(lib.shx_process_read_stderr_spill_path(read)),
            )

    def read_bytes(self, stream: Stream) -> bytes:
        """What is new on one stream, exactly as it was written. It shares its place with `read`."""
        with self._use() as execution:
            with _made("output_read", "shx_execution_read_stream", execution, int(stream)) as read:
                return _bytes(load().shx_output_read_view(read))

    def read_from(self, stream: Stream, offset: int = 0) -> TextRead:
        """The text of one stream from an offset on. It consumes nothing."""
        lib = load()
        with self._use() as execution:
            arguments = execution, int(stream), offset
            with _made("output_read", "shx_execution_read_text_from", *arguments) as read:
                return TextRead(
                    text=_text(lib.shx_output_read_view(read)),
                    next_offset=lib.shx_output_read_next_offset(read),
                    lossy=lib.shx_output_read_lossy(read),
                    spill_path=_path(lib.shx_output_read_spill_path(read)),
                )

    def kill(self) -> bool:
        """Stops the command and all it started. Whether this call began that. Returns at once."""
        return self._told("shx_execution_kill")

    def kill_survivors(self) -> bool:
        """Stops what a command that has ended left running. Whether there was something. Returns at once."""
        return self._told("shx_execution_kill_survivors")

    def _told(self, name: str) -> bool:
        did = c_bool()
        with self._use() as execution:
            _call(name, execution, byref(did))
        return did.value

    def promotion(self) -> Optional[Offer]:
        """Waits for the deadline of a command with OnExpiry.OFFER; None when it settles before, or has none."""
        if self._offer_due is not None:
            self.wait(max(0.0, self._offer_due - time.monotonic()))
        offer = c_void_p()
        with self._use() as execution:
            _call("shx_execution_promotion", execution, byref(offer))
        return Offer(offer.value) if offer.value is not None else None

    def take_stdin(self) -> Optional[BinaryIO]:
        """The other end of a piped stdin, once. Closing it is the command's end of file."""
        descriptor = c_ssize_t(-1)
        with self._use() as execution:
            _call("shx_execution_take_stdin", execution, byref(descriptor))
        return open(descriptor.value, "wb") if descriptor.value >= 0 else None


def _wait(name: str, execution: int, timeout: Optional[float], kind: Any) -> Any:
    """Waits by the function `name` until that has something to tell, the command cannot bring it, or the time is over."""
    end = math.inf if timeout is None else time.monotonic() + timeout
    outlives = name == "shx_execution_wait_range"  # What a command has left running can go after it has settled.
    while True:
        # Asked before: a command that settles during a wait may have brought something.
        settled = load().shx_execution_status(execution) != Status.RUNNING and not outlives
        left = max(0.0, end - time.monotonic())
        value = kind()
        is_main = threading.current_thread() is threading.main_thread()
        _call(name, execution, _ms(min(left, SLICE) if is_main else left), byref(value))
        if value.value or settled or left == 0:
            return value.value


class Bash(_Object):
    """Runs each command by a fresh `bash -c`. With a sandbox and a policy, each command is confined."""

    _kind = "executor"

    def __init__(
        self,
        service: Service,
        sandbox: Optional[Sandbox] = None,
        policy: Optional[Policy] = None,
        *,
        shell: Optional[Text] = None,
        workdir: Optional[Text] = None,
        default_timeout: Optional[float] = None,
        max_timeout: Optional[float] = None,
        output_max_bytes: Optional[int] = None,
        spill_max_bytes: Optional[int] = None,
        grace: Optional[float] = None,
        drain_idle: Optional[float] = None,
        answer_window: Optional[float] = None,
        scrub: Iterable[str] = (),
        scrub_exempt: Iterable[str] = (),
        inherit: Optional[Mapping[Text, Text]] = None,
    ) -> None:
        """`spill_max_bytes` 0: no files. `inherit`: what commands inherit, instead of this process's environment."""
        lib = load()
        config, executor = lib.shx_config_new(), c_void_p()
        try:
            if shell is not None:
                _call("shx_config_set_shell", config, _in(shell))
            if workdir is not None:
                _call("shx_config_set_workdir", config, _in(workdir))
            if default_timeout is not None:
                _call("shx_config_set_default_timeout_ms", config, _ms(default_timeout))
            if max_timeout is not None:
                _call("shx_config_set_max_timeout_ms", config, _ms(max_timeout))
            if output_max_bytes is not None:
                _call("shx_config_set_output_max_bytes", config, output_max_bytes)
            if spill_max_bytes == 0:
                _call("shx_config_set_no_spill", config)
            elif spill_max_bytes is not None:
                _call("shx_config_set_spill_max_bytes", config, spill_max_bytes)
            if grace is not None:
                _call("shx_config_set_grace_ms", config, _ms(grace))
            if drain_idle is not None:
                _call("shx_config_set_drain_idle_ms", config, _ms(drain_idle))
            if answer_window is not None:
                _call("shx_config_set_answer_window_ms", config, _ms(answer_window))
            for name in scrub:
                _call("shx_config_add_scrub", config, _in(name.encode()))
            for name in scrub_exempt:
                _call("shx_config_add_scrub_exempt", config, _in(name.encode()))
            if inherit is not None:
                _call("shx_config_set_inherit_nothing", config)
                for key, value in inherit.items():
                    _call("shx_config_add_inherited_env", config, _in(key), _in(value))
            with contextlib.ExitStack() as stack:
                owner = stack.enter_context(service._use())
                provider = stack.enter_context(sandbox._use()) if sandbox is not None else None
                terms = stack.enter_context(_policy(policy))
                _call("shx_bash_executor_new", owner, config, provider, terms, byref(executor))
        finally:
            lib.shx_config_free(config)
        super().__init__(executor.value)

    def resolve(
        self,
        command: Text,
        *,
        workdir: Optional[Text] = None,
        timeout: Optional[float] = None,
        on_expiry: OnExpiry = OnExpiry.KILL,
        stdin: Any = None,
        env: Optional[Mapping[Text, Optional[Text]]] = None,
        managed_env: Optional[Mapping[Text, Text]] = None,
        abort: Optional[AbortToken] = None,
        policy: Optional[Policy] = None,
        stdout_max_bytes: Optional[int] = None,
        backpressure: bool = False,
    ) -> Spec:
        """What would be run. `stdin` is text, or PIPE; a variable in `env` that is None is taken away."""
        spec = c_void_p()
        with contextlib.ExitStack() as stack:
            executor = stack.enter_context(self._use())
            request = stack.enter_context(_made("request", "shx_request_new", _in(command)))
            if workdir is not None:
                _call("shx_request_set_workdir", request, _in(workdir))
            if timeout is not None:
                _call("shx_request_set_timeout_ms", request, _ms(timeout))
            _call("shx_request_set_on_expiry", request, int(on_expiry))
            if stdin is PIPE:
                _call("shx_request_set_stdin_piped", request)
            elif stdin is not None:
                _call("shx_request_set_stdin", request, _in(stdin))
            for key, value in (env or {}).items():
                if value is None:
                    _call("shx_request_remove_env", request, _in(key))
                else:
                    _call("shx_request_set_env", request, _in(key), _in(value))
            for key, value in (managed_env or {}).items():
                _call("shx_request_set_managed_env", request, _in(key), _in(value))
            if abort is not None:
                _call("shx_request_set_abort", request, stack.enter_context(abort._use()))
            if policy is not None:
                _call("shx_request_set_sandbox_policy", request, stack.enter_context(_policy(policy)))
            if stdout_max_bytes is not None:
                _call("shx_request_set_stdout_max_bytes", request, stdout_max_bytes)
            _call("shx_request_set_backpressure", request, backpressure)
            _call("shx_executor_resolve", executor, request, byref(spec))
        return Spec(spec.value)

    def run(self, command: Union[Text, Spec], **terms: Any) -> Result:
        """Runs a command to its end. The terms are those of `resolve`. An exception, such as Ctrl-C, stops it."""
        with self._begin("shx_executor_execute", command, terms) as execution:
            try:
                return execution.result()
            except BaseException:
                execution.kill()
                raise

    def start(self, command: Union[Text, Spec], **terms: Any) -> Execution:
        """Starts a command, and waits until its process exists. The terms are those of `resolve`."""
        return self._begin("shx_executor_start", command, terms)

    def _begin(self, name: str, command: Union[Text, Spec], terms: Dict[str, Any]) -> Execution:
        if not isinstance(command, Spec):
            with self.resolve(command, **terms) as spec:
                return self._begin(name, spec, {})
        if terms:
            raise TypeError("a Spec has its terms already")
        due = time.monotonic() + command.timeout if command.on_expiry is OnExpiry.OFFER else None
        made = c_void_p()
        with self._use() as executor, command._use() as spec:
            _call(name, executor, spec, byref(made))
        return Execution(made.value, due)


# --- results ----------------------------------------------------------------------------------------------------------


def _facts(pointer: Optional[int]) -> Optional[SandboxFacts]:
    if pointer is None:
        return None
    lib = load()
    return SandboxFacts(
        mode=Mode(lib.shx_sandbox_info_mode(pointer)),
        denied=lib.shx_sandbox_info_denied(pointer),
        enforcement=Enforcement(lib.shx_sandbox_info_enforcement(pointer)),
        backend=_text(lib.shx_sandbox_info_backend(pointer)),
        runner_failed=lib.shx_sandbox_info_runner_failed(pointer),
    )


def _output(result: int, stream: Stream) -> Output:
    lib = load()
    return Output(
        text=_text(lib.shx_result_text(result, stream)),
        data=_bytes(lib.shx_result_bytes(result, stream)),
        truncated=lib.shx_result_truncated(result, stream),
        total_bytes=lib.shx_result_total_bytes(result, stream),
        spill_path=_path(lib.shx_result_spill_path(result, stream)),
        spill_error=_text(lib.shx_result_spill_error(result, stream)),
    )


def _result(result: int) -> Result:
    lib = load()
    timeout = _maybe(lib.shx_result_timeout_ms, result, c_uint64)
    user, system, rss = c_uint64(), c_uint64(), c_uint64()
    known = lib.shx_result_usage(result, byref(user), byref(system), byref(rss))
    count = lib.shx_result_scrubbed_count(result)
    with _made("text", "shx_render_result", result) as text:
        rendered = _text(lib.shx_text_view(text))
    return Result(
        exit_code=_maybe(lib.shx_result_exit_code, result, c_int32),
        signal=_maybe(lib.shx_result_signal, result, c_int32),
        signal_name=_text(lib.shx_result_signal_name(result)),
        success=lib.shx_result_success(result),
        timed_out=lib.shx_result_timed_out(result),
        aborted=lib.shx_result_aborted(result),
        timeout=timeout / 1000 if timeout is not None else None,
        stdout=_output(result, Stream.STDOUT),
        stderr=_output(result, Stream.STDERR),
        sandbox=_facts(lib.shx_result_sandbox(result)),
        status=Status(lib.shx_result_status(result)),
        cause=Cause(lib.shx_result_cause(result)),
        duration=lib.shx_result_duration_us(result) / 1e6,
        usage=Usage(user.value / 1e6, system.value / 1e6, rss.value) if known else None,
        pipes_held=lib.shx_result_pipes_held(result),
        survivors=lib.shx_result_survivors(result),
        stdin_truncated=lib.shx_result_stdin_truncated(result),
        scrubbed=tuple(os.fsdecode(_bytes(lib.shx_result_scrubbed_at(result, index))) for index in range(count)),
        rendered=rendered,
    )
