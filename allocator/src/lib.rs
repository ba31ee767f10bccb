//! The allocator of the program and its benchmarks, and its configuration.
//!
//! Events are allocated on one thread and freed on another. mimalloc handles this well; the system
//! allocator takes a fifth of the CPU time of an event.

use core::alloc::{GlobalAlloc, Layout};
use core::ffi::c_void;

use libmimalloc_sys as mi;

/// mimalloc. The published crate calls the aligned functions for every block. The functions without
/// alignment are shorter, and place blocks more tightly (ADR 9).
#[derive(Debug, Clone, Copy)]
pub struct MiMalloc;

/// `MI_MAX_ALIGN_SIZE` of mimalloc: blocks of this size or more are aligned to it, smaller blocks
/// to 8 bytes.
const NATURAL_ALIGN: usize = 16;

/// Whether mimalloc aligns a block of `size` bytes to `align` without a request. Never if the block
/// is smaller than its alignment, whatever its size is rounded to.
const fn is_natural(size: usize, align: usize) -> bool {
    align <= NATURAL_ALIGN && align <= size
}

#[expect(unsafe_code, reason = "an allocator is an unsafe trait")]
// SAFETY: each function returns what mimalloc's function of the same purpose returns: null, or a
// block of at least the size, aligned as `is_natural` says or as it was asked to be. None of them
// unwinds. `mi_free` and `mi_realloc` take a block of any of these functions.
unsafe impl GlobalAlloc for MiMalloc {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let (size, align) = (layout.size(), layout.align());
        // SAFETY: any size is valid, and a layout's alignment is a power of two.
        let block = unsafe { if is_natural(size, align) { mi::mi_malloc(size) } else { mi::mi_malloc_aligned(size, align) } };
        block.cast()
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let (size, align) = (layout.size(), layout.align());
        // SAFETY: any size is valid, and a layout's alignment is a power of two.
        let block = unsafe { if is_natural(size, align) { mi::mi_zalloc(size) } else { mi::mi_zalloc_aligned(size, align) } };
        block.cast()
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, _: Layout) {
        // SAFETY: the caller passes a block of this allocator, which it does not use any more.
        unsafe { mi::mi_free(block.cast::<c_void>()) }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let (block, align) = (block.cast::<c_void>(), layout.align());
        // SAFETY: the caller passes a block of this allocator and does not use it any more, unless
        // null is returned; the alignment of the new block is decided by its own size.
        let block = unsafe {
            if is_natural(size, align) { mi::mi_realloc(block, size) } else { mi::mi_realloc_aligned(block, size, align) }
        };
        block.cast()
    }
}

/// Delay in milliseconds before freed memory is returned to the operating system.
///
/// The default of a second is about as long as a checkpoint: at a high event rate the process held
/// a third more memory than it used.
const PURGE_DELAY_MS: core::ffi::c_long = 100;

/// Configures the allocator. Must be called at the start of `main`, before any other thread runs.
/// The environment variable `MIMALLOC_PURGE_DELAY` takes precedence.
pub fn configure() {
    if std::env::var_os("MIMALLOC_PURGE_DELAY").is_some() {
        return;
    }
    #[expect(unsafe_code, reason = "mimalloc has no safe function for its options")]
    // SAFETY: the call stores a number that other threads read when they free memory. No other
    // thread runs yet.
    unsafe {
        libmimalloc_sys::mi_option_set(PURGE_DELAY, PURGE_DELAY_MS);
    }
}

/// `mi_option_purge_delay` of `mimalloc.h`, which the bindings lack.
const PURGE_DELAY: libmimalloc_sys::mi_option_t = 15;

#[cfg(test)]
mod tests {
    use core::alloc::{GlobalAlloc as _, Layout};

    #[test]
    fn blocks_are_aligned_and_keep_their_bytes() {
        let aligned = |block: *mut u8, align: usize| !block.is_null() && block.addr().is_multiple_of(align);
        for align in (0..=12).map(|shift| 1_usize << shift) {
            for size in (1..200).chain([1_000, 1_024, 5_000, 70_000]) {
                let layout = Layout::from_size_align(size, align).unwrap();
                #[expect(unsafe_code, reason = "calls the allocator")]
                // SAFETY: the size isn't 0, each block is freed once with the layout it has, and is
                // written and read within its size.
                unsafe {
                    let (block, zeroed) = (super::MiMalloc.alloc(layout), super::MiMalloc.alloc_zeroed(layout));
                    assert!(aligned(block, align) && aligned(zeroed, align), "{layout:?}");
                    assert!((0..size).all(|at| *zeroed.add(at) == 0), "{layout:?}");
                    block.write_bytes(7, size);
                    for other in [size * 2, size.div_ceil(3)] {
                        let block = super::MiMalloc.realloc(super::MiMalloc.alloc_zeroed(layout), layout, other);
                        assert!(aligned(block, align), "{layout:?} to {other}");
                        super::MiMalloc.dealloc(block, Layout::from_size_align(other, align).unwrap());
                    }
                    let grown = super::MiMalloc.realloc(block, layout, size + 100);
                    assert!((0..size).all(|at| *grown.add(at) == 7), "{layout:?}");
                    super::MiMalloc.dealloc(grown, Layout::from_size_align(size + 100, align).unwrap());
                    super::MiMalloc.dealloc(zeroed, layout);
                }
            }
        }
    }

    #[test]
    fn the_option_is_the_purge_delay() {
        #[expect(unsafe_code, reason = "mimalloc has no safe function for its options")]
        // SAFETY: reads a number.
        let read = || unsafe { libmimalloc_sys::mi_option_get(super::PURGE_DELAY) };
        if std::env::var_os("MIMALLOC_PURGE_DELAY").is_none() {
            assert_eq!(read(), 1000, "the default of mimalloc 3 for this option");
            super::configure();
            assert_eq!(read(), super::PURGE_DELAY_MS);
        }
    }
}
