//! What tries to get out of a sandbox: each attempt a system call, each outcome a line `NAME ok` or `NAME ERRNO`.
//!
//! Usage: `test-breakout OUTSIDE INSIDE HOST HELD VICTIM`. `OUTSIDE` is a directory that may not be changed, `INSIDE` one
//! that may, `HOST` the process that started all this, `HELD` a descriptor of it that is open for writing, and `VICTIM` a
//! process of the same user outside. What really happened is for the host to look at.
#![allow(unsafe_code)]

use libc::{AT_FDCWD, c_long, pid_t};
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

type Outcome = Result<usize, i32>;

/// One system call; its number or its errno.
fn sys(number: c_long, arguments: &[usize]) -> Outcome {
    let at = |place: usize| arguments.get(place).copied().unwrap_or(0);
    // SAFETY: every pointer among the arguments is that of a value its caller holds, of the kind that the call takes.
    let result = unsafe { libc::syscall(number, at(0), at(1), at(2), at(3), at(4), at(5)) };
    usize::try_from(result).map_err(|_| std::io::Error::last_os_error().raw_os_error().unwrap_or(0))
}

const HERE: usize = AT_FDCWD as isize as usize;

struct Text(CString);

impl Text {
    fn of(path: impl AsRef<Path>) -> Text {
        Text(CString::new(path.as_ref().as_os_str().as_bytes()).expect("no NUL"))
    }

    fn at(&self) -> usize {
        self.0.as_ptr() as usize
    }
}

fn open(path: impl AsRef<Path>, flags: i32) -> Outcome {
    sys(libc::SYS_openat, &[HERE, Text::of(path).at(), (flags | libc::O_CLOEXEC) as usize, 0o644])
}

/// Opens for writing, and writes.
fn write(path: impl AsRef<Path>, flags: i32) -> Outcome {
    let file = open(path, flags | libc::O_WRONLY)?;
    let done = sys(libc::SYS_write, &[file, b"BROKEN".as_ptr() as usize, 6]);
    sys(libc::SYS_close, &[file])?;
    done
}

fn make_node(path: impl AsRef<Path>, mode: u32, device: (u32, u32)) -> Outcome {
    let device = libc::makedev(device.0, device.1);
    sys(libc::SYS_mknodat, &[HERE, Text::of(path).at(), mode as usize, device as usize])
}

fn rename(from: impl AsRef<Path>, to: impl AsRef<Path>, flags: u32) -> Outcome {
    let (from, to) = (Text::of(from), Text::of(to));
    sys(libc::SYS_renameat2, &[HERE, from.at(), HERE, to.at(), flags as usize])
}

fn link(from: impl AsRef<Path>, to: impl AsRef<Path>) -> Outcome {
    sys(libc::SYS_linkat, &[HERE, Text::of(from).at(), HERE, Text::of(to).at(), 0])
}

fn mount(kind: &str, from: &Path, onto: &Path, flags: u64) -> Outcome {
    let (kind, from, onto) = (Text::of(kind), Text::of(from), Text::of(onto));
    sys(libc::SYS_mount, &[from.at(), onto.at(), kind.at(), flags as usize, 0])
}

/// Takes "read-only" from every mount there is, and writes.
fn clear_read_only(file: &Path) -> Outcome {
    const AT_RECURSIVE: usize = 0x8000;
    let clear = [0_u64, 1, 0, 0];
    sys(libc::SYS_mount_setattr, &[HERE, Text::of("/").at(), AT_RECURSIVE, clear.as_ptr() as usize, 32])?;
    change_mode(file)
}

fn change_mode(file: &Path) -> Outcome {
    sys(libc::SYS_fchmodat, &[HERE, Text::of(file).at(), 0o600])
}

/// Runs an attempt that changes this process in another one.
fn aside(attempt: impl FnOnce() -> Outcome) -> Outcome {
    // SAFETY: this process has one thread.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let errno = attempt().err().unwrap_or(0);
        // SAFETY: ends the child at once.
        unsafe { libc::_exit(errno) };
    }
    let mut status = 0;
    sys(libc::SYS_wait4, &[child as usize, &raw mut status as usize])?;
    match libc::WEXITSTATUS(status) {
        0 if libc::WIFEXITED(status) => Ok(0),
        errno => Err(errno),
    }
}

