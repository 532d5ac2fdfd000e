//! The flags of the context in which an event was recorded (`common_flags`), in the kernel's letters.

/// Interrupts are disabled.
const IRQS_OFF: u8 = 0x01;
/// The processor cannot show whether interrupts are disabled; from [`LAZY_SINCE`] on a lazy request to reschedule.
const IRQS_UNSUPPORTED: u8 = 0x02;
/// The running task has an immediate request to reschedule.
const NEED_RESCHED: u8 = 0x04;
/// The event is one of a hard interrupt.
const HARDIRQ: u8 = 0x08;
/// The event is one of a softirq.
const SOFTIRQ: u8 = 0x10;
/// The CPU has the request in its preemption count.
const PREEMPT_RESCHED: u8 = 0x20;
/// The event is one of a non-maskable interrupt.
const NMI: u8 = 0x40;
/// Softirqs are disabled (6.3 and later).
const BH_OFF: u8 = 0x80;

/// The first kernel release whose flag 0x02 is a lazy request to reschedule, as major and minor number.
pub const LAZY_SINCE: (u32, u32) = (6, 13);

/// Adds the three letters of flags as the kernel's own `trace` file has them (`trace_print_lat_fmt()`): interrupts and softirqs disabled,
/// requests to reschedule, and the interrupt. `has_lazy` is whether the kernel marks lazy requests ([`LAZY_SINCE`]).
pub fn put_letters(flags: u8, has_lazy: bool, out: &mut String) {
    let is = |flag: u8| flags & flag != 0;
    out.push(match (is(IRQS_OFF), is(BH_OFF)) {
        (true, true) => 'D',
        (true, false) => 'd',
        (false, true) => 'b',
        (false, false) if is(IRQS_UNSUPPORTED) && !has_lazy => 'X',
        (false, false) => '.',
    });
    out.push(match (is(NEED_RESCHED), is(IRQS_UNSUPPORTED) && has_lazy, is(PREEMPT_RESCHED)) {
        (true, true, true) => 'B',
        (true, true, false) => 'b',
        (true, false, true) => 'N',
        (true, false, false) => 'n',
        (false, true, true) => 'L',
        (false, true, false) => 'l',
        (false, false, true) => 'p',
        (false, false, false) => '.',
    });
    out.push(match (is(NMI), is(HARDIRQ), is(SOFTIRQ)) {
        (true, true, _) => 'Z',
        (true, false, _) => 'z',
        (false, true, true) => 'H',
        (false, true, false) => 'h',
        (false, false, true) => 's',
        (false, false, false) => '.',
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_letters_are_those_of_the_kernel() {
        let letters = |flags: &[u8], has_lazy: bool| {
            let words = flags.iter().map(|flags| {
                let mut out = String::new();
                put_letters(*flags, has_lazy, &mut out);
                out
            });
            words.collect::<Vec<_>>().join(" ")
        };
        assert_eq!(letters(&[0x00, 0x01, 0x80, 0x81, 0x02, 0x03], false), "... d.. b.. D.. X.. d..");
        assert_eq!(letters(&[0x04, 0x24, 0x20, 0x06], false), ".n. .N. .p. Xn.");
        assert_eq!(letters(&[0x08, 0x10, 0x18, 0x40, 0x48, 0x58], false), "..h ..s ..H ..z ..Z ..Z");
        assert_eq!(letters(&[0x02, 0x06, 0x22, 0x26, 0x24], true), ".l. .b. .L. .B. .N.");
    }
}
