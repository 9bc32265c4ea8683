/** The result of a refresh of the files. */

/** Result of a refresh. */
export interface Refreshed {
  /** Keys of the objects whose definition changed in some file. */
  readonly keys: ReadonlySet<string>
  /** Files with new content, which is used only if a second read finds it again. */
  readonly unconfirmed: readonly string[]
  /** Files that are gone, or were replaced by files with fewer objects. Their second read comes later. */
  readonly unsettled: readonly string[]
  /** Files whose content may be unfinished. Their second read comes once they are quiet for longer. */
  readonly unfinished: readonly string[]
  /** Whether folders or links may have been created, removed or replaced. */
  readonly mayHaveMoved: boolean
}

/** The files that are being read for the second time, after a wait. */
export interface SecondRead {
  has(file: string): boolean
}

export const everyFile: SecondRead = { has: () => true }
export const noFile: SecondRead = { has: () => false }

export class FileChange implements Refreshed {
  readonly keys = new Set<string>()
  readonly unconfirmed: string[] = []
  readonly unsettled: string[] = []
  readonly unfinished: string[] = []
  readonly second: SecondRead
  readonly seen = new Set<string>()
  mayHaveMoved = false

  constructor(second: SecondRead) {
    this.second = second
  }
}