/// In namespaces of its own, where it is root.
fn in_namespaces(attempt: impl FnOnce() -> Outcome) -> Outcome {
    aside(|| {
        sys(libc::SYS_unshare, &[(libc::CLONE_NEWUSER | libc::CLONE_NEWNS) as usize])?;
        attempt()
    })
}

/// In a mount namespace of its own, by whatever privilege there is.
fn in_mount_namespace(attempt: impl FnOnce() -> Outcome) -> Outcome {
    aside(|| {
        sys(libc::SYS_unshare, &[libc::CLONE_NEWNS as usize])?;
        attempt()
    })
}

/// By a handle, which leads to a file past every mount and name.
fn by_handle(place: &Path, file: &Path) -> Outcome {
    let mut handle = [0_u32; 34];
    handle[0] = 128;
    let mut mount = 0_i32;
    let place_of = (&raw mut handle) as usize;
    sys(libc::SYS_name_to_handle_at, &[HERE, Text::of(file).at(), place_of, &raw mut mount as usize, 0])?;
    let mount = open(place, libc::O_RDONLY | libc::O_DIRECTORY)?;
    let opened = sys(libc::SYS_open_by_handle_at, &[mount, place_of, libc::O_RDONLY as usize])?;
    sys(libc::SYS_fchmod, &[opened, 0o600])
}

fn connect_by_name(path: &Path) -> Outcome {
    let mut address = [0_u8; 110];
    address[..2].copy_from_slice(&(libc::AF_UNIX as u16).to_ne_bytes());
    let bytes = path.as_os_str().as_bytes();
    if bytes.len() > 100 {
        return Err(libc::ENAMETOOLONG);
    }
    address[2..2 + bytes.len()].copy_from_slice(bytes);
    let socket = sys(libc::SYS_socket, &[libc::AF_UNIX as usize, libc::SOCK_STREAM as usize, 0])?;
    sys(libc::SYS_bind, &[socket, address.as_ptr() as usize, 2 + bytes.len() + 1])
}

