import { constants, zstdCompressSync, zstdDecompressSync } from 'node:zlib'
import { maxEventBytes } from './encode.ts'

/** Maximum number of events in a block. docs/adr/0018-events-in-compressed-blocks.md has the figures. */
export const maxBlockEvents = 128

/** Maximum bytes of the texts of a block, so that even the largest event fits in one of its own. */
export const maxBlockBytes = maxEventBytes

const compression = {
  params: {
    [constants.ZSTD_c_compressionLevel]: 3,
    // Damage is found when a block is read, since the file is not checked as a whole.
    [constants.ZSTD_c_checksumFlag]: 1,
  },
}

/** Limits for bytes that may be damaged: of the output, and of the window that a frame can ask for. */
const decompression = {
  maxOutputLength: maxBlockBytes + maxBlockEvents,
  params: { [constants.ZSTD_d_windowLogMax]: 21 },
}

/** Stored events are damaged or missing. */
export class DamageError extends Error {}

/** Consecutive events as they are stored together. */
export interface EventBlock {
  readonly first: number
  readonly last: number
  /** JSON texts, one a line, compressed with Zstandard. */
  readonly body: Uint8Array
}

/** Compresses JSON texts without line breaks, which `JSON.stringify` never writes. */
export function packBlock(first: number, texts: readonly string[]): EventBlock {
  const body = zstdCompressSync(texts.join('\n'), compression)
  return { first, last: first + texts.length - 1, body }
}

/**
 * Returns the JSON texts of a block.
 * @throws DamageError if the block is damaged; the message names its positions
 */
export function unpackBlock({ first, last, body }: EventBlock): readonly string[] {
  let texts: readonly string[]
  try {
    texts = zstdDecompressSync(body, decompression).toString().split('\n')
  } catch (cause) {
    throw damaged(first, last, (cause as Error).message, cause)
  }
  if (texts.length === last - first + 1) return texts
  throw damaged(first, last, `their block has ${texts.length} events`)
}

function damaged(first: number, last: number, reason: string, cause?: unknown): DamageError {
  const message = `the events at positions ${first} to ${last} cannot be read: ${reason}`
  return new DamageError(message, { cause })
}
