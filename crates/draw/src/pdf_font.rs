//! Fonts of a PDF file: the viewer's Helvetica by name, or an embedded font with the glyphs that the file uses.

use crate::figure::{Figure, Item};
use crate::{png, text};
use pdf_writer::types::{CidFontType, FontFlags, SystemInfo, UnicodeCmap};
use pdf_writer::{Filter, Finish, Name, Pdf, Rect, Ref, Str};
use std::collections::BTreeMap;
use std::io::Write;
use subsetter::GlyphRemapper;
use ttf_parser::{Face, GlyphId};

/// The name of the embedded font.
const NAME: &str = "SchedvizSans";

const IDENTITY: SystemInfo<'static> = SystemInfo { registry: Str(b"Adobe"), ordering: Str(b"Identity"), supplement: 0 };

/// The font of the texts of a file.
pub(crate) enum Font {
    /// Helvetica, which the viewer supplies, in the standard encoding.
    Named,
    /// A part of the embedded font, by glyph.
    Embedded(Subset),
}

/// The part of the embedded font that some figures need.
pub(crate) struct Subset {
    /// The font file with these glyphs alone.
    file: Vec<u8>,
    /// The glyph in that file of each character.
    glyphs: BTreeMap<char, u16>,
}

impl Subset {
    /// Returns the subset for the texts of these figures; `None` if the font cannot be reduced.
    pub(crate) fn of(figures: &[Figure]) -> Option<Subset> {
        let face = Face::parse(png::FONT, 0).ok()?;
        let mut remapper = GlyphRemapper::new();
        let mut glyphs = BTreeMap::new();
        let texts = figures.iter().flat_map(|figure| &figure.items).filter_map(|item| match item {
            Item::Text { text, .. } => Some(text),
            _ => None,
        });
        // In the order of characters, so that the file does not depend on the order of the texts.
        let used: std::collections::BTreeSet<char> = texts.flat_map(|text| text.chars()).collect();
        for c in used {
            let glyph = face.glyph_index(c).or_else(|| face.glyph_index('?')).unwrap_or(GlyphId(0));
            glyphs.insert(c, remapper.remap(glyph.0));
        }
        Some(Subset { file: subsetter::subset(png::FONT, 0, &remapper).ok()?, glyphs })
    }
}

/// Compresses a stream of a PDF file.
pub(crate) fn deflate(bytes: &[u8]) -> Vec<u8> {
    let mut out = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
    // Writing to memory cannot fail.
    let _ = out.write_all(bytes);
    out.finish().unwrap_or_default()
}

impl Font {
    /// Returns the bytes that show a text in this font.
    pub(crate) fn encode(&self, text: &str) -> Vec<u8> {
        match self {
            Font::Named => text.chars().map(|c| text::win_ansi(c).unwrap_or(b'?')).collect(),
            Font::Embedded(subset) => {
                text.chars().flat_map(|c| subset.glyphs.get(&c).copied().unwrap_or(0).to_be_bytes()).collect()
            }
        }
    }

    /// Writes the font as the object `id`, and the objects that it refers to from `next` on.
    pub(crate) fn write(&self, pdf: &mut Pdf, id: Ref, next: Ref) {
        match self {
            Font::Named => {
                pdf.type1_font(id).base_font(Name(b"Helvetica")).encoding_predefined(Name(b"WinAnsiEncoding"));
            }
            Font::Embedded(subset) => subset.write(pdf, id, next),
        }
    }
}

