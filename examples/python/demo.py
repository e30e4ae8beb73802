"""What a host does with shell_executor.py: a failing command, a job, one kept past its deadline, a sandbox, errors.

    cargo build --release --features capi
    SHELL_EXECUTOR_LIB=target/release/libshell_executor.so python3 examples/python/demo.py [SECONDS]

SECONDS is the deadline that is meant to pass: 1, unless it is given.
"""

import sys
import tempfile

import shell_executor as shx


def foreground(bash: shx.Bash) -> None:
    result = bash.run(b"echo out; echo err >&2; read line; echo \"read $line\"; exit 3", stdin="a line\n")
    print(f"foreground: exit code {result.exit_code}, success {result.success}, timed out {result.timed_out}")
    print(f"foreground: {result.stdout.text!r}, {result.stderr.data!r}")
    print(f"foreground: {result.rendered!r}")


def background(bash: shx.Bash) -> None:
    # A job has no deadline. It waits until it is told to go on, so nothing here depends on time.
    command = "echo ready; echo careful >&2; read word; echo \"got $word\"; exec sleep 1000"
    with bash.start(command, on_expiry=shx.OnExpiry.NONE, stdin=shx.PIPE) as job:
        print(f"background: {read_until(job, 'ready', 'careful')}")
        with job.take_stdin() as stdin:
            stdin.write(b"news\n")
        print(f"background: {read_until(job, 'got news')}")
        # Another reader starts wherever it likes, and takes nothing from the one above.
        print(f"background: from offset 6: {job.read_from(shx.Stream.STDOUT, 6).text!r}")
        print(f"background: killed by this call {job.kill()}, by the next {job.kill()}")
        result = job.result()
        print(f"background: {result.status.name}, {result.signal_name}, cause {result.cause.name}")


def read_until(job: shx.Execution, *words: str) -> str:
    text = ""
    while not all(word in text for word in words) and job.wait_output():
        text += job.read().delta
    return ", ".join(sorted(line for line in text.splitlines() if line != "[stderr]"))


def promotion(bash: shx.Bash, deadline: float) -> None:
    command = "echo working; read word; echo \"done: $word\""
    with bash.start(command, timeout=deadline, on_expiry=shx.OnExpiry.OFFER, stdin=shx.PIPE) as job:
        offer = job.promotion()
        if offer is None:
            print("promotion: ended in time")
            return
        with offer:
            print(f"promotion: kept {offer.accept()}")
        with job.take_stdin() as stdin:
            stdin.write(b"late\n")
        result = job.result()
        print(f"promotion: exit code {result.exit_code}, timed out {result.timed_out}, {result.stdout.text!r}")


def sandbox(service: shx.Service, workspace: str) -> None:
    policy = shx.Policy(shx.Mode.READ_ONLY, workspace)
    with shx.Sandbox() as chain, shx.Bash(service, chain, policy, workdir=workspace) as bash:
        if not any(rung.chosen for rung in chain.rungs(service)):
            print("sandbox: nothing here can confine")
            return
        with bash.resolve("echo text >note && cat note") as spec:
            show(bash.run(spec))

            def approve(escalation: shx.Escalation) -> bool:
                print(f"sandbox: asked for {escalation.requested_mode}, because {escalation.justification}")
                return escalation.current_mode is shx.Mode.READ_ONLY

            with spec.escalate(shx.Mode.WORKSPACE_WRITE, "it makes a file", approve) as wider:
                show(bash.run(wider))
            try:
                spec.escalate(shx.Mode.DANGER_FULL_ACCESS, "it wants all", lambda escalation: False)
            except shx.ShellError as error:
                print(f"sandbox: {error.code}")


def show(result: shx.Result) -> None:
    facts = result.sandbox
    assert facts is not None  # Always there, when the executor confines.
    print(f"sandbox: {facts.mode}, {facts.enforcement.name} by {facts.backend}, denied {facts.denied}")
    print(f"sandbox: exit code {result.exit_code}, {result.stdout.text!r}")


def errors(service: shx.Service, bash: shx.Bash) -> None:
    token = shx.AbortToken()
    token.fire()
    with shx.Sandbox([shx.Backend.SEATBELT]) as chain:
        elsewhere = shx.Bash(service, chain, shx.Policy(shx.Mode.READ_ONLY, "/"))
        for name, attempt in [
            ("directory", lambda: bash.run("true", workdir="/nonexistent")),
            ("request", lambda: bash.run("true", env={"A=B": "c"})),
            ("token", lambda: bash.run("true", abort=token)),
            ("sandbox", lambda: elsewhere.run("true")),
        ]:
            try:
                attempt()
            except shx.ShellError as error:
                place = f"{error.stage.name}, {error.path!r}, {error.errno}, {error.field!r}"
                print(f"error: {name}: {error.code}, {place}")


def main() -> None:
    deadline = float(sys.argv[1]) if len(sys.argv) > 1 else 1.0
    with tempfile.TemporaryDirectory() as workspace, shx.Service() as service:
        with shx.Bash(service, answer_window=60) as bash:
            foreground(bash)
            background(bash)
            promotion(bash, deadline)
            sandbox(service, workspace)
            errors(service, bash)
            bash.start("exec sleep 1000", on_expiry=shx.OnExpiry.NONE).close()  # Stops nothing; the service does.
        print("disposed: {} stopped, {} survived".format(*service.dispose()))


if __name__ == "__main__":
    main()
