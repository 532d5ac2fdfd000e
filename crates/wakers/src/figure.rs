//! The figure: the graph of the heaviest edges in layers, from wakers on the left to woken tasks on the right.

use crate::layers::{LayerPlace, Layered, LayeredEdge, Spot, layered};
use crate::text::{shown_party, weight_words};
use crate::{EdgeWeight, WakeEdge, WakeParty, WakersReport};
use draw::{Anchor, Color, Figure, Item, PT, Paint, Point, Rect, Unit, text};
use std::collections::BTreeMap;
use timeline::page::{Heading, LegendEntry, Page, Swatch};
use timeline::palette::{FAINT, INK};

const WIDTH: Unit = 842 * PT;
/// The room of a node or of a passing edge in its layer, and of an edge at the side of a node.
const NODE: Unit = 34 * PT;
const BEND: Unit = 14 * PT;
const PORT: Unit = 9 * PT;
const LETTER: Unit = 7 * PT;
/// The number of letters of a name for which the box of a node has room.
const NAME: usize = 23;
/// The number of straight parts of a curve from layer to layer.
const PARTS: i64 = 16;
/// The parts of the first curve of an edge at which its number may stand, the best first.
const PLACES: [usize; 11] = [8, 9, 7, 10, 6, 11, 5, 12, 4, 13, 3];
/// The length of the dashes of edges from interrupts.
const DASH: Unit = 2 * PT;
const GROUND: Color = Color::grey(0xee);
/// The colours of edges whose wakeups lead mostly to the CPU or cache of the waker, to another cache, or to an unknown one.
const NEAR: Color = Color::rgb(0x20, 0x50, 0xb0);
const FAR: Color = Color::rgb(0xc0, 0x50, 0x10);
const SOMEWHERE: Color = Color::grey(0x80);

/// A node of the figure: handlers of interrupts are one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum GraphNode<'r> {
    Party(&'r WakeParty),
    Interrupts,
}

/// An edge of the figure.
#[derive(Clone, Copy, Debug)]
struct DrawnEdge<'r> {
    from: GraphNode<'r>,
    to: GraphNode<'r>,
    weight: u64,
    wakeups: u64,
    near: u64,
    far: u64,
}

impl<'r> DrawnEdge<'r> {
    fn of(from: GraphNode<'r>, edge: &'r WakeEdge, by: EdgeWeight) -> DrawnEdge<'r> {
        let (near, far) = (edge.same_cpu + edge.same_llc.unwrap_or(0), edge.other_llc.unwrap_or(0));
        DrawnEdge { from, to: GraphNode::Party(&edge.woken), weight: edge.weight(by), wakeups: edge.wakeups, near, far }
    }

    fn color(&self) -> Color {
        match self.wakeups / 2 {
            half if self.far > half => FAR,
            half if self.near > half => NEAR,
            _ => SOMEWHERE,
        }
    }
}

/// The heaviest edges, at most `most` of them, and the number of all.
fn heaviest(report: &WakersReport, most: usize) -> (Vec<DrawnEdge<'_>>, usize) {
    let of_tasks = report.edges.iter().map(|edge| DrawnEdge::of(GraphNode::Party(&edge.waker), edge, report.weight));
    let mut interrupts: BTreeMap<&WakeParty, DrawnEdge<'_>> = BTreeMap::new();
    for edge in &report.interrupts {
        let one = DrawnEdge::of(GraphNode::Interrupts, edge, report.weight);
        let sum = interrupts.entry(&edge.woken).or_insert(DrawnEdge { weight: 0, wakeups: 0, near: 0, far: 0, ..one });
        sum.weight += one.weight;
        sum.wakeups += one.wakeups;
        sum.near += one.near;
        sum.far += one.far;
    }
    let mut edges: Vec<DrawnEdge> = of_tasks.chain(interrupts.into_values()).filter(|edge| edge.weight > 0).collect();
    edges.sort_by_key(|edge| std::cmp::Reverse(edge.weight));
    let all = edges.len();
    edges.truncate(most);
    (edges, all)
}

