/** Reads and writes server-sent events. */
import { type IsKnownEvent, SseEventTooLarge, SseReader } from '../../sse/reader.ts'
import type { EventDecoder, StreamEvent } from '../chat.ts'
import { isObject, parseJson } from '../json/json.ts'
import { eventTooLarge } from '../llm-error.ts'

const lineEnds = Buffer.from('\n\n')

export class SseDecoder implements EventDecoder {
  readonly #reader: SseReader

  /** The parameters are those of `SseReader`. */
  constructor(maxEvent: number, tooLarge: 'fail' | 'skip' = 'fail', isKnown?: IsKnownEvent) {
    this.#reader = new SseReader(maxEvent, tooLarge, isKnown)
  }

  get isInside(): boolean {
    return this.#reader.isInside
  }

  get missingEnd(): Uint8Array | undefined {
    const data = this.#reader.unfinishedData
    const isWhole = data === '[DONE]' || (data !== undefined && isObject(parseJson(data)))
    if (!isWhole) return undefined
    return this.#reader.isInLine ? lineEnds : lineEnds.subarray(1)
  }

  get reader(): Pick<SseReader, 'isBetweenEvents' | 'settledBytes' | 'blockStart' | 'blockEnd'> {
    return this.#reader
  }

  push(chunk: Uint8Array, onEvent: (event: StreamEvent) => void): void {
    try {
      this.#reader.push(chunk, ({ type, data }) => {
        if (data !== undefined) onEvent({ event: type === '' ? undefined : type, data })
      })
    } catch (error) {
      throw error instanceof SseEventTooLarge ? eventTooLarge() : error
    }
  }
}

/** Writes an event as text; data with line breaks becomes several `data` lines. */
export function writeSse({ event, data }: StreamEvent): string {
  const lines = `data: ${data.replaceAll('\n', '\ndata: ')}\n`
  return event === undefined ? `${lines}\n` : `event: ${event}\n${lines}\n`
}
