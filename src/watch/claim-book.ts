import type { Claim } from './observed.ts'
import type { SourceProblem } from './source-problem.ts'

/**
 * Which files say something about which object. Where several do, the first counts, in the order of
 * paths and then of documents; the others are refused.
 */
export class ClaimBook {
  #byFile = new Map<string, readonly Claim[]>()
  #byKey = new Map<string, Claim[]>()
  #duplicated = new Set<string>()

  /** Puts the claims of a file in place of those that it made before. */
  replace(file: string, claims: readonly Claim[]): void {
    const before = this.#byFile.get(file) ?? []
    const own = Map.groupBy(claims, ({ key }) => key)
    const keys = new Set([...before.map(({ key }) => key), ...own.keys()])
    if (claims.length === 0) this.#byFile.delete(file)
    else this.#byFile.set(file, claims)
    for (const key of keys) {
      const others = (this.#byKey.get(key) ?? []).filter(({ origin }) => origin.file !== file)
      this.#put(key, [...others, ...(own.get(key) ?? [])].sort(inOrder))
    }
  }

  /** The claim that counts. */
  first(key: string): Claim | undefined {
    return this.#byKey.get(key)?.[0]
  }

  keys(): IterableIterator<string> {
    return this.#byKey.keys()
  }

  /** Every claim, also those that do not count. */
  *claims(): Iterable<Claim> {
    for (const claims of this.#byFile.values()) yield* claims
  }

  /**
   * The claims that are refused because an earlier one is about the same object. Of a file that was
   * moved, the old place is believed in for a moment longer: `isThere` keeps that from being told.
   */
  duplicates(isThere: (file: string) => boolean): SourceProblem[] {
    return [...this.#duplicated].flatMap((key) => {
      const [first, ...later] = this.#byKey.get(key) ?? []
      if (first === undefined || first.origin.file === builtInFile) return []
      if (!isThere(first.origin.file)) return []
      const message = `is defined at ${first.origin.file}:${first.origin.line} already; this one is refused`
      return later
        .filter(({ origin }) => origin.file !== builtInFile && isThere(origin.file))
        .map(({ name, origin, column }) => ({
          severity: 'error' as const,
          reason: 'duplicate' as const,
          ...origin,
          column,
          ...name,
          message,
        }))
    })
  }

  #put(key: string, claims: Claim[]): void {
    if (claims.length === 0) this.#byKey.delete(key)
    else this.#byKey.set(key, claims)
    if (claims.length > 1) this.#duplicated.add(key)
    else this.#duplicated.delete(key)
  }
}

/** Stands for a file with the objects that exist without one; comes after every real file. */
export const builtInFile = '(built in)'

/** Order of claims: by path, then by line. Array sort is stable, so items of a line keep theirs. */
export function inOrder(a: Claim, b: Claim): number {
  const [fileA, fileB] = [a.origin.file, b.origin.file]
  if (fileA === fileB) return a.origin.line - b.origin.line
  if (fileA === builtInFile || fileB === builtInFile) return fileA === builtInFile ? 1 : -1
  return fileA < fileB ? -1 : 1
}
