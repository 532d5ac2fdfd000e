//! A directed graph in layers: most edges lead from one layer to a later one, and few of them cross.

/// An edge between two nodes, which are numbered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LayeredEdge {
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) weight: u64,
}

/// A place in a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spot {
    /// The place of a node.
    Node(usize),
    /// The place of an edge that passes the layer.
    Bend(usize),
}

/// A place by its layer and its position in that, from 0.
pub(crate) type LayerPlace = (usize, usize);

/// The layers of a graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Layered {
    /// The places of each layer, in their order.
    pub(crate) layers: Vec<Vec<Spot>>,
    /// The place of each node.
    pub(crate) nodes: Vec<LayerPlace>,
    /// The places of each edge from its first node to its second one.
    pub(crate) routes: Vec<Vec<LayerPlace>>,
}

/// The number of times that every layer is put in the order of its neighbours.
const SWEEPS: usize = 24;

/// Returns the layers of a graph without edges from a node to itself.
pub(crate) fn layered(nodes: usize, edges: &[LayeredEdge]) -> Layered {
    let ranks = ranks(nodes, edges);
    // Each edge from the node of the lower rank to that of the higher one.
    let ends = |edge: &LayeredEdge| match ranks[edge.from] < ranks[edge.to] {
        true => (edge.from, edge.to),
        false => (edge.to, edge.from),
    };
    let directed: Vec<(usize, usize)> = edges.iter().map(ends).collect();
    let layer_of = layers_of(&ranks, &directed);
    let count = layer_of.iter().map(|layer| layer + 1).max().unwrap_or(0);
    let mut layers: Vec<Vec<Spot>> = vec![Vec::new(); count];
    let mut by_rank: Vec<usize> = (0..nodes).collect();
    by_rank.sort_by_key(|node| ranks[*node]);
    by_rank.into_iter().for_each(|node| layers[layer_of[node]].push(Spot::Node(node)));
    // The neighbours of each place are the steps of the edges: from a place of one layer to one of the next.
    let mut steps: Vec<(usize, Spot, Spot)> = Vec::new();
    for (nth, (from, to)) in directed.iter().enumerate() {
        let mut at = Spot::Node(*from);
        let between = layers.iter_mut().enumerate().take(layer_of[*to]).skip(layer_of[*from] + 1);
        for (layer, spots) in between {
            spots.push(Spot::Bend(nth));
            steps.push((layer - 1, at, Spot::Bend(nth)));
            at = Spot::Bend(nth);
        }
        steps.push((layer_of[*to] - 1, at, Spot::Node(*to)));
    }
    order(&mut layers, &steps);
    let place = |layer: usize, spot: Spot| (layer, layers[layer].iter().position(|at| *at == spot).unwrap_or(0));
    let routes = edges.iter().zip(&directed).enumerate().map(|(nth, (edge, (from, to)))| {
        let bends = layer_of[*from] + 1..layer_of[*to];
        let mut route = vec![place(layer_of[*from], Spot::Node(*from))];
        route.extend(bends.map(|layer| place(layer, Spot::Bend(nth))));
        route.push(place(layer_of[*to], Spot::Node(*to)));
        if edge.from != *from {
            route.reverse();
        }
        route
    });
    let routes = routes.collect();
    let nodes = (0..nodes).map(|node| place(layer_of[node], Spot::Node(node))).collect();
    Layered { layers, nodes, routes }
}

/// Ranks the nodes so that little weight leads from a higher rank to a lower one (the greedy heuristic of Eades, Lin and Smyth).
fn ranks(nodes: usize, edges: &[LayeredEdge]) -> Vec<usize> {
    let mut left: Vec<usize> = (0..nodes).collect();
    let (mut first, mut last) = (Vec::new(), Vec::new());
    while !left.is_empty() {
        let weight = |node: usize| {
            let inside = |other: usize| left.contains(&other);
            let of = |edge: &&LayeredEdge| inside(edge.from) && inside(edge.to);
            let sum = |test: &dyn Fn(&LayeredEdge) -> bool| {
                edges
                    .iter()
                    .filter(of)
                    .filter(|edge| test(edge))
                    .map(|edge| i128::from(edge.weight.max(1)))
                    .sum::<i128>()
            };
            (sum(&|edge| edge.from == node), sum(&|edge| edge.to == node))
        };
        let weights: Vec<(usize, (i128, i128))> = left.iter().map(|node| (*node, weight(*node))).collect();
        let sink = weights.iter().find(|(_, (out, _))| *out == 0);
        let source = weights.iter().find(|(_, (_, into))| *into == 0);
        let node = match (source, sink) {
            (Some((node, _)), _) => {
                first.push(*node);
                *node
            }
            (None, Some((node, _))) => {
                last.push(*node);
                *node
            }
            (None, None) => {
                // The first one of the greatest surplus.
                let most =
                    weights.iter().rev().max_by_key(|(_, (out, into))| out - into).map_or(left[0], |(node, _)| *node);
                first.push(most);
                most
            }
        };
        left.retain(|other| *other != node);
    }
    let mut ranks = vec![0; nodes];
    for (rank, node) in first.into_iter().chain(last.into_iter().rev()).enumerate() {
        ranks[node] = rank;
    }
    ranks
}

