//! The texts that `%p` with letters behind it makes of the bytes that an address points to (the kernel's
//! `Documentation/core-api/printk-formats.rst`).

use crate::bytes::NumberLayout;
use crate::text::expr::{Bits, shown};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddrV4, SocketAddrV6};

/// The notation of the bytes at an address, from the letters behind `%p`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pointed {
    /// `h`: in hexadecimal, and what stands between.
    Hex(&'static str),
    /// `b`: the bits that are set.
    Bits(Bits),
    /// `M`, `m`: a MAC address, and what stands between.
    Mac(&'static str),
    /// `I4`: an IPv4 address, `i4` with all zeros.
    V4 { zeros: bool },
    /// `I6`: an IPv6 address.
    V6(V6),
    /// `IS`: a `struct sockaddr`, and whether with its port.
    Socket { of_six: V6, port: bool },
    /// `U`: a UUID, whose first three numbers may be little-endian.
    Uuid { little: bool, upper: bool },
    /// A notation that only the kernel can produce.
    Other,
}

/// The notation of an IPv6 address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum V6 {
    /// `I6c`: its zeros left out.
    Short,
    /// `I6`: all digits, with colons.
    Long,
    /// `i6`: without colons.
    Bare,
}

impl Pointed {
    /// Returns the notation for the letters behind `%p`.
    pub(super) fn of(letters: &str) -> Pointed {
        match letters {
            "h" => Pointed::Hex(" "),
            "hC" => Pointed::Hex(":"),
            "hD" => Pointed::Hex("-"),
            "hN" => Pointed::Hex(""),
            "b" => Pointed::Bits(Bits::Words),
            "bl" => Pointed::Bits(Bits::List),
            "M" => Pointed::Mac(":"),
            "MF" => Pointed::Mac("-"),
            "m" => Pointed::Mac(""),
            "I4" | "I4n" | "I4b" => Pointed::V4 { zeros: false },
            "i4" | "i4n" | "i4b" => Pointed::V4 { zeros: true },
            "I6" => Pointed::V6(V6::Long),
            "I6c" => Pointed::V6(V6::Short),
            "i6" => Pointed::V6(V6::Bare),
            "IS" => Pointed::Socket { of_six: V6::Long, port: false },
            "ISc" => Pointed::Socket { of_six: V6::Short, port: false },
            "ISp" => Pointed::Socket { of_six: V6::Long, port: true },
            "ISpc" | "IScp" => Pointed::Socket { of_six: V6::Short, port: true },
            "U" | "Ub" => Pointed::Uuid { little: false, upper: false },
            "UB" => Pointed::Uuid { little: false, upper: true },
            "Ul" => Pointed::Uuid { little: true, upper: false },
            "UL" => Pointed::Uuid { little: true, upper: true },
            _ => Pointed::Other,
        }
    }

    /// The text; `None` where there are not enough bytes, or their meaning is unknown.
    pub(crate) fn text(self, bytes: &[u8], width: usize, layout: NumberLayout) -> Option<String> {
        Some(match self {
            // As the kernel: at most 64.
            Pointed::Hex(between) => shown::hex(bytes.get(..width.min(64)).unwrap_or(bytes), between),
            Pointed::Bits(how) => {
                let whole = width.div_ceil(8).next_multiple_of(layout.long.max(1));
                shown::bits(bytes.get(..whole).unwrap_or(bytes), how, layout)
            }
            Pointed::Mac(between) => shown::hex(bytes.get(..6)?, between),
            Pointed::V4 { zeros } => v4(*bytes.first_chunk()?, zeros),
            Pointed::V6(how) => v6(*bytes.first_chunk()?, how),
            Pointed::Socket { of_six, port } => socket(bytes, of_six, port, layout)?,
            Pointed::Uuid { little, upper } => {
                let text = uuid(bytes, little)?;
                if upper { text.to_uppercase() } else { text }
            }
            Pointed::Other => return None,
        })
    }
}

fn v4(address: [u8; 4], zeros: bool) -> String {
    match address {
        [a, b, c, d] if zeros => format!("{a:03}.{b:03}.{c:03}.{d:03}"),
        _ => Ipv4Addr::from(address).to_string(),
    }
}

