/** References of one policy field to objects that do not exist or that do not permit the reference. */

export class MissingReferences {
  readonly #names = new Set<string>()
  readonly #references = new Set<unknown>()

  /** @param reference name of a Secret or ConfigMap, or a reference or selector from the spec */
  add(reference: unknown): void {
    if (typeof reference === 'string') this.#names.add(reference)
    else this.#references.add(reference)
  }

  /** Whether the spec contains such a reference at `path`. Then a problem there is no mistake in the object. */
  isAbout(spec: unknown, path: string): boolean {
    if (this.#names.size === 0 && this.#references.size === 0) return false
    const steps = path.match(/[^.[\]"]+/g) ?? []
    return steps.length > 0 && this.#isIn(steps.reduce(memberOf, spec))
  }

  #isIn(part: unknown): boolean {
    if (typeof part !== 'object' || part === null) return false
    if (this.#references.has(part)) return true
    const { name } = part as { readonly name?: unknown }
    if (typeof name === 'string' && this.#names.has(name)) return true
    return Object.values(part).some((member) => this.#isIn(member))
  }
}

function memberOf(value: unknown, step: string): unknown {
  if (typeof value !== 'object' || value === null) return undefined
  return Object.hasOwn(value, step) ? (value as Record<string, unknown>)[step] : undefined
}
