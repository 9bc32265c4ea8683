/** Counting tokens of long texts a slice at a time, so that nobody else has to wait for it. */
import { countTokens } from './tokens.ts'
import { encodingForModel } from './tokens-models.ts'

/** Characters of a slice: about a millisecond. */
const sliceLength = 8_192
/** Where no cut is found, a slice grows to this. */
const longestSlice = 65_536

/** Between a letter and a space before a letter every published pre-tokeniser cuts. */
const cut = /[A-Za-z] (?=[A-Za-z])/g

/** Slices of a text whose tokens add up to those of the whole. */
export function tokenSlices(text: string): string[] {
  const slices: string[] = []
  let start = 0
  while (text.length - start > sliceLength) {
    cut.lastIndex = start + sliceLength
    const found = cut.exec(text)
    const at = found === null ? undefined : found.index + 1
    const isNear = at !== undefined && at - start <= longestSlice
    const end = isNear ? at : undefined
    if (end === undefined) break
    slices.push(text.slice(start, end))
    start = end
  }
  slices.push(text.slice(start))
  return slices
}

/**
 * As `countTokensForModel`, of a list of texts, each by itself; others get their turn between slices.
 * Throws as that does.
 */
export async function countTextsForModel(
  texts: readonly string[],
  model: string,
): Promise<readonly number[]> {
  const { encoding, factor } = encodingForModel(model)
  const counts: number[] = []
  let since = 0
  for (const text of texts) {
    let tokens = 0
    for (const slice of text.length <= sliceLength ? [text] : tokenSlices(text)) {
      if (since >= sliceLength) {
        since = 0
        await new Promise((resolve) => setImmediate(resolve))
      }
      tokens += countTokens(slice, encoding)
      since += slice.length
    }
    counts.push(Math.ceil(tokens * factor))
  }
  return counts
}
