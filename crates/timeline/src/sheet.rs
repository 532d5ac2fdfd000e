//! The page that a figure is drawn on, as the user wants it.

use crate::scale::LETTER;
use draw::{Figure, Unit};

/// The size of a page, of its letters, and its title.
///
/// A figure is laid out with letters of [`LETTER`] on a page that is smaller or larger in proportion, and then scaled as
/// a whole. All texts and the room they take therefore grow together, in every figure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sheet {
    /// The width of the page; that of the figure if none is given.
    pub width: Option<Unit>,
    /// The height of the page; that of the figure if none is given.
    pub height: Option<Unit>,
    /// The size of the smaller letters, above zero.
    pub font_size: Unit,
    /// The title in place of the figure's own.
    pub title: Option<String>,
}

impl Default for Sheet {
    fn default() -> Sheet {
        Sheet { width: None, height: None, font_size: LETTER, title: None }
    }
}

impl Sheet {
    /// Returns the length in the layout that becomes `length` on the page.
    pub(crate) fn laid_out(&self, length: Unit) -> Unit {
        let exact = i64::from(length) * i64::from(LETTER) / i64::from(self.font_size.max(1));
        exact.clamp(0, i64::from(Unit::MAX / 4)) as Unit
    }

    /// Scales a figure from its layout to the page. The page has exactly the size that is asked for, unless the figure
    /// needs more.
    pub(crate) fn finish(&self, figure: Figure) -> Figure {
        let mut figure = if self.font_size == LETTER { figure } else { figure.scaled(self.font_size, LETTER) };
        // Lengths in the layout are rounded; a difference of less than a point is not one of room.
        let exact = |asked: Option<Unit>, own: Unit| match asked {
            Some(asked) if own.saturating_sub(asked) < draw::PT => asked,
            _ => own,
        };
        figure.width = exact(self.width, figure.width);
        figure.height = exact(self.height, figure.height);
        figure
    }
}
