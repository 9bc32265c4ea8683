/** A text of a streamed answer on its way through the masks, part by part. */
import { Fifo } from '../../../base/fifo.ts'
import { PathMap } from '../../../base/path-map.ts'
import type { Mask, MaskStream } from '../../../core/index.ts'
import { type PartSink, PartsMasker } from './parts-masker.ts'
import type { Piece } from './stream-texts.ts'

/** A part of a text: a block, or a part of a content. */
export class TextPart {
  /** The whole text so far, as it came and as it was masked; empty where nobody asks. */
  original = ''
  masked = ''
  hasText = false
  hasMaskedText = false
  /** Masked text that no event has taken yet. */
  ready = ''
  /** Came before an earlier part had ended. */
  waiting = ''
  /** The provider has ended it. */
  isEnded = false
  /** All of it is masked. */
  isDone = false
  /** The last piece of it. */
  last: Piece | undefined

  takeReady(): string {
    const text = this.ready
    this.ready = ''
    return text
  }
}

/** Text through one mask or several, one after the other. */
interface MaskChain {
  readonly heldBytes: number
  readonly count: number
  push(text: string): void
  endPart(): void
  end(): void
  dispose(): void
}

/** Masks of a text without parts. */
class PlainChain implements MaskChain {
  readonly #streams: readonly MaskStream[]
  readonly #sink: PartSink

  constructor(masks: readonly Mask[], sink: PartSink) {
    this.#streams = masks.map((mask) => mask.stream())
    this.#sink = sink
  }

  get heldBytes(): number {
    return Math.max(...this.#streams.map((stream) => stream.heldBytes))
  }

  get count(): number {
    return this.#streams.reduce((sum, stream) => sum + stream.count, 0)
  }

  push(text: string): void {
    this.#sink.text(this.#streams.reduce((current, stream) => stream.push(current), text))
  }

  endPart(): void {
    // There is only one.
  }

  end(): void {
    this.#sink.text(this.#streams.reduce((current, stream) => stream.end(current), ''))
  }

  dispose(): void {
    for (const stream of this.#streams) stream.dispose()
  }
}

/** Masks of a text with parts; each gets what the one before gives out. */
class PartsChain implements MaskChain {
  readonly #maskers: readonly PartsMasker[]

  constructor(masks: readonly Mask[], sink: PartSink) {
    const maskers: PartsMasker[] = []
    let next = sink
    for (const mask of masks.toReversed()) {
      const masker = new PartsMasker(mask, next)
      maskers.unshift(masker)
      next = { text: (text) => masker.push(text), endPart: () => masker.endPart() }
    }
    this.#maskers = maskers
  }

  get heldBytes(): number {
    return Math.max(...this.#maskers.map((masker) => masker.heldBytes))
  }

  get count(): number {
    return this.#maskers.reduce((sum, masker) => sum + masker.count, 0)
  }

  push(text: string): void {
    this.#maskers[0]?.push(text)
  }

  endPart(): void {
    this.#maskers[0]?.endPart()
  }

  end(): void {
    for (const masker of this.#maskers) masker.end()
  }

  dispose(): void {
    for (const masker of this.#maskers) masker.dispose()
  }
}

export class RunningText {
  readonly #chain: MaskChain
  /** Parts that have not gone into the masks as a whole, and those that have not come out of them. */
  readonly #incoming = new Fifo<TextPart>()
  readonly #outgoing = new Fifo<TextPart>()
  /** Parts that have not ended, by their names. */
  readonly #open = new PathMap<TextPart>()
  /** Characters that wait for a part before them to end. */
  #waiting = 0
  readonly #keepsTexts: boolean

  /** `hasParts`: events show where parts end. `keepsTexts`: of parts, because events repeat them. */
  constructor(masks: readonly Mask[], hasParts: boolean, keepsTexts: boolean) {
    this.#keepsTexts = keepsTexts
    const sink: PartSink = {
      text: (text) => {
        const part = this.#outgoing.first
        if (part === undefined) return
        part.ready += text
        part.hasMaskedText ||= text !== ''
        if (keepsTexts) part.masked += text
      },
      endPart: () => this.#finishPart(),
    }
    this.#chain = hasParts ? new PartsChain(masks, sink) : new PlainChain(masks, sink)
  }

  /** Bytes that are undecided, or wait for a part before them to end. */
  get heldBytes(): number {
    return this.#chain.heldBytes + this.#waiting
  }

  /** Replacements so far. */
  get count(): number {
    return this.#chain.count
  }

  push(piece: Piece): TextPart {
    const part = this.#partOf(piece.part)
    part.last = piece
    part.hasText ||= piece.text !== ''
    if (this.#keepsTexts) part.original += piece.text
    if (part === this.#incoming.first) this.#chain.push(piece.text)
    else {
      part.waiting += piece.text
      this.#waiting += piece.text.length
    }
    return part
  }

  /** Ends the parts whose names begin so; answers them. */
  endParts(start: string): TextPart[] {
    const ended = this.#open.takeAll(start)
    for (const part of ended) part.isEnded = true
    this.#feed()
    return ended
  }

  /** No more text comes; answers the parts that had not ended. */
  complete(): TextPart[] {
    const ended = this.endParts('')
    this.#chain.end()
    while (this.#outgoing.length > 0) this.#finishPart()
    return ended
  }

  dispose(): void {
    this.#chain.dispose()
  }

  #partOf(name: string): TextPart {
    const known = this.#open.get(name)
    if (known !== undefined) return known
    const part = new TextPart()
    this.#open.set(name, part)
    this.#incoming.push(part)
    this.#outgoing.push(part)
    return part
  }

  /** A part that has ended makes room for the one behind it. */
  #feed(): void {
    while (this.#incoming.first?.isEnded === true) {
      this.#incoming.take()
      this.#chain.endPart()
      const next = this.#incoming.first
      if (next === undefined) return
      this.#chain.push(next.waiting)
      this.#waiting -= next.waiting.length
      next.waiting = ''
    }
  }

  #finishPart(): void {
    const part = this.#outgoing.take()
    if (part !== undefined) part.isDone = true
  }
}
