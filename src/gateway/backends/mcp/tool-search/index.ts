/** An index of tools, ranked by BM25 over name, title, description, and names of parameters. */
import { wordsOf } from './words.ts'

/** The texts of a tool. */
export interface ToolTexts {
  readonly name: string
  readonly title?: string | undefined
  readonly description?: string | undefined
  /** Names and descriptions of the top-level properties of the input. */
  readonly parameters: readonly (readonly [name: string, description: string])[]
}

/** Weights of words, by the text that has them. */
const weights = { name: 3, title: 2, description: 1, parameter: 0.5, parameterText: 0.2 } as const
/** How fast more of the same word counts less, and how much long texts count less. */
const saturation = 1.2
const lengthShare = 0.5
/** Words of a query that count. */
const maxQueryWords = 32

interface Postings {
  readonly tools: number[]
  /** Weighted counts, and then what the word adds to the score of each tool. */
  readonly scores: number[]
}

export class ToolIndex {
  readonly #postings = new Map<string, Postings>()
  readonly #scores: Float64Array

  constructor(tools: readonly ToolTexts[]) {
    this.#scores = new Float64Array(tools.length)
    const lengths = tools.map((tool, at) => this.#add(tool, at))
    const average = lengths.reduce((sum, one) => sum + one, 0) / Math.max(1, tools.length)
    for (const { tools: at, scores } of this.#postings.values()) {
      const idf = Math.log(1 + (tools.length - at.length + 0.5) / (at.length + 0.5))
      for (const [n, count] of scores.entries()) {
        const length = (lengths[at[n] ?? 0] ?? 0) / Math.max(1, average)
        const damped = saturation * (1 - lengthShare + lengthShare * length)
        scores[n] = (idf * count * (saturation + 1)) / (count + damped)
      }
    }
  }

  /** Adds a tool, and returns its weighted length. */
  #add(tool: ToolTexts, at: number): number {
    const counts = new Map<string, number>()
    let length = 0
    const add = (text: string, weight: number) => {
      for (const word of wordsOf(text)) {
        counts.set(word, (counts.get(word) ?? 0) + weight)
        length += weight
      }
    }
    add(tool.name, weights.name)
    add(tool.title ?? '', weights.title)
    add(tool.description ?? '', weights.description)
    for (const [name, description] of tool.parameters) {
      add(name, weights.parameter)
      add(description, weights.parameterText)
    }
    for (const [word, count] of counts) {
      const postings = this.#postings.get(word) ?? { tools: [], scores: [] }
      if (postings.tools.length === 0) this.#postings.set(word, postings)
      postings.tools.push(at)
      postings.scores.push(count)
    }
    return length
  }

  /** Returns the positions of the tools that have a word of the query, the best first. */
  search(query: string): readonly number[] {
    const scores = this.#scores
    const found: number[] = []
    for (const word of new Set(wordsOf(query).slice(0, maxQueryWords))) {
      const { tools, scores: added } = this.#postings.get(word) ?? none
      for (let n = 0; n < tools.length; n++) {
        const at = tools[n] ?? 0
        if (scores[at] === 0) found.push(at)
        scores[at] = (scores[at] ?? 0) + (added[n] ?? 0)
      }
    }
    found.sort((a, b) => (scores[b] ?? 0) - (scores[a] ?? 0) || a - b)
    for (const at of found) scores[at] = 0
    return found
  }
}

const none: Postings = { tools: [], scores: [] }
