//! Versions: of the library, and of this interface.

use std::ffi::c_char;

/// The number of this interface. It changes when a function, type or constant of an earlier header is removed or changes
/// its meaning or form; what is added does not change it. A program compares it with `shx_abi_version`, if it loads the
/// library by itself; the name of the shared library as `cargo cinstall` installs it (`libshell_executor.so.0`) has it as
/// well.
pub const SHX_ABI_VERSION: u32 = 0;

/// The version of the library, such as `0.1.0`, as text that ends in a NUL. Lives as long as the program.
#[unsafe(no_mangle)]
pub extern "C" fn shx_version() -> *const c_char {
    const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    VERSION.as_ptr().cast()
}

/// The number of the interface that the library has; see `SHX_ABI_VERSION` for that of the header.
#[unsafe(no_mangle)]
pub extern "C" fn shx_abi_version() -> u32 {
    SHX_ABI_VERSION
}
