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

/** Texts that guards judge. */
interface GuardedTexts {
  readonly texts: readonly PathText[]
  /** Returns what contains the texts, with one value for each of them. */
  readonly write: (values: readonly string[]) => Buffer
}

const textsOf = (bytes: Buffer, texts: readonly PathText[]): GuardedTexts => ({
  texts,
  write: (values) => withTexts(bytes, texts, values),
})

/** @throws JsonDocumentError */
export function textsOfPart(
  { bytes, document, with: withDocument }: StreamPart,
  finder: PathTexts,
): GuardedTexts {
  if (document === undefined) return { texts: [], write: () => bytes }
  const { texts, write } = textsOf(document, finder.find(document))
  return { texts, write: (values) => withDocument(write(values)) }
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

/** Reads a body without its content coding. `limit` bounds its bytes. */
export function readBody(
  bytes: Buffer,
  kind: Exclude<BodyKind, 'other'>,
  finder: PathTexts,
  limit: number,
): GuardedTexts | UnreadableBody {
  try {
    if (kind === 'document') return textsOf(bytes, finder.find(bytes))
    return kind === 'lines' ? readLines(bytes, finder, limit) : readEvents(bytes, finder, limit)
  } catch (error) {
    return problemOf(error)
  }
}

/** Calls `onPart` for each part, with the offset of its first byte. */
function readParts(
  bytes: Buffer,
  stream: DocumentStream,
  onPart: (part: StreamPart, start: number) => void,
): void {
  let start = 0
  const pass = (part: StreamPart) => {
    onPart(part, start)
    start += part.bytes.length
  }
  stream.push(bytes, pass)
  stream.end(pass)
}

// The next functions store only parts that have texts, because a body may have a part for every two bytes.

function readLines(bytes: Buffer, finder: PathTexts, limit: number): GuardedTexts {
  const texts: PathText[] = []
  readParts(bytes, new DocumentStream('lines', limit), ({ document }, at) => {
    if (document === undefined) return
    for (const text of finder.find(document)) {
      texts.push({ ...text, start: at + text.start, end: at + text.end })
    }
  })
  return textsOf(bytes, texts)
}

function readEvents(bytes: Buffer, finder: PathTexts, limit: number): GuardedTexts {
  const parts: (GuardedTexts & { readonly start: number; readonly end: number })[] = []
  readParts(bytes, new DocumentStream('events', limit), (part, start) => {
    const read = textsOfPart(part, finder)
    if (read.texts.length > 0) parts.push({ ...read, start, end: start + part.bytes.length })
  })
  return {
    texts: parts.flatMap(({ texts }) => texts),
    write(values) {
      const pieces: Buffer[] = []
      let [from, written] = [0, 0]
      for (const { texts, write, start, end } of parts) {
        const some = values.slice(from, from + texts.length)
        pieces.push(bytes.subarray(written, start), write(some))
        from += texts.length
        written = end
      }
      return Buffer.concat([...pieces, bytes.subarray(written)])
    },
  }
}

/** Returns why a body cannot be read. Throws other errors again. */
export function problemOf(error: unknown): UnreadableBody {
  if (error instanceof JsonDocumentError) return new UnreadableBody('damaged', error.message)
  if (error instanceof StreamPartTooLarge) return new UnreadableBody('tooLarge', 'it is too large')
  throw error
}
