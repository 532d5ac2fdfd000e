//! Colours by name.

use draw::Color;
use timeline::palette::PALETTE;

/// Names of colours: all stand out from pale lanes.
pub(crate) const NAMES: [(&str, Color); 9] = [
    ("red", Color::rgb(0xc0, 0x10, 0x20)),
    ("blue", Color::rgb(0x10, 0x40, 0xc0)),
    ("green", Color::rgb(0x10, 0x78, 0x40)),
    ("purple", Color::rgb(0x90, 0x30, 0x90)),
    ("orange", Color::rgb(0xe0, 0x70, 0x10)),
    ("brown", Color::rgb(0x78, 0x48, 0x20)),
    ("teal", Color::rgb(0x10, 0x88, 0x98)),
    ("black", Color::rgb(0x20, 0x20, 0x20)),
    ("grey", Color::rgb(0x80, 0x80, 0x80)),
];

/// The colour of this name, or `#rrggbb`.
pub(crate) fn named(name: &str) -> Option<Color> {
    let hex = |digits: &str| {
        let is_hex = digits.len() == 6 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        let n = u32::from_str_radix(digits, 16).ok().filter(|_| is_hex)?;
        let [_, r, g, b] = n.to_be_bytes();
        Some(Color::rgb(r, g, b))
    };
    let of_palette = || NAMES.iter().find(|(known, _)| *known == name).map(|(_, color)| *color);
    name.strip_prefix('#').map_or_else(of_palette, hex)
}

/// The colour of the item in this place, if its author names none.
pub(crate) fn next(place: usize) -> Color {
    PALETTE[place % PALETTE.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colors_have_names_and_numbers() {
        assert_eq!(named("#c01020"), named("red"));
        assert_eq!((named("#c0102"), named("#+01020"), named("rot")), (None, None, None));
    }
}
