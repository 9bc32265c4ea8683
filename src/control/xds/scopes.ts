/**
 * Knows which nodes can be reached from each root. The cost of a change is in proportion
 * to the affected nodes: new ones are walked once, and if an edge is removed, only nodes below it are
 * checked for another path.
 */
import { SetMap } from '../../ground/base/set-map.ts'
import type { Edge, EdgeNode } from './edges.ts'

/** The nodes that a change has added to a scope and removed from it. */
export interface ScopeChange {
  readonly entered: ReadonlySet<EdgeNode>
  readonly left: ReadonlySet<EdgeNode>
}

class GatewayScope {
  readonly root: EdgeNode
  readonly members = new Set<EdgeNode>()
  /** Number of users that have opened the scope. */
  holders = 0

  constructor(root: EdgeNode) {
    this.root = root
  }
}

export class Scopes {
  readonly #out = new SetMap<EdgeNode, EdgeNode>()
  readonly #in = new SetMap<EdgeNode, EdgeNode>()
  readonly #scopes = new Map<EdgeNode, GatewayScope>()

  /** Returns the set of nodes that can be reached from a root. The set is kept up to date until `close`. */
  open(root: EdgeNode): ReadonlySet<EdgeNode> {
    let scope = this.#scopes.get(root)
    if (scope === undefined) {
      scope = new GatewayScope(root)
      this.#scopes.set(root, scope)
      this.#walk(scope.members, [root], new Set())
    }
    scope.holders++
    return scope.members
  }

  close(root: EdgeNode): void {
    const scope = this.#scopes.get(root)
    if (scope === undefined) return
    scope.holders--
    if (scope.holders === 0) this.#scopes.delete(root)
  }

  /** Roots of the open scopes. */
  roots(): Iterable<EdgeNode> {
    return this.#scopes.keys()
  }

  /** Members of an open scope. */
  members(root: EdgeNode): ReadonlySet<EdgeNode> {
    return this.#scopes.get(root)?.members ?? new Set()
  }

  /** The nodes that a node leads to. */
  below(node: EdgeNode): Iterable<EdgeNode> {
    return this.#out.get(node)
  }

  /** Removes and adds edges; an edge in both lists stays. Returns the changes by root. */
  change(removed: readonly Edge[], added: readonly Edge[]): ReadonlyMap<EdgeNode, ScopeChange> {
    for (const [from, to] of removed) {
      this.#out.delete(from, to)
      this.#in.delete(to, from)
    }
    for (const [from, to] of added) {
      this.#out.add(from, to)
      this.#in.add(to, from)
    }
    const gone = removed.filter(([from, to]) => !this.#out.get(from).has(to))
    const changes = new Map<EdgeNode, ScopeChange>()
    for (const scope of this.#scopes.values()) {
      const entered = this.#enter(scope, added)
      const left = this.#leave(scope, gone)
      for (const node of left) if (entered.delete(node)) left.delete(node)
      if (entered.size > 0 || left.size > 0) changes.set(scope.root, { entered, left })
    }
    return changes
  }

  #enter({ members }: GatewayScope, added: readonly Edge[]): Set<EdgeNode> {
    const entered = new Set<EdgeNode>()
    for (const [from, to] of added) {
      if (members.has(from) && !members.has(to)) this.#walk(members, [to], entered)
    }
    return entered
  }

  /** Adds `starts` and the nodes below them to the members. */
  #walk(members: Set<EdgeNode>, starts: readonly EdgeNode[], entered: Set<EdgeNode>): void {
    const stack = [...starts]
    for (let node = stack.pop(); node !== undefined; node = stack.pop()) {
      if (members.has(node)) continue
      members.add(node)
      entered.add(node)
      for (const next of this.#out.get(node)) if (!members.has(next)) stack.push(next)
    }
  }

  #leave({ root, members }: GatewayScope, gone: readonly Edge[]): Set<EdgeNode> {
    const doubtful = new Set<EdgeNode>()
    const stack = gone.flatMap(([from, to]) => (members.has(from) && members.has(to) ? [to] : []))
    for (let node = stack.pop(); node !== undefined; node = stack.pop()) {
      if (node === root || doubtful.has(node)) continue
      doubtful.add(node)
      for (const next of this.#out.get(node)) if (members.has(next)) stack.push(next)
    }
    for (const node of doubtful) {
      if (this.#hasOtherWay(node, members, doubtful)) this.#rescue(node, doubtful)
    }
    for (const node of doubtful) members.delete(node)
    return doubtful
  }

  #hasOtherWay(
    node: EdgeNode,
    members: ReadonlySet<EdgeNode>,
    doubtful: ReadonlySet<EdgeNode>,
  ): boolean {
    for (const from of this.#in.get(node)) {
      if (members.has(from) && !doubtful.has(from)) return true
    }
    return false
  }

  #rescue(start: EdgeNode, doubtful: Set<EdgeNode>): void {
    const stack = [start]
    for (let node = stack.pop(); node !== undefined; node = stack.pop()) {
      if (!doubtful.delete(node)) continue
      for (const next of this.#out.get(node)) if (doubtful.has(next)) stack.push(next)
    }
  }
}
