/** Counts the matches of guards, for the record of a decision. The matched texts are not kept. */
import type { Mask } from '../../core/index.ts'

/** Receives each match that was replaced, with the mask and its rule. */
export type OnMatch = (mask: Mask, rule: number) => void

export class MatchCounts {
  readonly #counts = new Map<Mask, Map<string, number>>()

  readonly add: OnMatch = (mask, rule) => {
    const counts = this.#counts.get(mask) ?? new Map<string, number>()
    this.#counts.set(mask, counts)
    const name = mask.nameOf(rule)
    counts.set(name, (counts.get(name) ?? 0) + 1)
  }

  /** Returns the names of the rules of a mask that have matched. */
  namesOf(mask: Mask): readonly string[] {
    return [...(this.#counts.get(mask)?.keys() ?? [])]
  }

  /** Returns what a mask has found; undefined if it has replaced nothing. */
  textOf(mask: Mask): string | undefined {
    const counts = this.#counts.get(mask)
    return counts && textOfMatches([...counts])
  }
}

/** Returns a text such as `3 matches of builtin Email`; undefined if there are no counts. */
export function textOfMatches(counts: readonly (readonly [string, number])[]): string | undefined {
  if (counts.length === 0) return undefined
  return counts
    .map(([name, count]) => `${count} ${count === 1 ? 'match' : 'matches'} of ${name}`)
    .join(', ')
}
