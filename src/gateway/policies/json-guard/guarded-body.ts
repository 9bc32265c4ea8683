/** Reads the texts of a body that guards judge, and writes the body again with other texts. */
import {
  DocumentStream,
  type StreamPart,
  StreamPartTooLarge,
} from '../../../engines/json/document-stream.ts'
import {
  JsonDocumentError,
  type PathText,
  type PathTexts,
  withTexts,
} from '../../../engines/json/path-texts.ts'
import type { HeaderFields } from '../../../ground/exchange/exchange.ts'

/** How a body contains documents; `other` if it is not JSON. */
export type BodyKind = 'document' | 'lines' | 'events' | 'other'

const kinds: readonly (readonly [RegExp, BodyKind])[] = [
  [/^(?:application|text)\/(?:[\w.-]+\+)?json$/, 'document'],
  [/^(?:application|text)\/(?:x-ndjson|ndjson|jsonl|x-jsonlines|jsonlines)$/, 'lines'],
  [/^text\/event-stream$/, 'events'],
]
/** Returns the kind of a body by its type. A body without a type is read as JSON. */
export function kindOf(headers: HeaderFields): BodyKind {
  const type = headers.lines('content-type')
  if (type === undefined) return 'document'
  if (typeof type !== 'string') return 'other'
  const [name = ''] = type.split(';', 1)
  const known = kinds.find(([pattern]) => pattern.test(name.trim().toLowerCase()))
  return known !== undefined && isUtf8Type(type.slice(name.length)) ? known[1] : 'other'
}

/** Names of UTF-8. Texts in another charset could be hidden from guards. */
const utf8Names = new Set(['utf-8', 'utf8', 'us-ascii'])

/** Returns whether the parameters of a type name no charset other than UTF-8. */
const isUtf8Type = (parameters: string): boolean =>
  parameters.split(';').every((parameter) => {
    const [name = '', value = ''] = parameter.toLowerCase().split('=', 2)
    return name.trim() !== 'charset' || utf8Names.has(value.trim().replaceAll('"', ''))
  })

/** A part of a body with the texts that guards judge. */
interface TextPart {
  readonly bytes: Buffer
  readonly texts: readonly PathText[]
  readonly write: (values: readonly string[]) => Buffer
}

const documentPart = (bytes: Buffer, finder: PathTexts): TextPart => {
  const texts = finder.find(bytes)
  return { bytes, texts, write: (values) => withTexts(bytes, texts, values) }
}

/** @throws JsonDocumentError */
export function streamPart(
  { bytes, document, with: withDocument }: StreamPart,
  finder: PathTexts,
): TextPart {
  // The bytes of a part are overwritten later.
  const own = Buffer.from(bytes)
  if (document === undefined) return { bytes: own, texts: [], write: () => own }
  const { texts, write } = documentPart(Buffer.from(document), finder)
  return { bytes: own, texts, write: (values) => withDocument(write(values)) }
}

/** Why guards cannot read a body. The message contains no part of it. */
export class UnreadableBody {
  readonly kind: 'unknown' | 'damaged' | 'tooLarge'
  readonly message: string

  constructor(kind: UnreadableBody['kind'], message: string) {
    this.kind = kind
    this.message = message
  }
}

/** A body that guards judge. */
class GuardedBody {
  readonly #parts: readonly TextPart[]
  readonly texts: readonly PathText[]

  constructor(parts: readonly TextPart[]) {
    this.#parts = parts
    this.texts = parts.flatMap(({ texts }) => texts)
  }

  /** Returns the body with one value for each text. */
  write(values: readonly string[]): Buffer {
    let from = 0
    return Buffer.concat(
      this.#parts.map(({ bytes, texts, write }) => {
        const some = values.slice(from, from + texts.length)
        from += texts.length
        return texts.length === 0 ? bytes : write(some)
      }),
    )
  }
}

/** Reads a body without its content coding. `limit` bounds its bytes. */
export function readBody(
  bytes: Buffer,
  kind: Exclude<BodyKind, 'other'>,
  finder: PathTexts,
  limit: number,
): GuardedBody | UnreadableBody {
  const parts: TextPart[] = []
  try {
    if (kind === 'document') parts.push(documentPart(bytes, finder))
    else {
      const stream = new DocumentStream(kind, limit)
      const add = (part: StreamPart) => void parts.push(streamPart(part, finder))
      stream.push(bytes, add)
      stream.end(add)
    }
  } catch (error) {
    return problemOf(error)
  }
  return new GuardedBody(parts)
}

/** Returns why a body cannot be read. Throws other errors again. */
export function problemOf(error: unknown): UnreadableBody {
  if (error instanceof JsonDocumentError) return new UnreadableBody('damaged', error.message)
  if (error instanceof StreamPartTooLarge) return new UnreadableBody('tooLarge', 'it is too large')
  throw error
}