/// The layer of each node: one behind the latest of the nodes before it. Nodes with none before them stand just before the first
/// of those behind them.
fn layers_of(ranks: &[usize], directed: &[(usize, usize)]) -> Vec<usize> {
    let mut layers = vec![0; ranks.len()];
    let mut by_rank: Vec<usize> = (0..ranks.len()).collect();
    by_rank.sort_by_key(|node| ranks[*node]);
    for node in &by_rank {
        let before = directed.iter().filter(|(_, to)| to == node).map(|(from, _)| layers[*from] + 1);
        layers[*node] = before.max().unwrap_or(0);
    }
    for node in &by_rank {
        if directed.iter().all(|(_, to)| to != node) {
            let behind = directed.iter().filter(|(from, _)| from == node).map(|(_, to)| layers[*to] - 1);
            layers[*node] = behind.min().unwrap_or(0);
        }
    }
    layers
}

/// Puts each layer in the order of the mean place of its neighbours, in turn from the first layer to the last one and back, and
/// keeps the order with the fewest crossings.
fn order(layers: &mut [Vec<Spot>], steps: &[(usize, Spot, Spot)]) {
    let mut best = layers.to_vec();
    let mut least = crossings(layers, steps);
    for sweep in 0..SWEEPS {
        let forth = sweep % 2 == 0;
        for nth in 1..layers.len() {
            let layer = if forth { nth } else { layers.len() - 1 - nth };
            let beside = if forth { layer - 1 } else { layer + 1 };
            let place = |spot: Spot| {
                let at = layers[beside].iter().position(|other| *other == spot)?;
                Some((at as f64 + 0.5) / layers[beside].len() as f64)
            };
            let mean = |(own, spot): (usize, &Spot)| {
                let neighbours = steps.iter().filter_map(|(from, a, b)| match forth {
                    true if *from + 1 == layer && b == spot => place(*a),
                    false if *from == layer && a == spot => place(*b),
                    _ => None,
                });
                let (sum, count) = neighbours.fold((0.0, 0u32), |(sum, count), place| (sum + place, count + 1));
                let own = (own as f64 + 0.5) / layers[layer].len() as f64;
                (if count == 0 { own } else { sum / f64::from(count) }, *spot)
            };
            let mut places: Vec<(f64, Spot)> = layers[layer].iter().enumerate().map(mean).collect();
            places.sort_by(|(a, _), (b, _)| a.total_cmp(b));
            layers[layer] = places.into_iter().map(|(_, spot)| spot).collect();
        }
        let found = crossings(layers, steps);
        if found < least {
            (least, best) = (found, layers.to_vec());
        }
    }
    layers.clone_from_slice(&best);
}

/// The number of crossings of edges between neighbouring layers.
fn crossings(layers: &[Vec<Spot>], steps: &[(usize, Spot, Spot)]) -> usize {
    let place = |layer: usize, spot: Spot| layers[layer].iter().position(|at| *at == spot);
    let placed: Vec<_> = steps.iter().map(|(from, a, b)| (*from, place(*from, *a), place(*from + 1, *b))).collect();
    let crosses = |(nth, a): (usize, &(usize, Option<usize>, Option<usize>))| {
        let later = placed[nth + 1..].iter();
        later.filter(|b| a.0 == b.0 && ((a.1 < b.1 && a.2 > b.2) || (a.1 > b.1 && a.2 < b.2))).count()
    };
    placed.iter().enumerate().map(crosses).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(nodes: usize, edges: &[(usize, usize, u64)]) -> Layered {
        let edges: Vec<LayeredEdge> =
            edges.iter().map(|(from, to, weight)| LayeredEdge { from: *from, to: *to, weight: *weight }).collect();
        layered(nodes, &edges)
    }

    #[test]
    fn a_chain_has_a_layer_for_each_node() {
        let layers = graph(3, &[(2, 0, 5), (0, 1, 5)]).layers;
        assert_eq!(layers, [[Spot::Node(2)], [Spot::Node(0)], [Spot::Node(1)]]);
    }

    #[test]
    fn the_lighter_edge_of_a_pair_leads_back() {
        let found = graph(2, &[(0, 1, 3), (1, 0, 9)]);
        assert_eq!(found.nodes, [(1, 0), (0, 0)]);
        assert_eq!(found.routes, [[(1, 0), (0, 0)], [(0, 0), (1, 0)]]);
    }

    #[test]
    fn an_edge_over_a_layer_passes_it_beside_the_node() {
        let found = graph(3, &[(0, 1, 1), (1, 2, 1), (0, 2, 1)]);
        assert_eq!(found.layers[1].len(), 2);
        assert_eq!(found.routes[2].len(), 3);
    }

    #[test]
    fn neighbours_are_put_side_by_side() {
        // 0 leads to 3 and 1 to 2: without crossing.
        let found = graph(4, &[(0, 3, 1), (1, 2, 1)]);
        assert_eq!(found.nodes[0].1, found.nodes[3].1);
        assert_eq!(found.nodes[1].1, found.nodes[2].1);
    }
}
