/** Decodes content codings of bodies (RFC 9110 8.4.1), in linear time and with bounded output. */
import { promisify } from 'node:util'
import {
  brotliDecompress,
  brotliDecompressSync,
  gunzip,
  gunzipSync,
  type InputType,
  inflate,
  inflateSync,
  zstdDecompress,
  zstdDecompressSync,
} from 'node:zlib'

interface Limit {
  readonly maxOutputLength: number
}

interface Coding {
  readonly decode: (input: InputType, options: Limit) => Promise<Buffer>
  readonly decodeSync: (input: InputType, options: Limit) => Buffer
}

type Decode = Coding['decode']

const gzip: Coding = { decode: promisify(gunzip) as Decode, decodeSync: gunzipSync }

const codings: ReadonlyMap<string, Coding> = new Map<string, Coding>([
  ['gzip', gzip],
  ['x-gzip', gzip],
  ['deflate', { decode: promisify(inflate) as Decode, decodeSync: inflateSync }],
  ['br', { decode: promisify(brotliDecompress) as Decode, decodeSync: brotliDecompressSync }],
  ['zstd', { decode: promisify(zstdDecompress) as Decode, decodeSync: zstdDecompressSync }],
])

/** Maximum number of codings of one body. */
const maxCodings = 4

/** Why a body cannot be decoded. */
export class CodingProblem {
  readonly kind: 'unknown' | 'damaged' | 'tooLarge'
  readonly message: string

  constructor(kind: CodingProblem['kind'], message: string) {
    this.kind = kind
    this.message = message
  }
}

/** Decodes the body. `header` is the value of Content-Encoding; `limit` bounds the bytes of every step. */
export async function decodeContent(
  bytes: Uint8Array,
  header: string,
  limit: number,
): Promise<Uint8Array | CodingProblem> {
  const names = namesIn(header, bytes)
  if (names instanceof CodingProblem) return names
  let decoded = bytes
  for (const name of names) {
    try {
      decoded = (await codings.get(name)?.decode(decoded, { maxOutputLength: limit })) ?? decoded
    } catch (error) {
      return problemOf(error, name)
    }
  }
  return decoded
}

/** Does the same without waiting, which blocks the thread for as long as decoding takes. */
export function decodeContentSync(
  bytes: Uint8Array,
  header: string,
  limit: number,
): Uint8Array | CodingProblem {
  const names = namesIn(header, bytes)
  if (names instanceof CodingProblem) return names
  let decoded = bytes
  for (const name of names) {
    try {
      decoded = codings.get(name)?.decodeSync(decoded, { maxOutputLength: limit }) ?? decoded
    } catch (error) {
      return problemOf(error, name)
    }
  }
  return decoded
}

/** Returns the codings in the order in which they are removed. An empty body has none. */
function namesIn(header: string, { length }: Uint8Array): readonly string[] | CodingProblem {
  if (length === 0) return []
  const names = header
    .split(',')
    .map((name) => name.trim().toLowerCase())
    .filter((name) => name !== '' && name !== 'identity')
    .reverse()
  if (names.length > maxCodings) {
    return new CodingProblem('unknown', `the body has more than ${maxCodings} content codings`)
  }
  const unknown = names.find((name) => !codings.has(name))
  if (unknown === undefined) return names
  return new CodingProblem('unknown', `content coding ${unknown} is not supported`)
}

function problemOf(error: unknown, name: string): CodingProblem {
  const isLarge = (error as { code?: string }).code === 'ERR_BUFFER_TOO_LARGE'
  return isLarge
    ? new CodingProblem('tooLarge', 'the decoded body is too large')
    : new CodingProblem('damaged', `the body is not valid ${name}`)
}
