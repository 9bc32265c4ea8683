/** The peer of the core's route table: hostnames and path segments in nested Maps. */
interface Segment {
  readonly children: Map<string, Segment>
  id: number
}

const newSegment = (): Segment => ({ children: new Map(), id: -1 })

export class JsRoutes {
  readonly #hosts = new Map<string, Segment>()

  add(hostname: string, prefix: string, id: number): void {
    let node = this.#hosts.get(hostname) ?? newSegment()
    this.#hosts.set(hostname, node)
    for (const segment of prefix.split('/').slice(1)) {
      const child: Segment = node.children.get(segment) ?? newSegment()
      node.children.set(segment, child)
      node = child
    }
    node.id = id
  }

  /** The longest prefix of the path on the most specific hostname; -1 for none. */
  match(host: string, path: string): number {
    const exact = this.#hosts.get(host)
    const found = exact === undefined ? -1 : this.#descend(exact, path)
    if (found >= 0) return found
    for (let dot = host.indexOf('.'); dot > 0; dot = host.indexOf('.', dot + 1)) {
      const wildcard = this.#hosts.get(`*${host.slice(dot)}`)
      const id = wildcard === undefined ? -1 : this.#descend(wildcard, path)
      if (id >= 0) return id
    }
    return -1
  }

  #descend(root: Segment, path: string): number {
    let node: Segment | undefined = root
    let best = root.id
    for (let at = 0; at < path.length; ) {
      const next = path.indexOf('/', at + 1)
      const end = next < 0 ? path.length : next
      node = node.children.get(path.slice(at + 1, end))
      if (node === undefined) return best
      if (node.id >= 0) best = node.id
      at = end
    }
    return best
  }
}