impl Subset {
    fn write(&self, pdf: &mut Pdf, id: Ref, next: Ref) {
        let mut next = next;
        let [descendant, descriptor, file, unicode] = [(); 4].map(|()| next.bump());
        let name = format!("{}+{NAME}", self.tag());
        let name = Name(name.as_bytes());
        let mut font = pdf.type0_font(id);
        font.base_font(name).encoding_predefined(Name(b"Identity-H")).descendant_font(descendant);
        font.to_unicode(unicode);
        font.finish();
        let mut cid = pdf.cid_font(descendant);
        cid.subtype(CidFontType::Type2).base_font(name).system_info(IDENTITY).font_descriptor(descriptor);
        cid.default_width(0.0).cid_to_gid_map_predefined(Name(b"Identity"));
        // The widths are those of the layout, so that every viewer places the texts as laid out.
        let by_glyph: BTreeMap<u16, char> = self.glyphs.iter().map(|(c, glyph)| (*glyph, *c)).collect();
        let mut widths = cid.widths();
        for (glyph, c) in &by_glyph {
            widths.consecutive(*glyph, [f32::from(text::advance(*c))]);
        }
        widths.finish();
        cid.finish();
        self.write_descriptor(pdf, descriptor, file, name);
        let packed = deflate(&self.file);
        pdf.stream(file, &packed).filter(Filter::FlateDecode).pair(Name(b"Length1"), self.file.len() as i32);
        let mut map = UnicodeCmap::new(Name(b"Custom"), IDENTITY);
        by_glyph.iter().for_each(|(glyph, c)| map.pair(*glyph, *c));
        pdf.cmap(unicode, &map.finish());
    }

    fn write_descriptor(&self, pdf: &mut Pdf, descriptor: Ref, file: Ref, name: Name<'_>) {
        let mut out = pdf.font_descriptor(descriptor);
        out.name(name).flags(FontFlags::SYMBOLIC).italic_angle(0.0).stem_v(80.0).font_file2(file);
        if let Ok(face) = Face::parse(png::FONT, 0) {
            let scale = |v: i16| f32::from(v) * 1000.0 / f32::from(face.units_per_em());
            let b = face.global_bounding_box();
            out.bbox(Rect::new(scale(b.x_min), scale(b.y_min), scale(b.x_max), scale(b.y_max)));
            out.ascent(scale(face.ascender())).descent(scale(face.descender()));
            out.cap_height(scale(face.capital_height().unwrap_or(face.ascender())));
        }
    }

    /// Returns the six letters that distinguish this subset from others of the font, from the characters in it.
    fn tag(&self) -> String {
        let hash = self.glyphs.keys().fold(0x811c_9dc5_u32, |h, c| (h ^ u32::from(*c)).wrapping_mul(0x0100_0193));
        (0..6).map(|place| char::from(b'A' + (hash / 26_u32.pow(place) % 26) as u8)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Anchor, Color, PT, Point};

    #[test]
    fn an_embedded_font_has_the_used_glyphs_and_their_widths() {
        let mut figure = Figure::new(100 * PT, 50 * PT, "a font");
        figure.text(Point { x: 0, y: 20 * PT }, 8 * PT, Anchor::Start, Color::BLACK, "Wi \u{b5}Wi");
        let subset = Subset::of(std::slice::from_ref(&figure)).expect("a subset");
        assert_eq!(subset.glyphs.keys().collect::<String>(), " Wi\u{b5}");
        let whole = Face::parse(png::FONT, 0).expect("a font");
        let part = Face::parse(&subset.file, 0).expect("a font of its own");
        // The glyphs and the one for missing characters.
        assert_eq!(part.number_of_glyphs(), 5);
        for (c, glyph) in &subset.glyphs {
            let own = part.glyph_hor_advance(GlyphId(*glyph));
            assert_eq!(own, whole.glyph_index(*c).and_then(|glyph| whole.glyph_hor_advance(glyph)), "{c:?}");
        }
        assert!(subset.file.len() < png::FONT.len() / 4, "{} bytes", subset.file.len());
        let pdf = crate::pdf_with_fonts(&[figure.clone()]);
        let has = |what: &[u8]| pdf.windows(what.len()).any(|w| w == what);
        assert!(has(b"/FontFile2") && has(b"+SchedvizSans") && has(b"/ToUnicode") && !has(b"/Helvetica"));
        assert_eq!(pdf, crate::pdf_with_fonts(&[figure]));
    }
}
