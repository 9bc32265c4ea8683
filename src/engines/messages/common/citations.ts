/** Sources of texts in responses. */
import type { Citation, TextBlock } from '../chat.ts'
import { compact, type JsonObject, numberAt, stringAt } from '../json/json.ts'

/** Returns an annotation of the responses format; the one of chat completions has the same members. */
export const annotationOf = ({ url, title = '', range }: PlacedCitation): JsonObject =>
  compact({ url, title, start_index: range.start, end_index: range.end })

/** Reads such an annotation; undefined if it names no location in the web. */
export function readAnnotation(annotation: unknown): Citation | undefined {
  const url = stringAt(annotation, 'url')
  if (url === undefined) return undefined
  const start = numberAt(annotation, 'start_index')
  const end = numberAt(annotation, 'end_index')
  const range = start === undefined || end === undefined ? undefined : { start, end }
  return { url, title: stringAt(annotation, 'title'), ...(range && { range }) }
}

/** Maximum length of a quote: many sources may refer to the same long text. */
const maxQuote = 1000

/** Returns what a source refers to, without what exceeds the maximum length; all of the text if it has no place. */
export function quoteOf(text: string, range: Citation['range']): string {
  const { start, end } = range ?? { start: 0, end: text.length }
  return text.slice(start, end).slice(0, maxQuote)
}

export interface PlacedCitation extends Citation {
  /** The part of all texts together. */
  readonly range: { readonly start: number; readonly end: number }
}

/** Returns the citations of texts that clients see as one text. */
export function placedCitations(blocks: readonly TextBlock[]): PlacedCitation[] {
  let before = 0
  return blocks.flatMap(({ text, citations = [] }) => {
    const start = before
    before += text.length
    return citations.map((citation) => placed(citation, start, text.length))
  })
}

/** `start` and `length` are those of the block in the whole text. */
function placed(citation: Citation, start: number, length: number): PlacedCitation {
  const { range } = citation
  const at = range === undefined ? { start: 0, end: length } : range
  return { ...citation, range: { start: start + at.start, end: start + at.end } }
}

/** Places the citations of a streamed response. A citation of a whole block waits for the end of its block. */
export class StreamedCitations {
  #length = 0
  /** Start of each open block in the whole text, and the citations that wait for its end. */
  readonly #open = new Map<
    number,
    { readonly start: number; length: number; waiting: Citation[] }
  >()

  addText(index: number, text: string): void {
    this.#blockAt(index).length += text.length
    this.#length += text.length
  }

  add(index: number, citation: Citation): PlacedCitation[] {
    const block = this.#blockAt(index)
    if (citation.range !== undefined) return [placed(citation, block.start, block.length)]
    block.waiting.push(citation)
    return []
  }

  endBlock(index: number): PlacedCitation[] {
    const block = this.#open.get(index)
    if (block === undefined) return []
    const { waiting, start, length } = block
    block.waiting = []
    return waiting.map((citation) => placed(citation, start, length))
  }

  end(): PlacedCitation[] {
    return [...this.#open.keys()].flatMap((index) => this.endBlock(index))
  }

  #blockAt(index: number) {
    const block = this.#open.get(index) ?? { start: this.#length, length: 0, waiting: [] }
    this.#open.set(index, block)
    return block
  }
}
