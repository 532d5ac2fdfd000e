//! `memcpy` and `memmove` of static programs on x86-64.
//!
//! Those of musl copy with `rep movsq` whatever the length, which takes four to five times as long for 8 to 100 bytes as glibc's functions: half of the
//! time of a long list in JSON on a Xeon (docs/performance.md). These take ordinary loads and stores for fewer than 2,048 bytes. Up to
//! 128 bytes all is loaded before anything is stored, so that the two can overlap; beyond that the direction is the one that reads each byte
//! before it is written.
//!
//! They are assembly because a compiler that sees a loop of copies makes a call of `memcpy` out of it. The linker takes them instead of those
//! of the C library, whose `memmove` would bring its `memcpy` with it: both must be here.
#![allow(unsafe_code)]

/// Defines the two functions under these names.
macro_rules! define {
    ($copy:literal, $move:literal) => {
        std::arch::global_asm!(
            concat!(".section .text.", $copy, ", \"ax\", @progbits"),
            ".p2align 5",
            concat!(".globl ", $copy),
            concat!(".globl ", $move),
            concat!(".type ", $copy, ", @function"),
            concat!(".type ", $move, ", @function"),
            concat!($copy, ":"),
            concat!($move, ":"),
            // rdi, rsi, rdx: to, from, the number of bytes; rax: to.
            ".cfi_startproc",
            "mov rax, rdi",
            "cmp rdx, 16",
            "jb 20f",
            "cmp rdx, 32",
            "ja 33f",
            // 16 to 32 bytes: the first and the last 16, which may be partly the same.
            "movups xmm0, [rsi]",
            "movups xmm1, [rsi + rdx - 16]",
            "movups [rdi], xmm0",
            "movups [rdi + rdx - 16], xmm1",
            "ret",
            // Fewer than 16.
            "20:",
            "cmp edx, 8",
            "jb 21f",
            "mov rcx, [rsi]",
            "mov r8, [rsi + rdx - 8]",
            "mov [rdi], rcx",
            "mov [rdi + rdx - 8], r8",
            "ret",
            "21:",
            "cmp edx, 4",
            "jb 22f",
            "mov ecx, [rsi]",
            "mov r8d, [rsi + rdx - 4]",
            "mov [rdi], ecx",
            "mov [rdi + rdx - 4], r8d",
            "ret",
            // Up to three.
            "22:",
            "cmp edx, 1",
            "jb 24f",
            "movzx ecx, byte ptr [rsi]",
            "je 23f",
            "movzx r8d, word ptr [rsi + rdx - 2]",
            "mov [rdi + rdx - 2], r8w",
            "23:",
            "mov [rdi], cl",
            "24:",
            "ret",
            // 33 to 64.
            "33:",
            "cmp rdx, 64",
            "ja 65f",
            "movups xmm0, [rsi]",
            "movups xmm1, [rsi + 16]",
            "movups xmm2, [rsi + rdx - 32]",
            "movups xmm3, [rsi + rdx - 16]",
            "movups [rdi], xmm0",
            "movups [rdi + 16], xmm1",
            "movups [rdi + rdx - 32], xmm2",
            "movups [rdi + rdx - 16], xmm3",
            "ret",
            // 65 to 128.
            "65:",
            "movups xmm4, [rsi + rdx - 64]",
            "movups xmm5, [rsi + rdx - 48]",
            "movups xmm6, [rsi + rdx - 32]",
            "movups xmm7, [rsi + rdx - 16]",
            "cmp rdx, 128",
            "ja 66f",
            "movups xmm0, [rsi]",
            "movups xmm1, [rsi + 16]",
            "movups xmm2, [rsi + 32]",
            "movups xmm3, [rsi + 48]",
            "movups [rdi], xmm0",
            "movups [rdi + 16], xmm1",
            "movups [rdi + 32], xmm2",
            "movups [rdi + 48], xmm3",
            "movups [rdi + rdx - 64], xmm4",
            "movups [rdi + rdx - 48], xmm5",
            "movups [rdi + rdx - 32], xmm6",
            "movups [rdi + rdx - 16], xmm7",
            "ret",
            // More. From the back, if the target begins within the source.
            "66:",
            "mov rcx, rdi",
            "sub rcx, rsi",
            "cmp rcx, rdx",
            "jb 68f",
            // From the front, 64 bytes at a time, and at last the last 64, which were read first.
            "lea r8, [rdi + rdx - 64]",
            // Many go faster by the instruction for it, unless the target begins shortly before the source.
            "cmp rdx, 2048",
            "jb 67f",
            "mov rcx, rsi",
            "sub rcx, rdi",
            "cmp rcx, 64",
            "jb 67f",
            // It wants to write from a border of 8 bytes on: those before it, and some behind, are copied here.
            "mov r9, [rsi]",
            "mov [rdi], r9",
            "mov rcx, rdi",
            "and ecx, 7",
            "sub ecx, 8",
            "movsxd rcx, ecx",
            "sub rsi, rcx",
            "sub rdi, rcx",
            "add rcx, rdx",
            "shr rcx, 3",
            "rep movsq",
            "jmp 70f",
            ".p2align 4",
            "67:",
            "movups xmm0, [rsi]",
            "movups xmm1, [rsi + 16]",
            "movups xmm2, [rsi + 32]",
            "movups xmm3, [rsi + 48]",
            "add rsi, 64",
            "movups [rdi], xmm0",
            "movups [rdi + 16], xmm1",
            "movups [rdi + 32], xmm2",
            "movups [rdi + 48], xmm3",
            "add rdi, 64",
            "cmp rdi, r8",
            "jb 67b",
            "70:",
            "movups [r8], xmm4",
            "movups [r8 + 16], xmm5",
            "movups [r8 + 32], xmm6",
            "movups [r8 + 48], xmm7",
            "ret",
            // From the back, and at last the first 64.
            "68:",
            "movups xmm4, [rsi]",
            "movups xmm5, [rsi + 16]",
            "movups xmm6, [rsi + 32]",
            "movups xmm7, [rsi + 48]",
            "lea r8, [rdi + 64]",
            "lea r9, [rdi + rdx]",
            "add rsi, rdx",
            ".p2align 4",
            "69:",
            "movups xmm0, [rsi - 16]",
            "movups xmm1, [rsi - 32]",
            "movups xmm2, [rsi - 48]",
            "movups xmm3, [rsi - 64]",
            "sub rsi, 64",
            "movups [r9 - 16], xmm0",
            "movups [r9 - 32], xmm1",
            "movups [r9 - 48], xmm2",
            "movups [r9 - 64], xmm3",
            "sub r9, 64",
            "cmp r9, r8",
            "ja 69b",
            "movups [rdi], xmm4",
            "movups [rdi + 16], xmm5",
            "movups [rdi + 32], xmm6",
            "movups [rdi + 48], xmm7",
            "ret",
            ".cfi_endproc",
            concat!(".size ", $copy, ", . - ", $copy),
            concat!(".size ", $move, ", . - ", $move),
            ".text",
        );
    };
}

