/** Items by paths, whose segments each end with `/`. Items can also be found by a prefix of their path. */
export class PathMap<Item> {
  readonly #items = new Map<string, Item>()
  /** Paths by each of their prefixes that end with `/`. */
  readonly #pathsByPrefix = new Map<string, Set<string>>()

  get size(): number {
    return this.#items.size
  }

  get(path: string): Item | undefined {
    return this.#items.get(path)
  }

  set(path: string, item: Item): void {
    this.#items.set(path, item)
    for (const prefix of prefixesOf(path)) {
      const paths = this.#pathsByPrefix.get(prefix)
      if (paths === undefined) this.#pathsByPrefix.set(prefix, new Set([path]))
      else paths.add(path)
    }
  }

  /** Removes and returns the items whose paths have the prefix, in order of insertion; all if it is empty. */
  takeAll(prefix: string): Item[] {
    const paths = prefix === '' ? this.#items.keys() : (this.#pathsByPrefix.get(prefix) ?? [])
    return [...paths].flatMap((path) => this.#take(path))
  }

  #take(path: string): Item[] {
    const item = this.#items.get(path)
    if (item === undefined) return []
    this.#items.delete(path)
    for (const prefix of prefixesOf(path)) {
      const paths = this.#pathsByPrefix.get(prefix)
      paths?.delete(path)
      if (paths?.size === 0) this.#pathsByPrefix.delete(prefix)
    }
    return [item]
  }
}

function prefixesOf(path: string): string[] {
  const found: string[] = []
  for (let at = path.indexOf('/'); at >= 0; at = path.indexOf('/', at + 1)) {
    found.push(path.slice(0, at + 1))
  }
  return found
}
