/** Counts tokens of long texts in slices, so that other work of the thread is not delayed. */
import { countTokens, loadEncodingInSteps } from './tokens.ts'
import { encodingForModel } from './tokens-models.ts'

/** Minimum length of a slice in characters; counting so many takes less than a millisecond. */
const sliceLength = 8_192
/** If the next place to cut is farther away than this, the rest of the text becomes one slice. */
const longestSlice = 65_536

/** Every published pre-tokenizer cuts between a letter and a space that precedes a letter. */
const cut = /[A-Za-z] (?=[A-Za-z])/g

/** Splits a text into slices whose token counts add up to that of the whole text. */
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
 * Counts the tokens of each text as `countTokensForModel` does; other work of the thread runs between
 * slices. Throws in the same cases.
 */
export async function countTextsForModel(
  texts: readonly string[],
  model: string,
): Promise<readonly number[]> {
  const { encoding, factor } = encodingForModel(model)
  await loadEncodingInSteps(encoding)
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