/// Draws the graph of a report with at most `most` edges.
pub fn figure(report: &WakersReport, most: usize, heading: &Heading) -> Figure {
    let (edges, all) = heaviest(report, most);
    let mut nodes: Vec<GraphNode<'_>> = edges.iter().flat_map(|edge| [edge.from, edge.to]).collect();
    nodes.sort_unstable();
    nodes.dedup();
    let number = |node: GraphNode<'_>| nodes.binary_search(&node).unwrap_or(0);
    let (loops, between): (Vec<DrawnEdge<'_>>, Vec<DrawnEdge<'_>>) =
        edges.iter().partition(|edge| edge.from == edge.to);
    let plain =
        |edge: &DrawnEdge<'_>| LayeredEdge { from: number(edge.from), to: number(edge.to), weight: edge.weight };
    let graph = layered(nodes.len(), &between.iter().map(plain).collect::<Vec<LayeredEdge>>());
    let size = Sizes::of(&graph, nodes.len());
    let legend = legend(&between);
    let texts = heading.texts(title(report, heading), note(report, &edges, all));
    let width = WIDTH.max(2 * Page::LEFT + graph.layers.len() as Unit * 96 * PT);
    let mut page = Page::with_least(width, size.height, size.height / 2, &texts, &legend);
    let plot = Rect { x: Page::LEFT / 2, y: page.top, w: page.right() - Page::LEFT / 2, h: page.height };
    if edges.is_empty() {
        let at = Point { x: plot.x + plot.w / 2, y: plot.y + plot.h / 2 };
        page.figure.text(at, LETTER, Anchor::Middle, FAINT, "no edge");
        return page.finish();
    }
    let drawing = Drawing::new(&graph, &size, plot, report.weight);
    let widest = between.iter().map(|edge| edge.weight).max().unwrap_or(1);
    drawing.edges(&mut page.figure, &between, widest);
    let label = |node: usize| label(nodes[node], &loops, report.weight);
    drawing.nodes(&mut page.figure, label);
    drawing.numbers(&mut page.figure, &between);
    page.finish()
}

fn title(report: &WakersReport, heading: &Heading) -> String {
    let weight = match report.weight {
        EdgeWeight::Wakeups => "the number of wakeups",
        EdgeWeight::Waited => "the time that woken tasks waited",
        EdgeWeight::Slept => "the time that woken tasks had slept",
    };
    format!("{}: wakeups from waker to woken, by {weight}", heading.trace)
}