fn write_memory(victim: pid_t) -> Outcome {
    let bytes = [0_u8; 8];
    let local = [bytes.as_ptr() as usize, 8];
    let remote = [0x1000_usize, 8];
    let (local, remote) = (local.as_ptr() as usize, remote.as_ptr() as usize);
    match sys(libc::SYS_process_vm_writev, &[victim as usize, local, 1, remote, 1, 0]) {
        // It was let in, and there is no memory at that address.
        Err(libc::EFAULT) => Ok(0),
        done => done,
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, outside, inside, host, held, victim] = &arguments[..] else { panic!("five arguments") };
    let (out, ins) = (PathBuf::from(outside), PathBuf::from(inside));
    let (file, mine) = (out.join("file"), ins.join("mine"));
    let host_number: usize = host.parse().expect("a process");
    let victim: pid_t = victim.parse().expect("a process");
    let held_number: usize = held.parse().expect("a descriptor");
    let tell = |name: &str, outcome: Outcome| match outcome {
        Ok(_) => println!("{name} ok"),
        Err(errno) => println!("{name} {errno}"),
    };
    let user = sys(libc::SYS_geteuid, &[]).unwrap_or(0);
    let now = [[1_usize, 0], [1, 0]];

    // Inside first: what may be done has to work where it may.
    tell("in.create", write(&mine, libc::O_CREAT));
    tell("in.truncate", sys(libc::SYS_truncate, &[Text::of(&mine).at(), 1]));
    tell("in.append", write(&mine, libc::O_APPEND));
    tell("in.mkdir", sys(libc::SYS_mkdirat, &[HERE, Text::of(ins.join("dir")).at(), 0o755]));
    tell("in.move", rename(&mine, ins.join("dir/mine"), 0));
    tell("in.move-back", rename(ins.join("dir/mine"), &mine, 0));
    tell("in.link", link(&mine, ins.join("dir/link")));
    tell("in.rmdir", sys(libc::SYS_unlinkat, &[HERE, Text::of(ins.join("dir/link")).at(), 0]));
    tell("in.chmod", change_mode(&mine));
    tell("in.chown", sys(libc::SYS_fchownat, &[HERE, Text::of(&mine).at(), user, usize::MAX, 0]));
    tell("in.utimes", sys(libc::SYS_utimensat, &[HERE, Text::of(&mine).at(), now.as_ptr() as usize, 0]));
    tell("in.fifo", make_node(ins.join("fifo"), libc::S_IFIFO | 0o644, (0, 0)));
    tell("in.socket", connect_by_name(&ins.join("s")));
    tell("in.symlink", {
        let (to, at) = (Text::of(&file), Text::of(ins.join("symlink")));
        sys(libc::SYS_symlinkat, &[to.at(), HERE, at.at()])
    });

    // Contents and names.
    tell("create", write(out.join("new"), libc::O_CREAT));
    tell("write", write(&file, 0));
    tell("open-truncating", write(&file, libc::O_TRUNC));
    tell("append", write(&file, libc::O_APPEND));
    tell("truncate", sys(libc::SYS_truncate, &[Text::of(&file).at(), 1]));
    tell("rename-in", rename(&file, ins.join("taken"), 0));
    tell("rename-out", rename(&mine, out.join("given"), 0));
    tell("exchange", rename(&mine, &file, libc::RENAME_EXCHANGE));
    tell("rename-over", rename(&mine, &file, 0));
    tell("link-in", link(&file, ins.join("linked")).and_then(|_| write(ins.join("linked"), 0)));
    tell("link-out", link(&mine, out.join("linked")));
    tell("write-by-symlink", write(ins.join("symlink"), 0));
    tell("symlink-out", {
        let (to, at) = (Text::of("/"), Text::of(out.join("symlink")));
        sys(libc::SYS_symlinkat, &[to.at(), HERE, at.at()])
    });
    tell("unlink", sys(libc::SYS_unlinkat, &[HERE, Text::of(out.join("second")).at(), 0]));
    tell("mkdir", sys(libc::SYS_mkdirat, &[HERE, Text::of(out.join("made")).at(), 0o755]));
    let remove_dir = libc::AT_REMOVEDIR as usize;
    tell("rmdir", sys(libc::SYS_unlinkat, &[HERE, Text::of(out.join("dir")).at(), remove_dir]));
    tell("fifo", make_node(out.join("fifo"), libc::S_IFIFO | 0o644, (0, 0)));
    tell("socket", connect_by_name(&out.join("s")));
    tell("temporary", write(&out, libc::O_TMPFILE));
    tell("device-outside", make_node(out.join("null"), libc::S_IFCHR | 0o666, (1, 3)));
    tell("device-inside", make_node(ins.join("null"), libc::S_IFCHR | 0o666, (1, 3)));
    tell("disk-inside", make_node(ins.join("disk"), libc::S_IFBLK | 0o666, (7, 0)));
    tell("open-a-device-inside", write(ins.join("node"), 0));
    tell("create-in-dev", write("/dev/shell-executor-test", libc::O_CREAT));
    tell("kernel-setting", open("/proc/sys/kernel/core_pattern", libc::O_WRONLY));
    tell("accounting", sys(libc::SYS_acct, &[Text::of(&file).at()]));

    // Metadata.
    tell("chmod", change_mode(&file));
    tell("chown", sys(libc::SYS_fchownat, &[HERE, Text::of(&file).at(), user, usize::MAX, 0]));
    tell("utimes", sys(libc::SYS_utimensat, &[HERE, Text::of(&file).at(), now.as_ptr() as usize, 0]));
    // Of a device, to what it is: no harm where it is not stopped.
    if let Ok(device) = std::fs::metadata("/dev/full") {
        let (at, mode) = (Text::of("/dev/full"), device.mode() as usize & 0o7777);
        tell("chmod-device", sys(libc::SYS_fchmodat, &[HERE, at.at(), mode]));
        let (owner, group) = (device.uid() as usize, device.gid() as usize);
        tell("chown-device", sys(libc::SYS_fchownat, &[HERE, at.at(), owner, group, 0]));
        let times = [device.atime(), device.atime_nsec(), device.mtime(), device.mtime_nsec()];
        tell("utimes-device", sys(libc::SYS_utimensat, &[HERE, at.at(), times.as_ptr() as usize, 0]));
    }
    tell("setxattr", {
        let (at, name) = (Text::of(&file), Text::of("user.broken"));
        sys(libc::SYS_setxattr, &[at.at(), name.at(), b"x".as_ptr() as usize, 1, 0])
    });
    tell(
        "chmod-by-descriptor",
        open(&file, libc::O_RDONLY).and_then(|fd| sys(libc::SYS_fchmod, &[fd, 0o600])),
    );
    tell("chmod-by-handle", by_handle(&ins, &file));

    // Through others.
    let host_root = PathBuf::from(format!("/proc/{host}/root"));
    let through_root = host_root.join(file.strip_prefix("/").expect("an absolute path"));
    tell("write-by-root", write(&through_root, 0));
    tell("chmod-by-root", change_mode(&through_root));
    tell("write-by-descriptor", write(format!("/proc/{host}/fd/{held}"), 0));
    tell("write-by-workdir", write(format!("/proc/{host}/cwd/shell-executor-test"), libc::O_CREAT));
    tell("read-environment", open(format!("/proc/{host}/environ"), libc::O_RDONLY));
    tell("open-memory", open(format!("/proc/{host}/mem"), libc::O_RDWR));
    tell("write-memory", write_memory(victim));
    tell("trace", sys(libc::SYS_ptrace, &[libc::PTRACE_ATTACH as usize, victim as usize, 0, 0]));
    tell("take-descriptor", {
        let process = sys(libc::SYS_pidfd_open, &[host_number, 0]);
        process
            .and_then(|process| sys(libc::SYS_pidfd_getfd, &[process, held_number, 0]))
            .and_then(|fd| sys(libc::SYS_write, &[fd, b"BROKEN".as_ptr() as usize, 6]))
    });
    let keep = (3..256).filter(|&fd| sys(libc::SYS_write, &[fd, b"BROKEN".as_ptr() as usize, 6]).is_ok());
    tell("inherited", if keep.count() > 0 { Ok(0) } else { Err(libc::EBADF) });

    // Round the mounts.
    let bind = libc::MS_BIND;
    tell("mount-tmpfs", aside(|| mount("tmpfs", Path::new("t"), &out, 0)));
    tell("bind", aside(|| mount("", &out, &ins.join("dir"), bind)));
    tell("remount", aside(|| mount("", Path::new(""), Path::new("/"), bind | libc::MS_REMOUNT)));
    tell("umount", aside(|| sys(libc::SYS_umount2, &[Text::of("/proc").at(), libc::MNT_DETACH as usize])));
    tell("clear-read-only", aside(|| clear_read_only(&file)));
    tell("clear-in-namespace", in_mount_namespace(|| clear_read_only(&file)));
    tell("clear-in-user-namespace", in_namespaces(|| clear_read_only(&file)));
    tell(
        "bind-in-user-namespace",
        in_namespaces(|| {
            mount("", &out, &ins.join("dir"), bind)?;
            change_mode(&ins.join("dir/file"))
        }),
    );
    tell(
        "remount-in-user-namespace",
        in_namespaces(|| {
            mount("", Path::new(""), Path::new("/"), bind | libc::MS_REMOUNT)?;
            change_mode(&file)
        }),
    );
    tell(
        "enter-namespace",
        aside(|| {
            let namespace = open(format!("/proc/{host}/ns/mnt"), libc::O_RDONLY)?;
            sys(libc::SYS_setns, &[namespace, libc::CLONE_NEWNS as usize])?;
            change_mode(&file)
        }),
    );
    tell(
        "enter-by-descriptor",
        aside(|| {
            let process = sys(libc::SYS_pidfd_open, &[host_number, 0])?;
            sys(libc::SYS_setns, &[process, libc::CLONE_NEWNS as usize])?;
            change_mode(&file)
        }),
    );
}
