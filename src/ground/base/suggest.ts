/** Counts the single-letter edits and swaps of adjacent letters from one word to the other. */
function distance(a: string, b: string): number {
  let beforeLast: number[] = []
  let last = Array.from({ length: b.length + 1 }, (_, column) => column)
  for (let row = 1; row <= a.length; row++) {
    const line = [row]
    for (let column = 1; column <= b.length; column++) {
      const cost = a[row - 1] === b[column - 1] ? 0 : 1
      let best = Math.min(
        (last[column] ?? 0) + 1,
        (line[column - 1] ?? 0) + 1,
        (last[column - 1] ?? 0) + cost,
      )
      const swapped = a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1]
      if (row > 1 && column > 1 && swapped) best = Math.min(best, (beforeLast[column - 2] ?? 0) + 1)
      line.push(best)
    }
    beforeLast = last
    last = line
  }
  return last[b.length] ?? 0
}

/**
 * Returns the known word that was most likely meant: the most similar one, or else the only one of which `word`
 * is a part at the beginning, or the other way around. Undefined if there is none.
 */
export function nearest(word: string, known: readonly string[]): string | undefined {
  const lower = word.slice(0, 64).toLowerCase()
  // Words of up to three letters are too similar to each other: mcp is not a misspelling of tcp.
  const limit = lower.length < 4 ? 0 : Math.max(1, Math.floor(lower.length / 3))
  let best: { readonly word: string; readonly distance: number } | undefined
  for (const candidate of known) {
    const found = distance(lower, candidate.toLowerCase())
    if (found <= limit && found < (best?.distance ?? Number.POSITIVE_INFINITY)) {
      best = { word: candidate, distance: found }
    }
  }
  return best?.word ?? (lower.length < 4 ? undefined : onlyRelated(lower, known))
}

function onlyRelated(lower: string, known: readonly string[]): string | undefined {
  const [related, second] = known.filter((candidate) => {
    const other = candidate.toLowerCase()
    return other.startsWith(lower) || (other.length >= 4 && lower.startsWith(other))
  })
  return second === undefined ? related : undefined
}