fn note(report: &WakersReport, edges: &[DrawnEdge<'_>], all: usize) -> String {
    let drawn: u64 = edges.iter().map(|edge| edge.wakeups).sum();
    let wakeups = report.wakeups.unwrap_or(0);
    let interrupts = match edges.iter().any(|edge| edge.from == GraphNode::Interrupts) {
        true => " Interrupts are one node: no event shows their wakers.",
        false => "",
    };
    format!(
        "The {} heaviest of {all} edges, with {drawn} of {wakeups} wakeups. The width of an edge goes by its number.{interrupts}",
        edges.len()
    )
}

fn legend(edges: &[DrawnEdge<'_>]) -> Vec<LegendEntry> {
    let entries = [
        (NEAR, "mostly to a CPU with the last-level cache of the waker's"),
        (FAR, "mostly to a CPU with another last-level cache"),
        (SOMEWHERE, "neither, or the caches are not known"),
    ];
    let used = entries.into_iter().filter(|(color, _)| edges.iter().any(|edge| edge.color() == *color));
    let entry =
        |(color, label): (Color, &str)| LegendEntry { swatch: Swatch::Arrow(color, 0), label: label.to_owned() };
    let mut legend: Vec<LegendEntry> = used.map(entry).collect();
    if edges.iter().any(|edge| edge.from == GraphNode::Interrupts) {
        let label = "made by an interrupt or softirq handler".to_owned();
        legend.push(LegendEntry { swatch: Swatch::Dashed(INK, DASH), label });
    }
    legend
}

/// The lines in the box of a node: its name, and its wakeups of itself.
fn label(node: GraphNode<'_>, loops: &[DrawnEdge<'_>], weight: EdgeWeight) -> (String, Option<String>) {
    let name = match node {
        GraphNode::Party(party) if party.group.is_some() => shown_party(party, NAME),
        GraphNode::Party(party) => party.name(),
        GraphNode::Interrupts => "interrupts".to_owned(),
    };
    let own = loops.iter().find(|edge| edge.from == node);
    (name, own.map(|edge| format!("itself: {}", weight_words(edge.weight, weight != EdgeWeight::Wakeups))))
}

/// The heights of the parts of a figure.
struct Sizes {
    /// The height of each node's box.
    boxes: Vec<Unit>,
    /// The height of the highest layer.
    height: Unit,
}

impl Sizes {
    fn of(graph: &Layered, nodes: usize) -> Sizes {
        let mut ports = vec![[0 as Unit; 2]; nodes];
        for route in &graph.routes {
            for (end, beside) in [(route.first(), route.get(1)), (route.last(), route.iter().rev().nth(1))] {
                let (Some((layer, place)), Some((other, _))) = (end, beside) else { continue };
                if let Some(Spot::Node(node)) = graph.layers[*layer].get(*place) {
                    ports[*node][usize::from(other > layer)] += 1;
                }
            }
        }
        let boxes: Vec<Unit> = ports.iter().map(|[left, right]| (left.max(right) * PORT + PORT).max(22 * PT)).collect();
        let mut sizes = Sizes { boxes, height: 0 };
        let heights = graph.layers.iter().map(|layer| layer.iter().map(|spot| sizes.room(*spot)).sum::<Unit>());
        sizes.height = heights.max().unwrap_or(0).max(120 * PT);
        sizes
    }

    /// The height that a place takes in its layer.
    fn room(&self, spot: Spot) -> Unit {
        match spot {
            Spot::Node(node) => self.boxes[node].max(NODE - 12 * PT) + 12 * PT,
            Spot::Bend(_) => BEND,
        }
    }
}

/// The graph on its page.
struct Drawing<'g> {
    graph: &'g Layered,
    weight: EdgeWeight,
    /// The box of each place; that of a passing edge has no height.
    boxes: Vec<Vec<Rect>>,
    /// The points of each edge, from the waker to the woken task.
    curves: Vec<Vec<Point>>,
}

