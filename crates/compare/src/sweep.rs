//! Sweeps: groups that differ in one number, the parameter, and in the variant.

use crate::Row;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

/// The text that stands for the parameter, in the names of variants and in patterns of files.
pub const PARAMETER: &str = "{}";

/// The least number of groups without a second variant that are taken for a sweep.
const FEWEST_ALONE: usize = 3;

/// The groups of a comparison in order of the variant and of the parameter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Sweep {
    /// The names of the variants, the first of which is the base. In the name of groups that were found by their names, `{}`
    /// stands in the place of the parameter.
    pub variants: Vec<String>,
    /// The values of the parameter in ascending order.
    pub points: Vec<SweepPoint>,
}

/// A value of the parameter, with the groups that were recorded at it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SweepPoint {
    /// The value of the parameter, as the names have it.
    pub parameter: String,
    /// The name of the group of each variant, in the order of the variants.
    pub groups: Vec<String>,
}

impl SweepPoint {
    /// The parameter as a number.
    pub fn value(&self) -> f64 {
        self.parameter.parse().unwrap_or(0.0)
    }
}

/// A name, split around one of its numbers.
struct Split<'n> {
    template: String,
    number: &'n str,
}

impl Sweep {
    /// Returns the sweep that groups with these names are; nothing if they are none. The names of a sweep differ in one number
    /// at the same place, and each variant has a group at each of two values or more; one variant alone has three.
    /// Where several numbers qualify, the one with the most values is the parameter, and of these the last.
    pub fn of_names(names: &[&str]) -> Option<Sweep> {
        let places = names.iter().map(|name| numbers(name).len()).min()?;
        let sweeps = (0..places).filter_map(|place| {
            let groups = names.iter().map(|name| {
                let split = split(name, place)?;
                Some((split.template, split.number.to_owned(), (*name).to_owned()))
            });
            let sweep = Sweep::of_grid(groups.collect::<Option<Vec<_>>>()?)?;
            (sweep.variants.len() > 1 || names.len() >= FEWEST_ALONE).then_some(sweep)
        });
        sweeps.max_by_key(|sweep| sweep.points.len())
    }

    /// Returns the sweep of groups with a variant, a parameter and a name each; nothing unless each variant has one group at
    /// each of two values or more.
    fn of_grid(groups: Vec<(String, String, String)>) -> Option<Sweep> {
        let count = groups.len();
        let mut variants: Vec<String> = Vec::new();
        let mut parameters: Vec<String> = Vec::new();
        let mut by: BTreeMap<(String, String), String> = BTreeMap::new();
        for (variant, parameter, name) in groups {
            if !variants.contains(&variant) {
                variants.push(variant.clone());
            }
            if !parameters.contains(&parameter) {
                parameters.push(parameter.clone());
            }
            by.insert((variant, parameter), name);
        }
        if by.len() != count || variants.len() * parameters.len() != count || parameters.len() < 2 {
            return None;
        }
        let point = |parameter: String| {
            let of = |variant: &String| by.get(&(variant.clone(), parameter.clone())).cloned();
            let groups = variants.iter().map(of).collect::<Option<Vec<_>>>()?;
            Some(SweepPoint { parameter, groups })
        };
        let mut points = parameters.into_iter().map(point).collect::<Option<Vec<_>>>()?;
        points.sort_by(|a, b| a.value().total_cmp(&b.value()).then_with(|| a.parameter.cmp(&b.parameter)));
        Some(Sweep { variants, points })
    }

    /// Returns the sweep of variants whose files were found by a pattern with [`PARAMETER`], each with the files at each
    /// value; and the groups, in its order. A value that a variant lacks is left out, with a note. Nothing if the variants
    /// share fewer than two values.
    pub fn of_files(variants: &[(String, SweptFiles)]) -> Option<SweepFiles> {
        let has_all = |parameter: &String| variants.iter().all(|(_, found)| found.contains_key(parameter));
        let (mut grid, mut groups, mut notes) = (Vec::new(), Vec::new(), Vec::new());
        for (variant, found) in variants {
            for (parameter, files) in found {
                if !has_all(parameter) {
                    notes.push(format!("{variant} at {parameter} is left out: not every variant has runs there"));
                    continue;
                }
                let name = format!("{variant}-{parameter}");
                grid.push((variant.clone(), parameter.clone(), name.clone()));
                groups.push((name, files.clone()));
            }
        }
        Some(SweepFiles { sweep: Sweep::of_grid(grid)?, groups, notes })
    }

    /// The pairs of groups to be compared, each with the base first, by their names: each further variant with the first at
    /// the same value; of one variant, each value with the first.
    pub fn pairs(&self) -> Vec<(&str, &str)> {
        let all = |variant: usize| self.points.iter().map(move |point| point.groups[variant].as_str());
        match self.variants.len() {
            1 => all(0).next().into_iter().flat_map(|first| all(0).skip(1).map(move |other| (first, other))).collect(),
            variants => (1..variants).flat_map(|variant| all(0).zip(all(variant))).collect(),
        }
    }