#[cfg(all(target_env = "musl", not(test)))]
define!("memcpy", "memmove");
#[cfg(test)]
define!("schedviz_copy", "schedviz_move");

#[cfg(test)]
mod tests {
    unsafe extern "C" {
        fn schedviz_move(to: *mut u8, from: *const u8, bytes: usize) -> *mut u8;
    }

    /// Lengths around every border between two ways, and a few long ones.
    fn lengths() -> impl Iterator<Item = usize> {
        (0..=330).chain([511, 512, 513, 2_047, 2_048, 2_049, 4_095, 4_096, 4_097])
    }

    #[test]
    fn bytes_are_copied_wherever_they_begin() {
        for length in lengths() {
            for (from, to) in [(0, 0), (1, 0), (0, 1), (3, 5), (15, 16), (16, 15), (31, 33)] {
                let source: Vec<u8> = (0..length + 64).map(|i| (i * 7 + 1) as u8).collect();
                let mut found = vec![0xAA; length + 96];
                let mut right = found.clone();
                right[to..to + length].copy_from_slice(&source[from..from + length]);
                // SAFETY: both are long enough for the bytes behind their offsets.
                let returned = unsafe { schedviz_move(found.as_mut_ptr().add(to), source.as_ptr().add(from), length) };
                assert_eq!(returned, found[to..].as_mut_ptr(), "{length}");
                assert!(found == right, "{length} from {from} to {to}");
            }
        }
    }

    #[test]
    fn bytes_move_over_one_another() {
        for length in lengths() {
            for distance in (0..140).chain([length / 2, length.saturating_sub(1), length]) {
                for (from, to) in [(0, distance), (distance, 0)] {
                    let mut found: Vec<u8> = (0..length + distance).map(|i| (i * 11 + i / 256) as u8).collect();
                    let mut right = found.clone();
                    right.copy_within(from..from + length, to);
                    let start = found.as_mut_ptr();
                    // SAFETY: the vector is long enough for the bytes behind both offsets.
                    unsafe { schedviz_move(start.add(to), start.add(from), length) };
                    assert!(found == right, "{length} from {from} to {to}");
                }
            }
        }
    }
}