impl<'g> Drawing<'g> {
    fn new(graph: &'g Layered, sizes: &Sizes, plot: Rect, weight: EdgeWeight) -> Drawing<'g> {
        let count = graph.layers.len().max(1) as Unit;
        let pitch = plot.w / count;
        let w = (pitch * 58 / 100).min(96 * PT);
        let place = |layer: usize, spots: &Vec<Spot>| {
            let total: Unit = spots.iter().map(|spot| sizes.room(*spot)).sum();
            // A layer with little in it is spread, and one on a low page is pressed.
            let stretch = |length: Unit| (i64::from(length) * i64::from(plot.h) / i64::from(total.max(1))) as Unit;
            let mut y = 0;
            let boxes = spots.iter().map(|spot| {
                let room = stretch(sizes.room(*spot));
                let h = match spot {
                    Spot::Node(node) => sizes.boxes[*node].min(room * 9 / 10),
                    Spot::Bend(_) => 0,
                };
                y += room;
                Rect { x: plot.x + layer as Unit * pitch + (pitch - w) / 2, y: plot.y + y - room / 2 - h / 2, w, h }
            });
            boxes.collect::<Vec<Rect>>()
        };
        let boxes: Vec<Vec<Rect>> = graph.layers.iter().enumerate().map(|(layer, spots)| place(layer, spots)).collect();
        let curves = curves(graph, &boxes);
        Drawing { graph, weight, boxes, curves }
    }

    fn edges(&self, figure: &mut Figure, edges: &[DrawnEdge<'_>], widest: u64) {
        // The heaviest edges are the first, and drawn over the others.
        for (edge, points) in edges.iter().zip(&self.curves).rev() {
            let share = (edge.weight as f64 / widest.max(1) as f64).sqrt();
            let width = PT / 2 + (share * 300.0) as Unit;
            let [.., before, end] = points[..] else { continue };
            let head = 4 * PT + width / 2;
            let forth = if end.x > before.x { 1 } else { -1 };
            let tip = |dx: Unit, dy: Unit| Point { x: end.x - forth * dx, y: end.y + dy };
            let mut line = points.clone();
            // The line ends within the head, which has the tip.
            if let Some(last) = line.last_mut() {
                *last = tip(head * 8 / 10, 0);
            }
            line.retain(|point| (end.x - point.x) * forth >= head * 8 / 10);
            let (stroke, dash) = (edge.color(), if edge.from == GraphNode::Interrupts { DASH } else { 0 });
            figure.push(Item::Polylines { stroke, width, dash, polylines: vec![line] });
            let corners = vec![tip(0, 0), tip(head, -head / 2), tip(head, head / 2)];
            figure.push(Item::Polygons { fill: Paint::Solid(stroke), polygons: vec![corners] });
        }
    }

    fn nodes(&self, figure: &mut Figure, label: impl Fn(usize) -> (String, Option<String>)) {
        let all = self.graph.layers.iter().zip(&self.boxes).flat_map(|(spots, boxes)| spots.iter().zip(boxes));
        let nodes: Vec<(usize, Rect)> = all
            .filter_map(|(spot, rect)| match spot {
                Spot::Node(node) => Some((*node, *rect)),
                Spot::Bend(_) => None,
            })
            .collect();
        let rects = nodes.iter().map(|(_, rect)| *rect).collect();
        figure.push(Item::Rects { fill: Paint::Solid(GROUND), rects });
        let outline = |(_, r): &(usize, Rect)| {
            let corner = |x, y| Point { x, y };
            let (right, bottom) = (r.x + r.w, r.y + r.h);
            vec![corner(r.x, r.y), corner(right, r.y), corner(right, bottom), corner(r.x, bottom), corner(r.x, r.y)]
        };
        let polylines = nodes.iter().map(outline).collect();
        figure.push(Item::Polylines { stroke: FAINT, width: 40, dash: 0, polylines });
        for (node, rect) in nodes {
            let (name, own) = label(node);
            let middle = Point { x: rect.x + rect.w / 2, y: rect.y + rect.h / 2 + LETTER / 3 };
            let up = if own.is_some() { LETTER * 6 / 10 } else { 0 };
            let mut write = |text: &str, dy: Unit, fill: Color| {
                let fitting = text::fit(&text::printable(text), LETTER, rect.w - 4 * PT);
                figure.text(Point { y: middle.y + dy, ..middle }, LETTER, Anchor::Middle, fill, &fitting);
            };
            write(&name, -up, INK);
            if let Some(own) = own {
                write(&own, up, FAINT);
            }
        }
    }

    /// Writes the number of each edge over its first part where no other number is: those of the heaviest edges have the first choice,
    /// and one without any room is left out.
    fn numbers(&self, figure: &mut Figure, edges: &[DrawnEdge<'_>]) {
        let size = LETTER * 6 / 7;
        let mut taken: Vec<Rect> = self.boxes.iter().flatten().filter(|rect| rect.h > 0).copied().collect();
        for (edge, points) in edges.iter().zip(&self.curves) {
            let text = weight_words(edge.weight, self.weight != EdgeWeight::Wakeups);
            let w = text::width(&text, size) + PT;
            let ground = |at: &Point| Rect { x: at.x - w / 2, y: at.y - size / 2, w, h: size };
            // Numbers that touch are read as one.
            let room = |at: &Point| Rect { y: at.y - size * 3 / 4, h: size * 3 / 2, ..ground(at) };
            let is_free = |at: &&Point| !taken.iter().any(|other| overlap(*other, room(at)));
            let Some(at) = PLACES.iter().filter_map(|place| points.get(*place)).find(is_free) else { continue };
            let ground = ground(at);
            taken.push(ground);
            figure.push(Item::Rects { fill: Paint::Solid(Color::grey(0xff)), rects: vec![ground] });
            figure.text(Point { x: at.x, y: at.y + size / 3 }, size, Anchor::Middle, edge.color(), &text);
        }
    }
}

fn overlap(a: Rect, b: Rect) -> bool {
    a.x < b.x + b.w && b.x < a.x + a.w && a.y < b.y + b.h && b.y < a.y + a.h
}

/// The points of each edge: curves from the side of a box through the places between to the side of the other box.
fn curves(graph: &Layered, boxes: &[Vec<Rect>]) -> Vec<Vec<Point>> {
    let middle = |(layer, place): LayerPlace| boxes[layer][place].y + boxes[layer][place].h / 2;
    // The ends of edges at each side of each box, in the order of the places to which they lead.
    let mut sides: BTreeMap<(LayerPlace, bool), Vec<(Unit, usize)>> = BTreeMap::new();
    for (nth, route) in graph.routes.iter().enumerate() {
        let [from, .., to] = route[..] else { continue };
        let (second, last_but_one) = (route[1], route[route.len() - 2]);
        sides.entry((from, second.0 > from.0)).or_default().push((middle(second), nth));
        sides.entry((to, last_but_one.0 > to.0)).or_default().push((middle(last_but_one), nth));
    }
    sides.values_mut().for_each(|ends| ends.sort_unstable());
    let port = |at: LayerPlace, is_right: bool, nth: usize| {
        let rect = boxes[at.0][at.1];
        let ends = sides.get(&(at, is_right)).map_or(&[][..], Vec::as_slice);
        let place = ends.iter().position(|(_, edge)| *edge == nth).unwrap_or(0) as Unit;
        let x = if is_right { rect.x + rect.w } else { rect.x };
        Point { x, y: rect.y + rect.h * (place + 1) / (ends.len() as Unit + 1) }
    };
    let curve = |(nth, route): (usize, &Vec<LayerPlace>)| {
        let [from, .., to] = route[..] else { return Vec::new() };
        let mut knots = vec![port(from, route[1].0 > from.0, nth)];
        for at in &route[1..route.len() - 1] {
            // A passing edge is level where the boxes of the layer are.
            let rect = boxes[at.0][at.1];
            let (left, right) = (Point { x: rect.x, y: rect.y }, Point { x: rect.x + rect.w, y: rect.y });
            knots.extend(if to.0 > from.0 { [left, right] } else { [right, left] });
        }
        knots.push(port(to, route[route.len() - 2].0 > to.0, nth));
        knots.chunks(2).flat_map(|pair| bend(pair[0], pair[pair.len() - 1])).collect()
    };
    graph.routes.iter().enumerate().map(curve).collect()
}

/// The points of a curve that is level at both ends.
fn bend(from: Point, to: Point) -> impl Iterator<Item = Point> {
    (0..=PARTS).map(move |part| {
        // The cubic from 0 to 1 that is level at both ends, in integers: 3t² − 2t³.
        let (dx, dy) = (i64::from(to.x - from.x), i64::from(to.y - from.y));
        let level = part * part * (3 * PARTS - 2 * part);
        let y = i64::from(from.y) + dy * level / (PARTS * PARTS * PARTS);
        Point { x: (i64::from(from.x) + dx * part / PARTS) as Unit, y: y as Unit }
    })
}
