"""What a user of examples/python/shell_executor.py may do to it. Each part says its name when it has held."""

import fcntl
import gc
import os
import signal
import threading
import time
import weakref

import shell_executor as shx

NONE = shx.OnExpiry.NONE


def ctrl_c_stops_the_command(service, bash):
    # The command interrupts us when it runs, so it is surely being waited for, or about to be.
    try:
        bash.run(f"trap 'echo told; exit' TERM; kill -INT {os.getpid()}; sleep 1000 & wait")
    except KeyboardInterrupt:
        return
    raise AssertionError("Ctrl-C was lost")


def what_is_closed_is_freed_by_its_last_user(service, bash):
    job = bash.start("read line", on_expiry=NONE, stdin=shx.PIPE)
    results = []
    waiter = threading.Thread(target=lambda: results.append(job.result()))
    waiter.start()
    stdin = job.take_stdin()
    while job._users == 0:  # Until the other thread is inside.
        time.sleep(0.001)
    job.close()
    job.close()
    try:
        job.kill()
    except ValueError:
        pass  # Closed is closed, also while it is still being used.
    else:
        raise AssertionError("a closed execution was used")
    stdin.close()
    waiter.join()
    assert [result.exit_code for result in results] == [1], results
    assert job._pointer is None


def what_an_approver_raises_comes_out(service, bash):
    class Refused(Exception):
        pass

    def approve(escalation):
        gc.collect()
        raise Refused(escalation.command)

    with shx.Sandbox() as chain, shx.Bash(service, chain, shx.Policy(shx.Mode.READ_ONLY, "/")) as confined:
        with confined.resolve("true") as spec:
            try:
                spec.escalate(shx.Mode.DANGER_FULL_ACCESS, "to see", approve)
            except Refused as refused:
                assert refused.args == ("true",)
            else:
                raise AssertionError("it was lost")
            with spec.escalate(shx.Mode.DANGER_FULL_ACCESS, "to see", lambda _: True) as wider:
                assert wider.mode is shx.Mode.DANGER_FULL_ACCESS
                assert confined.run(wider).sandbox.mode is shx.Mode.DANGER_FULL_ACCESS


def bytes_go_through_unchanged(service, bash):
    data = bytes(range(256)) * 300
    result = bash.run("cat", stdin=data, env={b"NAME": b"\xff", "HOME": None})
    assert result.stdout.truncated and data.endswith(result.stdout.data)
    with open(result.stdout.spill_path, "rb") as spilled:
        assert spilled.read() == data
    assert bash.run("printf %s \"$NAME\" ${HOME-none}", env={b"NAME": b"\xff", "HOME": None}).stdout.data == b"\xffnone"


def nothing_holds_what_is_dropped(service, bash):
    job = bash.start("read line", on_expiry=NONE, stdin=shx.PIPE)
    stdin = job.take_stdin()
    assert fcntl.fcntl(stdin, fcntl.F_GETFD) & fcntl.FD_CLOEXEC
    gone = weakref.ref(job)
    del job
    gc.collect()
    assert gone() is None
    stdin.close()


def an_abort_is_a_result_and_then_an_error(service, bash):
    with shx.AbortToken() as token, bash.start("echo go; read line", stdin=shx.PIPE, abort=token) as job:
        assert job.wait_output() and not token.fired
        assert token.fire() and not token.fire() and token.fired
        assert job.result().aborted and job.status is shx.Status.KILLED
        try:
            bash.start("true", abort=token)
        except shx.ShellError as error:
            assert error.code == "ABORTED"
        else:
            raise AssertionError("it was started")


def times_are_checked(service, bash):
    for bad in -1, float("nan"):
        try:
            bash.resolve("true", timeout=bad)
        except ValueError:
            continue
        raise AssertionError(bad)
    with bash.resolve("true", timeout=float("inf")) as spec:
        assert spec.timeout == 600
    with bash.start("read line", on_expiry=NONE, stdin=shx.PIPE) as job:
        assert job.wait(0) is shx.Status.RUNNING and not job.wait_output(0.01) and not job.wait_range(0.01)
        job.kill()
        assert job.wait_range() and job.promotion() is None


def main():
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with shx.Service() as service, shx.Bash(service) as bash:
        for part in [
            ctrl_c_stops_the_command,
            what_is_closed_is_freed_by_its_last_user,
            what_an_approver_raises_comes_out,
            bytes_go_through_unchanged,
            nothing_holds_what_is_dropped,
            an_abort_is_a_result_and_then_an_error,
            times_are_checked,
        ]:
            part(service, bash)
            print(part.__name__)


if __name__ == "__main__":
    main()
