//! Names of threads, as profilers, `top -H` and `/proc` show them: `shard-0`, `http-0`, `log`, `checkpoint`, `merge` and so on.

use std::ffi::CString;

/// Names the current thread, where a library has started it. The system keeps the first 15 bytes.
pub fn name_current(name: &str) {
    #[cfg(target_os = "linux")]
    if let Ok(name) = CString::new(name) {
        // A thread without its name does its work all the same.
        let _ = rustix::thread::set_name(&name);
    }
}
