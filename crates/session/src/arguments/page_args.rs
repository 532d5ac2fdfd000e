//! The page that a figure is drawn on, as arguments.

use anyhow::{Result, bail};
use draw::{Figure, PT, Unit};
use timeline::Sheet;

/// The page of a figure
#[derive(Clone, Debug, clap::Args)]
pub struct PageArgs {
    /// Width of the figure: a number with mm, cm, in or pt
    #[arg(long, value_name = "LENGTH", value_parser = length, help_heading = "Figure")]
    width: Option<Unit>,
    /// Height of the figure: a number with mm, cm, in or pt
    #[arg(long, value_name = "LENGTH", value_parser = length, help_heading = "Figure")]
    height: Option<Unit>,
    /// Size of the letters in points; 7 fits a page, 12 a slide
    #[arg(long, value_name = "PT", value_parser = font_size, default_value = "7", help_heading = "Figure")]
    font_size: Unit,
    /// Title of the figure, in place of its own
    #[arg(long, value_name = "TEXT", help_heading = "Figure")]
    title: Option<String>,
}

/// The greatest side of a page, 200 inches: the limit of PDF viewers.
const LARGEST: Unit = 14_400 * PT;

/// Parses a length with its unit.
fn length(text: &str) -> Result<Unit, String> {
    let units = [("mm", 7200.0 / 25.4), ("cm", 7200.0 / 2.54), ("in", 7200.0), ("pt", 100.0)];
    let text = text.trim();
    let with_unit = units.iter().find_map(|(unit, each)| Some((text.strip_suffix(unit)?.trim_end(), each)));
    let Some((number, each)) = with_unit else {
        return Err("a length is a number with a unit: 160mm, 16cm, 6.3in or 450pt".to_owned());
    };
    let units = number.parse::<f64>().map_or(f64::NAN, |number| (number * each).round());
    match units {
        _ if !number.starts_with(|c: char| c.is_ascii_digit()) || units.is_nan() => {
            Err(format!("{number:?} is not a number; write 160mm, 16cm, 6.3in or 450pt"))
        }
        _ if !(1.0..=f64::from(LARGEST)).contains(&units) => {
            Err("a page has sides from 1pt to 200in, which is 508cm".to_owned())
        }
        _ => Ok(units as Unit),
    }
}

/// Parses a size of letters, in points.
fn font_size(text: &str) -> Result<Unit, String> {
    let number = text.trim().trim_end_matches("pt").trim_end();
    let size = number.parse::<f64>().map_or(f64::NAN, |points| (points * 100.0).round());
    if (200.0..=7200.0).contains(&size) { Ok(size as Unit) } else { Err("write a size from 2 to 72 points".to_owned()) }
}

impl PageArgs {
    /// Whether another page than the figure's own is asked for.
    pub fn is_given(&self) -> bool {
        self.sheet() != Sheet::default()
    }

    /// The page for the figures.
    pub fn sheet(&self) -> Sheet {
        Sheet { width: self.width, height: self.height, font_size: self.font_size, title: self.title.clone() }
    }

    /// Refuses figures that need a larger page than the one that is asked for.
    pub fn check(&self, figures: &[Figure]) -> Result<()> {
        let larger = |side: fn(&Figure) -> Unit, asked: Option<Unit>| {
            let needed = figures.iter().map(side).max()?;
            (needed > asked?).then_some(needed)
        };
        let sides = [("width", larger(|f| f.width, self.width)), ("height", larger(|f| f.height, self.height))];
        for (side, needed) in sides {
            if let Some(needed) = needed {
                let least = (f64::from(needed) / 72.0 * 25.4 / 100.0).ceil();
                bail!(
                    "--{side}: the figure needs at least {least} mm with letters of {} points; \
                     give more, or a smaller --font-size",
                    f64::from(self.font_size) / 100.0
                );
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_have_units() {
        for (text, expected) in [("25.4mm", 7_200), ("2.54 cm", 7_200), ("1in", 7_200), ("72pt", 7_200), ("0.5pt", 50)]
        {
            assert_eq!(length(text), Ok(expected), "{text}");
        }
        for bad in ["", "160", "mm", "-3cm", "+3cm", "nanmm", "infcm", "1e9in", "0pt", "3 feet", "1,5cm"] {
            let error = length(bad).expect_err(bad);
            assert!(error.contains("16cm") || error.contains("508cm"), "{bad}: {error}");
        }
        assert_eq!((font_size("12"), font_size("7.5pt")), (Ok(1_200), Ok(750)));
        assert!(["", "0", "-7", "73", "nan", "12px"].iter().all(|bad| font_size(bad).is_err()));
    }
}
