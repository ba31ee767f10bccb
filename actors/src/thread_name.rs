//! Names of threads, as profilers, `top -H` and `/proc` show them: `shard-0`, `http-0`, `log`, `checkpoint`, `merge-ids` and so
//! on.

use std::ffi::CString;

/// Names the current thread, if a library has started it. The system keeps the first 15 bytes.
pub fn name_current(name: &str) {
    #[cfg(target_os = "linux")]
    if let Ok(name) = CString::new(name) {
        // A thread works without its name, too.
        let _ = rustix::thread::set_name(&name);
    }
}
