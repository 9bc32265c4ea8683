/** Converts streamed responses of providers that have another format than the client. */
import type {
  ResponseEvent,
  ResponseEventReader,
  ResponseEventWriter,
  StreamEvent,
} from '../chat.ts'
import { type Conversion, type ConversionOptions, errorInPlace, isPlainText } from './conversion.ts'
import { unreadable } from './provider-error.ts'

export class TranslatedConversion implements Conversion {
  readonly #reader: ResponseEventReader
  readonly #writer: ResponseEventWriter
  readonly #options: ConversionOptions
  #hasFailed = false
  /** The last stop of the provider: some write one in each event, so clients get it at the end. */
  #stop: Extract<ResponseEvent, { type: 'stop' }> | undefined
  hasEnded = false

  constructor(reader: ResponseEventReader, options: ConversionOptions) {
    this.#reader = reader
    this.#options = options
    this.#writer = options.format.writer(options.context)
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
    const stop = this.#stop === undefined ? [] : this.#writer.write(this.#stop)
    return [...last, ...stop, ...this.#writer.finish(true)]
  }

  #write(events: readonly ResponseEvent[]): readonly StreamEvent[] {
    const { onDetails, onContent, request } = this.#options
    return events.flatMap((event) => {
      switch (event.type) {
        case 'start': {
          onDetails({ model: event.model, ...(event.usage && { usage: event.usage }) })
          return this.#writer.write({ ...event, model: request.asked ?? event.model })
        }
        case 'usage':
          onDetails({ usage: event.usage })
          break
        case 'end':
          this.hasEnded = true
          break
        case 'stop':
          this.#stop = event
          return []
        case 'error':
          // Nothing follows an error.
          if (this.#hasFailed) return []
          this.#hasFailed = true
          return this.#writer.write(event)
        case 'text':
        case 'refusal':
        case 'thinking':
          onContent(Buffer.byteLength(event.text))
          break
        case 'tool-input':
          onContent(Buffer.byteLength(event.json))
          break
        default:
          break
      }
      return this.#hasFailed ? [] : this.#writer.write(event)
    })
  }
}
