/** Converts streamed responses of providers that have another format than the client. */
import type { ResponseEventReader, ResponseEventWriter, StreamEvent } from '../chat.ts'
import { type Conversion, type ConversionOptions, errorInPlace, isPlainText } from './conversion.ts'
import { unreadable } from './provider-error.ts'

export class TranslatedConversion implements Conversion {
  readonly #reader: ResponseEventReader
  readonly #writer: ResponseEventWriter
  readonly #options: ConversionOptions
  #hasFailed = false
  hasEnded = false

  constructor(reader: ResponseEventReader, options: ConversionOptions) {
    this.#reader = reader
    this.#options = options
    this.#writer = options.format.writer(options.clientFields, options.context)
  }

  convert(event: StreamEvent): readonly StreamEvent[] {
    if (isPlainText(event.data)) throw unreadable(event.data)
    return this.#write(this.#reader.read(event))
  }

  finish(isCut: boolean, text: string): readonly StreamEvent[] {
    const last = isCut ? [] : this.#write(this.#reader.finish())
    if (this.#hasFailed) return last
    if (isCut || !this.hasEnded) {
      const error = errorInPlace(this.#options, text)
      return [...last, ...this.#writer.write({ type: 'error', error })]
    }
    return [...last, ...this.#writer.finish(true)]
  }

  #write(events: ReturnType<ResponseEventReader['read']>): readonly StreamEvent[] {
    const { onDetails, onContent } = this.#options
    return events.flatMap((event) => {
      switch (event.type) {
        case 'start':
          onDetails({ model: event.model, ...(event.usage && { usage: event.usage }) })
          break
        case 'usage':
          onDetails({ usage: event.usage })
          break
        case 'end':
          this.hasEnded = true
          break
        case 'error':
          this.#hasFailed = true
          break
        case 'text':
        case 'thinking':
          onContent(Buffer.byteLength(event.text))
          break
        case 'tool-input':
          onContent(Buffer.byteLength(event.json))
          break
        default:
          break
      }
      return this.#writer.write(event)
    })
  }
}
