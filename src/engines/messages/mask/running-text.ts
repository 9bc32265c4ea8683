/** Passes a text of a streamed answer through the masks, part by part. */

import { Fifo } from '../../../ground/base/fifo.ts'
import { PathMap } from '../../../ground/base/path-map.ts'
import type { Mask, MaskStream } from '../../core/index.ts'
import type { Piece } from './event-texts.ts'
import type { OnMatch } from './match-counts.ts'
import { type PartSink, PartsMasker } from './parts-masker.ts'

/** A part of a text: a content block or a content part. */
export class TextPart {
  /** The whole text so far; empty unless texts are kept. */
  original = ''
  /** Masked form of `original`. */
  masked = ''
  hasText = false
  hasMaskedText = false
  /** Masked text for the next event. */
  ready = ''
  /** Text that waits because an earlier part has not ended. */
  waiting = ''
  /** True if the provider ended the part. */
  isEnded = false
  /** True if the whole part has passed the masks. */
  isDone = false
  /** The last piece that arrived. */
  last: Piece | undefined

  takeReady(): string {
    const text = this.ready
    this.ready = ''
    return text
  }
}

type Masker = Pick<PartsMasker, 'heldBytes' | 'count' | 'push' | 'endPart' | 'end' | 'dispose'>

/** A masker for texts that have only one part. */
class PlainMasker implements Masker {
  readonly #stream: MaskStream
  readonly #sink: PartSink
  readonly #onMatch: ((rule: number) => void) | undefined

  constructor(mask: Mask, sink: PartSink, onMatch: OnMatch | undefined) {
    this.#stream = mask.stream()
    this.#sink = sink
    this.#onMatch = onMatch && ((rule) => onMatch(mask, rule))
  }

  get heldBytes(): number {
    return this.#stream.heldBytes
  }

  get count(): number {
    return this.#stream.count
  }

  push(text: string): void {
    this.#pass(this.#stream.push(text))
  }

  endPart(): void {}

  end(): void {
    this.#pass(this.#stream.end(''))
  }

  #pass(masked: string): void {
    if (this.#onMatch !== undefined) this.#stream.eachMatch(this.#onMatch)
    this.#sink.text(masked)
  }

  dispose(): void {
    this.#stream.dispose()
  }
}

export class RunningText {
  /** Maskers in order; each one passes its text to the next one. */
  readonly #maskers: readonly Masker[]
  /** Parts whose text has not entered the masks completely. */
  readonly #incoming = new Fifo<TextPart>()
  /** Parts whose text has not left the masks completely. */
  readonly #outgoing = new Fifo<TextPart>()
  /** Parts that have not ended, by name. */
  readonly #open = new PathMap<TextPart>()
  /** Number of characters that wait for the end of an earlier part. */
  #waiting = 0
  readonly #keepsTexts: boolean

  /** `hasParts` is set if events show where parts end, `keepsTexts` if later events repeat the texts. */
  constructor(
    masks: readonly Mask[],
    hasParts: boolean,
    keepsTexts: boolean,
    onMatch: OnMatch | undefined,
  ) {
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
    const maskers: Masker[] = []
    let next = sink
    for (const mask of masks.toReversed()) {
      const masker = hasParts
        ? new PartsMasker(mask, next, onMatch)
        : new PlainMasker(mask, next, onMatch)
      maskers.unshift(masker)
      next = { text: (text) => masker.push(text), endPart: () => masker.endPart() }
    }
    this.#maskers = maskers
  }

  /** Number of bytes that are undecided or wait for the end of an earlier part. */
  get heldBytes(): number {
    return Math.max(...this.#maskers.map((masker) => masker.heldBytes)) + this.#waiting
  }

  /** Number of replacements. */
  get count(): number {
    return this.#maskers.reduce((sum, masker) => sum + masker.count, 0)
  }

  push(piece: Piece): TextPart {
    const part = this.#partOf(piece.part)
    part.last = piece
    part.hasText ||= piece.text !== ''
    if (this.#keepsTexts) part.original += piece.text
    if (part === this.#incoming.first) this.#maskers[0]?.push(piece.text)
    else {
      part.waiting += piece.text
      this.#waiting += piece.text.length
    }
    return part
  }

  /** Ends the parts whose names begin with `prefix`, and returns them. */
  endParts(prefix: string): TextPart[] {
    const ended = this.#open.takeAll(prefix)
    for (const part of ended) part.isEnded = true
    this.#feed()
    return ended
  }

  /** Ends the text and returns the parts that had not ended. */
  complete(): TextPart[] {
    const ended = this.endParts('')
    for (const masker of this.#maskers) masker.end()
    while (this.#outgoing.length > 0) this.#finishPart()
    return ended
  }

  dispose(): void {
    for (const masker of this.#maskers) masker.dispose()
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

  /** After each part that has ended, passes the waiting text of the next part to the masks. */
  #feed(): void {
    while (this.#incoming.first?.isEnded === true) {
      this.#incoming.take()
      this.#maskers[0]?.endPart()
      const next = this.#incoming.first
      if (next === undefined) return
      this.#maskers[0]?.push(next.waiting)
      this.#waiting -= next.waiting.length
      next.waiting = ''
    }
  }

  #finishPart(): void {
    const part = this.#outgoing.take()
    if (part !== undefined) part.isDone = true
  }
}
