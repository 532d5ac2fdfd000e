//! Colours of bars and markers.

use crate::color;
use crate::expr::EventValue;
use crate::spec::{ColorSpec, Spec};
use draw::Color;
use timeline::columns::PieceClass;
use timeline::strips::FIRST;

/// Maximum number of values of one field that have colours of their own: those with the most time, or the most points.
const COLORED: usize = 12;

/// Maximum number of values of one field that are counted apart.
const VALUES: usize = 200;

/// The colour of the other values.
const REST: Color = Color::grey(0x70);

/// A colour that bars or points have.
#[derive(Clone, Debug)]
pub(crate) struct UsedColor {
    pub(crate) color: Color,
    /// The item that has the colour: an interval or a point of the specification.
    pub(crate) item: Item,
    /// The value that it stands for.
    value: Option<String>,
}

/// An item with a colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Item {
    Interval(usize),
    Point(usize),
}

/// All colours in use, by class.
#[derive(Clone, Debug)]
pub(crate) struct Looks {
    all: Vec<UsedColor>,
    intervals: Vec<ColorSpec>,
    points: Vec<ColorSpec>,
    /// Colours of the palette in use.
    taken: usize,
}

impl Looks {
    pub(crate) fn new(spec: &Spec) -> Looks {
        let intervals: Vec<ColorSpec> = spec.intervals.iter().map(|interval| interval.color.clone()).collect();
        let points: Vec<ColorSpec> = spec.points.iter().map(|point| point.color.clone()).collect();
        let mut looks = Looks { all: Vec::new(), intervals, points, taken: 0 };
        // In the order of the specification, so that the same item has the same colour in each window.
        let items = (0..looks.intervals.len()).map(Item::Interval).chain((0..looks.points.len()).map(Item::Point));
        for item in items.collect::<Vec<_>>() {
            match looks.spec(item).clone() {
                ColorSpec::Next => {
                    let color = looks.next();
                    looks.all.push(UsedColor { color, item, value: None });
                }
                ColorSpec::Fixed(color, _) => looks.all.push(UsedColor { color, item, value: None }),
                ColorSpec::By(_) => {}
            }
        }
        looks
    }

    fn next(&mut self) -> Color {
        self.taken += 1;
        color::next(self.taken - 1)
    }

    fn spec(&self, item: Item) -> &ColorSpec {
        match item {
            Item::Interval(place) => &self.intervals[place],
            Item::Point(place) => &self.points[place],
        }
    }

    /// The class of an interval whose values are these.
    pub(crate) fn of_interval(&mut self, place: usize, value: impl Fn(&str) -> Option<EventValue>) -> PieceClass {
        self.of(Item::Interval(place), value)
    }

    /// The class of a point whose values are these.
    pub(crate) fn of_point(&mut self, place: usize, value: impl Fn(&str) -> Option<EventValue>) -> PieceClass {
        self.of(Item::Point(place), value)
    }

    fn of(&mut self, item: Item, value: impl Fn(&str) -> Option<EventValue>) -> PieceClass {
        let value = match self.spec(item) {
            ColorSpec::By(field) => {
                // The names of no bits are an empty text.
                let text = value(&field.text).map(|value| value.to_string()).filter(|text| !text.is_empty());
                Some(text.unwrap_or_else(|| "none".to_owned()))
            }
            ColorSpec::Next | ColorSpec::Fixed(..) => None,
        };
        if let Some(place) = self.all.iter().position(|look| look.item == item && look.value == value) {
            return class(place);
        }
        let values = self.all.iter().filter(|look| look.item == item).count();
        if values < VALUES {
            self.all.push(UsedColor { color: REST, item, value });
            return class(self.all.len() - 1);
        }
        let rest = Some("other values".to_owned());
        if let Some(place) = self.all.iter().position(|look| look.item == item && look.value == rest) {
            return class(place);
        }
        self.all.push(UsedColor { color: REST, item, value: rest });
        class(self.all.len() - 1)
    }

    /// Gives colours to the values that weigh most.
    pub(crate) fn rank(&mut self, weight: impl Fn(PieceClass) -> u64) {
        let items: Vec<Item> = self.all.iter().map(|look| look.item).fold(Vec::new(), |mut items, item| {
            if !items.contains(&item) {
                items.push(item);
            }
            items
        });
        for item in items {
            if self.field(item).is_none() {
                continue;
            }
            let mut places: Vec<usize> = (0..self.all.len()).filter(|place| self.all[*place].item == item).collect();
            places.sort_by_key(|place| (std::cmp::Reverse(weight(class(*place))), self.all[*place].value.clone()));
            for place in places.into_iter().take(COLORED) {
                self.all[place].color = self.next();
            }
        }
    }

    /// The value that a class stands for.
    pub(crate) fn value(&self, class: PieceClass) -> Option<&str> {
        self.look(class)?.value.as_deref()
    }

    /// The colour of a class.
    pub(crate) fn color(&self, class: PieceClass) -> Color {
        self.look(class).map_or(REST, |look| look.color)
    }

    fn look(&self, class: PieceClass) -> Option<&UsedColor> {
        self.all.get(usize::from(class.checked_sub(FIRST)?))
    }

    /// All colours, with their classes, items and values.
    pub(crate) fn all(&self) -> impl Iterator<Item = (PieceClass, Item, Color, Option<&str>)> {
        self.all.iter().enumerate().map(|(n, look)| (class(n), look.item, look.color, look.value.as_deref()))
    }

    /// The colours of an item, each with its value; those of values without a colour of their own are left out.
    pub(crate) fn of_item(&self, item: Item) -> impl Iterator<Item = (Color, Option<&str>)> {
        let has_color = |look: &&UsedColor| look.value.is_none() || look.color != REST;
        self.all.iter().filter(move |look| look.item == item).filter(has_color).map(|l| (l.color, l.value.as_deref()))
    }

    /// The number of values of an item that have no colour of their own.
    pub(crate) fn uncolored(&self, item: Item) -> usize {
        self.all.iter().filter(|look| look.item == item && look.value.is_some() && look.color == REST).count()
    }

    /// The field whose values have colours.
    pub(crate) fn field(&self, item: Item) -> Option<&str> {
        match self.spec(item) {
            ColorSpec::By(field) => Some(&field.text),
            ColorSpec::Next | ColorSpec::Fixed(..) => None,
        }
    }
}

/// The class of the colour in this place. There are at most 64 items of at most 201 values each, which fit a class.
fn class(place: usize) -> PieceClass {
    FIRST + place as PieceClass
}
