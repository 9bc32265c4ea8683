/** Items by paths whose segments each end with `/`, found by how a path begins as well. */
export class PathMap<Item> {
  readonly #items = new Map<string, Item>()
  /** Paths by each of their beginnings that end with `/`. */
  readonly #under = new Map<string, Set<string>>()

  get(path: string): Item | undefined {
    return this.#items.get(path)
  }

  set(path: string, item: Item): void {
    this.#items.set(path, item)
    for (const beginning of beginnings(path)) {
      const paths = this.#under.get(beginning)
      if (paths === undefined) this.#under.set(beginning, new Set([path]))
      else paths.add(path)
    }
  }

  /** Removes the items whose paths begin so, in the order of their coming; all for an empty text. */
  takeAll(beginning: string): Item[] {
    const paths = beginning === '' ? this.#items.keys() : (this.#under.get(beginning) ?? [])
    return [...paths].flatMap((path) => this.#take(path))
  }

  #take(path: string): Item[] {
    const item = this.#items.get(path)
    if (item === undefined) return []
    this.#items.delete(path)
    for (const beginning of beginnings(path)) {
      const paths = this.#under.get(beginning)
      paths?.delete(path)
      if (paths?.size === 0) this.#under.delete(beginning)
    }
    return [item]
  }
}

function beginnings(path: string): string[] {
  const found: string[] = []
  for (let at = path.indexOf('/'); at >= 0; at = path.indexOf('/', at + 1)) {
    found.push(path.slice(0, at + 1))
  }
  return found
}