    /// The values of the parameter at which a group other than the base stands, in the order of [`Sweep::pairs`], for each
    /// variant that is compared: its name, that of its base, and the values.
    pub(crate) fn series(&self) -> Vec<(&str, String, Vec<&str>)> {
        let parameters: Vec<&str> = self.points.iter().map(|point| point.parameter.as_str()).collect();
        match self.variants.as_slice() {
            [alone] => vec![(alone, format!("at {}", parameters[0]), parameters[1..].to_vec())],
            [base, others @ ..] => {
                others.iter().map(|other| (other.as_str(), base.clone(), parameters.clone())).collect()
            }
            [] => Vec::new(),
        }
    }
}

/// The files of each value of the parameter.
pub type SweptFiles = BTreeMap<String, Vec<PathBuf>>;

/// A sweep whose files were found by patterns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SweepFiles {
    /// The sweep, with the names of its groups.
    pub sweep: Sweep,
    /// The name and the files of each group.
    pub groups: Vec<(String, Vec<PathBuf>)>,
    /// A message for each group that is left out.
    pub notes: Vec<String>,
}

/// Finds the files that match a pattern with [`PARAMETER`] in one part of its path, by the number that stands there. A `*` in the
/// same part or in the file name stands for anything.
pub fn find(pattern: &str) -> std::io::Result<SweptFiles> {
    let path = Path::new(pattern);
    let parts: Vec<Component<'_>> = path.components().collect();
    let is_place = |part: &&Component<'_>| part.as_os_str().to_string_lossy().contains(PARAMETER);
    let at = parts.iter().take_while(|part| !is_place(part)).count();
    let folder: PathBuf = parts.iter().take(at).collect();
    let Some(place) = parts.get(at).map(|part| part.as_os_str().to_string_lossy().into_owned()) else {
        return Ok(SweptFiles::new());
    };
    let rest: PathBuf = parts.iter().skip(at + 1).collect();
    let mut found = SweptFiles::new();
    for name in entries(&folder)? {
        let Some(parameter) = parameter_of(&place, &name) else { continue };
        let here = folder.join(&name);
        let files = if rest.as_os_str().is_empty() { vec![here] } else { matching(&here.join(&rest)) };
        found.entry(parameter).or_default().extend(files);
    }
    found.retain(|_, files| !files.is_empty());
    found.values_mut().for_each(|files| files.sort());
    Ok(found)
}

/// The names in a folder.
fn entries(folder: &Path) -> std::io::Result<Vec<String>> {
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let names = std::fs::read_dir(folder)?.flatten();
    Ok(names.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect())
}

/// The files with a name in which `*` stands for anything; none in a folder that cannot be read.
fn matching(pattern: &Path) -> Vec<PathBuf> {
    let name = pattern.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let folder = pattern.parent().unwrap_or(Path::new("."));
    let names = entries(folder).unwrap_or_default().into_iter();
    names.filter(|other| session::patterns::matches(&name, other)).map(|other| folder.join(other)).collect()
}

/// The number in a name that stands in the place of the parameter; nothing if the name does not match.
fn parameter_of(pattern: &str, name: &str) -> Option<String> {
    let filled = |number: &&str| session::patterns::matches(&pattern.replacen(PARAMETER, number, 1), name);
    // Integers first: the point behind a number usually belongs to the name of a file.
    let integers = name.split(|c: char| !c.is_ascii_digit()).filter(|number| !number.is_empty());
    integers.chain(numbers(name).into_iter().map(|(_, number)| number)).find(filled).map(str::to_owned)
}

/// The numbers in a name, each with its place: digits, and a fraction where digits follow a point.
fn numbers(name: &str) -> Vec<(usize, &str)> {
    let digits = |from: usize| name[from..].bytes().take_while(u8::is_ascii_digit).count();
    let (mut found, mut at) = (Vec::new(), 0);
    while at < name.len() {
        let whole = if name.is_char_boundary(at) { digits(at) } else { 0 };
        if whole == 0 {
            at += 1;
            continue;
        }
        let mut end = at + whole;
        if name[end..].starts_with('.') && digits(end + 1) > 0 {
            end += 1 + digits(end + 1);
        }
        found.push((at, &name[at..end]));
        at = end;
    }
    found
}

/// Splits a name around its number at this place.
fn split(name: &str, place: usize) -> Option<Split<'_>> {
    let (at, number) = *numbers(name).get(place)?;
    let template = format!("{}{PARAMETER}{}", &name[..at], &name[at + number.len()..]);
    Some(Split { template, number })
}

/// The rows of one metric at each value of the parameter.
pub(crate) struct SweptMetric<'r> {
    /// The name of the metric, with its unit.
    pub(crate) name: &'r str,
    /// The value of the parameter, and the row of the comparison there.
    pub(crate) rows: Vec<(&'r str, &'r Row)>,
}