fn v6(address: [u8; 16], how: V6) -> String {
    let groups = |between: &str| {
        let (pairs, _) = address.as_chunks::<2>();
        let shown: Vec<String> = pairs.iter().map(|pair| format!("{:04x}", u16::from_be_bytes(*pair))).collect();
        shown.join(between)
    };
    match how {
        V6::Short => Ipv6Addr::from(address).to_string(),
        V6::Long => groups(":"),
        V6::Bare => groups(""),
    }
}

/// A `struct sockaddr` of the two families that have addresses.
fn socket(bytes: &[u8], of_six: V6, with_port: bool, NumberLayout { endian, .. }: NumberLayout) -> Option<String> {
    let port = u16::from_be_bytes(*bytes.get(2..)?.first_chunk()?);
    Some(match endian.u16(bytes, 0)? {
        2 => {
            let address = Ipv4Addr::from(*bytes.get(4..)?.first_chunk::<4>()?);
            if with_port { SocketAddrV4::new(address, port).to_string() } else { address.to_string() }
        }
        10 => {
            let address = *bytes.get(8..)?.first_chunk::<16>()?;
            match (with_port, of_six) {
                (true, V6::Short) => SocketAddrV6::new(address.into(), port, 0, 0).to_string(),
                (true, _) => format!("[{}]:{port}", v6(address, of_six)),
                (false, _) => v6(address, of_six),
            }
        }
        _ => return None,
    })
}

fn uuid(bytes: &[u8], little: bool) -> Option<String> {
    let mut order = *bytes.first_chunk::<16>()?;
    if little {
        for number in [0..4, 4..6, 6..8] {
            order.get_mut(number)?.reverse();
        }
    }
    let parts = [0..4, 4..6, 6..8, 8..10, 10..16];
    let parts: Option<Vec<String>> = parts.into_iter().map(|part| Some(shown::hex(order.get(part)?, ""))).collect();
    Some(parts?.join("-"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::Endian;

    fn text(letters: &str, bytes: &[u8]) -> Option<String> {
        Pointed::of(letters).text(bytes, 3, NumberLayout { endian: Endian::Little, long: 8 })
    }

    #[test]
    fn addresses() {
        let mac = [0, 0x1b, 0x21, 0xff, 0, 9];
        assert_eq!(text("M", &mac).as_deref(), Some("00:1b:21:ff:00:09"));
        assert_eq!(text("m", &mac).as_deref(), Some("001b21ff0009"));
        assert_eq!(text("M", &mac[..5]), None, "not enough");
        assert_eq!(text("I4", &[127, 0, 0, 1]).as_deref(), Some("127.0.0.1"));
        assert_eq!(text("i4", &[127, 0, 0, 1]).as_deref(), Some("127.000.000.001"));
        let mapped = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 0, 0, 1];
        assert_eq!(text("I6c", &mapped).as_deref(), Some("::ffff:127.0.0.1"));
        assert_eq!(text("I6", &mapped).as_deref(), Some("0000:0000:0000:0000:0000:ffff:7f00:0001"));
        assert_eq!(text("i6", &mapped).as_deref(), Some("00000000000000000000ffff7f000001"));
    }

    #[test]
    fn sockets() {
        let mut four = vec![2, 0, 0x13, 0x88, 10, 0, 0, 1];
        four.resize(28, 0);
        assert_eq!(text("ISpc", &four).as_deref(), Some("10.0.0.1:5000"));
        let mut six = vec![10, 0, 0x13, 0x88];
        six.resize(23, 0);
        six.extend([1, 0, 0, 0, 0]);
        assert_eq!(text("ISpc", &six).as_deref(), Some("[::1]:5000"));
        assert_eq!(text("ISp", &six).as_deref(), Some("[0000:0000:0000:0000:0000:0000:0000:0001]:5000"));
        assert_eq!(text("ISc", &six).as_deref(), Some("::1"));
        assert_eq!(text("ISpc", &[1, 0, 0, 0]), None, "neither of the two families");
    }

    #[test]
    fn bytes_and_uuids() {
        let bytes: Vec<u8> = (0..16).collect();
        assert_eq!(text("h", &bytes).as_deref(), Some("00 01 02"));
        assert_eq!(text("hD", &bytes[..2]).as_deref(), Some("00-01"), "those that there are");
        assert_eq!(text("Ub", &bytes).as_deref(), Some("00010203-0405-0607-0809-0a0b0c0d0e0f"));
        assert_eq!(text("UL", &bytes).as_deref(), Some("03020100-0504-0706-0809-0A0B0C0D0E0F"));
        assert_eq!(text("d", &bytes), None, "a dentry");
    }
}
