/** Decodes content codings of bodies (RFC 9110 8.4.1). */
import { promisify } from 'node:util'
import { brotliDecompress, gunzip, type InputType, inflate, zstdDecompress } from 'node:zlib'
import { LlmError } from '../llm-error.ts'

type Decompress = (input: InputType, options: { maxOutputLength: number }) => Promise<Buffer>

const decoders: Readonly<Record<string, Decompress>> = {
  gzip: promisify(gunzip) as Decompress,
  'x-gzip': promisify(gunzip) as Decompress,
  deflate: promisify(inflate) as Decompress,
  br: promisify(brotliDecompress) as Decompress,
  zstd: promisify(zstdDecompress) as Decompress,
}

/** HTTP status of each error, by the author of the body. */
const statusByAuthor = {
  client: { unknown: 415, damaged: 400, tooLarge: 413 },
  provider: { unknown: 502, damaged: 502, tooLarge: 502 },
}

/** Returns the bytes themselves if they are not encoded. @throws LlmError if a coding is unknown, the body is damaged, or the decoded body exceeds `limit`. */
export function decodeBody(
  bytes: Uint8Array,
  coding: string | undefined,
  limit: number,
  author: keyof typeof statusByAuthor,
): Uint8Array | Promise<Uint8Array> {
  return coding === undefined ? bytes : decode(bytes, coding, limit, author)
}

async function decode(
  bytes: Uint8Array,
  coding: string,
  limit: number,
  author: keyof typeof statusByAuthor,
): Promise<Uint8Array> {
  const names = coding
    .split(',')
    .map((name) => name.trim().toLowerCase())
    .filter((name) => name !== '' && name !== 'identity')
  const { unknown, damaged, tooLarge } = statusByAuthor[author]
  let decoded = bytes
  for (const name of names.reverse()) {
    const decompress = Object.hasOwn(decoders, name) ? decoders[name] : undefined
    if (decompress === undefined)
      throw new LlmError(unknown, `content coding ${name} is not supported`)
    try {
      decoded = await decompress(decoded, { maxOutputLength: limit })
    } catch (error) {
      const isLarge = (error as { code?: string }).code === 'ERR_BUFFER_TOO_LARGE'
      if (isLarge) throw new LlmError(tooLarge, 'the decoded body is too large')
      throw new LlmError(damaged, `the body is not valid ${name}`)
    }
  }
  return decoded
}