/// The rows of a variant by metric, in the order of the first point that has each. `points` has the parameter and the rows of the
/// comparison there. Metrics that are zero in all runs are left out.
pub(crate) fn by_metric<'r>(points: &[(&'r str, &'r [Row])]) -> Vec<SweptMetric<'r>> {
    let mut metrics: Vec<(&'r str, SweptMetric<'r>)> = Vec::new();
    for (parameter, rows) in points {
        for row in *rows {
            let key: &str = &row.metric.key;
            let at = metrics.iter().position(|(other, _)| *other == key).unwrap_or_else(|| {
                metrics.push((key, SweptMetric { name: &row.metric.name, rows: Vec::new() }));
                metrics.len() - 1
            });
            metrics[at].1.rows.push((*parameter, row));
        }
    }
    let is_something = |metric: &SweptMetric<'_>| metric.rows.iter().any(|(_, row)| !crate::table::is_nothing(row));
    metrics.into_iter().map(|(_, metric)| metric).filter(is_something).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(names: &[&str]) -> Option<(Vec<String>, Vec<String>)> {
        let sweep = Sweep::of_names(names)?;
        Some((sweep.variants, sweep.points.into_iter().map(|point| point.parameter).collect()))
    }

    fn texts(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn names_that_differ_in_one_number_are_a_sweep() {
        let grid = ["off-1g", "on-1g", "off-16g", "on-16g", "off-2g", "on-2g"];
        assert_eq!(of(&grid), Some((texts(&["off-{}g", "on-{}g"]), texts(&["1", "2", "16"]))));
        assert_eq!(of(&["hb-1", "hb-2", "hb-4"]), Some((texts(&["hb-{}"]), texts(&["1", "2", "4"]))));
        assert_eq!(of(&["v1", "v2"]), None, "two groups are base and new");
        assert_eq!(of(&["a-1", "a-2", "b-1"]), None, "b has no group at 2");
        assert_eq!(of(&["a-1", "b-1"]), None, "one value");
        assert_eq!(of(&["base", "new", "other"]), None);
        // Two numbers: the one with more values, else the last.
        assert_eq!(of(&["6.1-1", "6.1-2", "6.12-1", "6.12-2"]).unwrap().0, texts(&["6.1-{}", "6.12-{}"]));
        let more = ["v1-8", "v2-8", "v3-8", "v1-9", "v2-9", "v3-9"];
        assert_eq!(of(&more).unwrap().1, texts(&["1", "2", "3"]));
        assert_eq!(of(&["\u{e9}1", "\u{e9}0.5", "\u{e9}2"]).unwrap().1, texts(&["0.5", "1", "2"]));
    }

    #[test]
    fn pairs_are_those_of_one_value() {
        let sweep = Sweep::of_names(&["off-1", "on-1", "off-2", "on-2"]).unwrap();
        assert_eq!(sweep.pairs(), [("off-1", "on-1"), ("off-2", "on-2")]);
        let alone = Sweep::of_names(&["hb-4", "hb-1", "hb-2"]).unwrap();
        assert_eq!(alone.pairs(), [("hb-1", "hb-2"), ("hb-1", "hb-4")]);
        assert_eq!(alone.series(), [("hb-{}", "at 1".to_owned(), vec!["2", "4"])]);
    }

    #[test]
    fn a_pattern_finds_the_parameter_in_files_and_folders() {
        assert_eq!(parameter_of("hb-{}g.*.dat", "hb-16g.2.dat").as_deref(), Some("16"));
        assert_eq!(parameter_of("hb-{}.*.dat", "hb-4.2.dat").as_deref(), Some("4"));
        assert_eq!(parameter_of("x{}.dat", "x0.5.dat").as_deref(), Some("0.5"));
        assert_eq!(parameter_of("hb-{}g.*.dat", "hb-g.2.dat"), None);
        let folder = tempfile::tempdir().unwrap();
        for file in ["a-1g.1.dat", "a-1g.2.dat", "a-2g.1.dat", "b-1g.1.dat"] {
            std::fs::write(folder.path().join(file), "").unwrap();
        }
        for parameter in [1, 8] {
            let here = folder.path().join(format!("runs-{parameter}"));
            std::fs::create_dir(&here).unwrap();
            std::fs::write(here.join("new.1.dat"), "").unwrap();
        }
        let find = |pattern: &str| find(&folder.path().join(pattern).to_string_lossy()).unwrap();
        let found = find("a-{}g.*.dat");
        assert_eq!(
            found.iter().map(|(at, files)| (at.as_str(), files.len())).collect::<Vec<_>>(),
            [("1", 2), ("2", 1)]
        );
        assert_eq!(find("runs-{}/new.*.dat").keys().collect::<Vec<_>>(), ["1", "8"]);
        assert!(find("c-{}.dat").is_empty());
        let swept = Sweep::of_files(&[("a".into(), found), ("b".into(), find("b-{}g.*.dat"))]);
        assert_eq!(swept, None, "they share one value");
    }
}
