import type { ObjectClaim } from './observed.ts'
import type { SourceProblem } from './source-problem.ts'

/**
 * Records which files define which objects. If several claims define the same object, the first one (by path,
 * then by line) is used and the others are refused.
 */
export class ClaimBook {
  #byFile = new Map<string, readonly ObjectClaim[]>()
  #byKey = new Map<string, ObjectClaim[]>()
  #duplicated = new Set<string>()

  /** Replaces the claims of a file. */
  replace(file: string, claims: readonly ObjectClaim[]): void {
    const before = this.#byFile.get(file) ?? []
    const own = Map.groupBy(claims, ({ key }) => key)
    const keys = new Set([...before.map(({ key }) => key), ...own.keys()])
    if (claims.length === 0) this.#byFile.delete(file)
    else this.#byFile.set(file, claims)
    for (const key of keys) {
      const foreign = (this.#byKey.get(key) ?? []).filter(({ origin }) => origin.file !== file)
      this.#put(key, [...foreign, ...(own.get(key) ?? [])].sort(inOrder))
    }
  }

  /** Returns the claim that is used for an object. */
  first(key: string): ObjectClaim | undefined {
    return this.#byKey.get(key)?.[0]
  }

  keys(): IterableIterator<string> {
    return this.#byKey.keys()
  }

  /** Every claim, including refused ones. */
  *claims(): Iterable<ObjectClaim> {
    for (const claims of this.#byFile.values()) yield* claims
  }

  /**
   * Returns one problem for each claim that is refused because an earlier one defines the same object.
   * `isThere` excludes the old path of a file that was just moved, which is still recorded for a moment.
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

  #put(key: string, claims: ObjectClaim[]): void {
    if (claims.length === 0) this.#byKey.delete(key)
    else this.#byKey.set(key, claims)
    if (claims.length > 1) this.#duplicated.add(key)
    else this.#duplicated.delete(key)
  }
}

/** File name in the claims of built-in objects; `inOrder` sorts it after every real file. */
export const builtInFile = '(built in)'

interface Placed {
  readonly origin: { readonly file: string; readonly line: number }
}

/** Compares claims for sorting: by path, then by line. */
export function inOrder(a: Placed, b: Placed): number {
  const [fileA, fileB] = [a.origin.file, b.origin.file]
  if (fileA === fileB) return a.origin.line - b.origin.line
  if (fileA === builtInFile || fileB === builtInFile) return fileA === builtInFile ? 1 : -1
  return fileA < fileB ? -1 : 1
}
