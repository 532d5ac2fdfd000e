// Tasks with their children, as forks show them: the order of a tree, and the descendants of a task.

/** A task as far as a tree needs it. @typedef {{ pid: number, parent: number | null }} Member */

/** The places of tasks by the PIDs of their parents. @param {Member[]} tasks @returns {Map<number, number[]>} */
function childrenOf(tasks) {
  /** @type {Map<number, number[]>} */
  const children = new Map();
  tasks.forEach(({ parent }, place) => {
    if (parent === null) return;
    const known = children.get(parent);
    if (known) known.push(place);
    else children.set(parent, [place]);
  });
  return children;
}

/** The places of a task and of its descendants. @param {Member[]} tasks @param {number} pid @returns {Set<number>} */
export function family(tasks, pid) {
  const children = childrenOf(tasks);
  const found = new Set(tasks.flatMap((task, place) => (task.pid === pid ? [place] : [])));
  // A set goes on with what is added to it; a task is in it once, however PIDs were used again.
  for (const place of found) for (const child of children.get(tasks[place].pid) ?? []) found.add(child);
  return found;
}

/** The places as a tree: each task behind its nearest ancestor among them, siblings in the order that they come in. The depths are those of the tree.
 * @param {number[]} places in the order of siblings @param {Member[]} tasks @returns {{ places: number[], depths: Map<number, number> }} */
export function inTree(places, tasks) {
  const chosen = new Map(places.map((place) => [tasks[place].pid, place]));
  const byPid = new Map(tasks.map((task, place) => [task.pid, place]));
  /** The nearest ancestor of a task that is chosen. @param {number} place */
  const above = (place) => {
    const seen = new Set([place]);
    for (let at = place; ; ) {
      const parent = tasks[at].parent;
      const next = parent === null ? undefined : byPid.get(parent);
      if (next === undefined || seen.has(next)) return -1;
      if (chosen.get(tasks[next].pid) === next) return next;
      seen.add(next);
      at = next;
    }
  };
  /** @type {Map<number, number[]>} */
  const below = new Map();
  for (const place of places) {
    const parent = above(place);
    const siblings = below.get(parent);
    if (siblings) siblings.push(place);
    else below.set(parent, [place]);
  }
  /** @type {number[]} */
  const order = [];
  /** @type {Map<number, number>} */
  const depths = new Map();
  /** @type {[number, number][]} */
  const open = [];
  const push = (/** @type {number} */ parent, /** @type {number} */ depth) => (below.get(parent) ?? []).toReversed().forEach((place) => open.push([place, depth]));
  push(-1, 0);
  const walk = () => {
    for (let next = open.pop(); next; next = open.pop()) {
      if (depths.has(next[0])) continue;
      order.push(next[0]);
      depths.set(...next);
      push(next[0], next[1] + 1);
    }
  };
  walk();
  // Parents that are each other's children, since a PID was used again, begin a tree of their own.
  for (const place of places) {
    if (depths.has(place)) continue;
    open.push([place, 0]);
    walk();
  }
  return { places: order, depths };
}
