//! Names of threads for profilers, `top -H` and `/proc`: `shard-0`, `http-0`, `log`, `checkpoint`,
//! `merge-ids` and so on.

use std::ffi::CString;

/// Names the current thread, which a library has started. The system keeps the first 15 bytes.
pub fn name_current(name: &str) {
    #[cfg(target_os = "linux")]
    if let Ok(name) = CString::new(name) {
        // A thread also works without its name.
        let _ = rustix::thread::set_name(&name);
    }
}
