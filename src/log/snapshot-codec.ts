/** How snapshots are stored: each chunk compressed on its own, with a checksum. */
import { promisify } from 'node:util'
import { constants, zstdCompress, zstdDecompress } from 'node:zlib'
import { LogError } from './log.ts'

const compress = promisify(zstdCompress)
const decompress = promisify(zstdDecompress)

/** Fast, and smaller than deflate at its fastest. The checksum finds damage when a chunk is read. */
const params = {
  [constants.ZSTD_c_compressionLevel]: 1,
  [constants.ZSTD_c_checksumFlag]: 1,
}

/** Maximum bytes of a chunk after decompression. */
const maxChunkBytes = 512 * 1024 * 1024

/** The first bytes of compressed data. Chunks of logs of schema version 1 are JSON, and not compressed. */
const magic = Buffer.from([0x28, 0xb5, 0x2f, 0xfd])

/** Compresses chunks outside of the main thread. */
export function packChunks(chunks: readonly Uint8Array[]): Promise<Uint8Array[]> {
  return Promise.all(chunks.map((chunk) => compress(chunk, { params })))
}

/** @throws LogError `corrupt` if a chunk is damaged. */
export async function unpackChunks(
  position: number,
  chunks: readonly Uint8Array[],
): Promise<Uint8Array[]> {
  try {
    return await Promise.all(chunks.map(unpack))
  } catch (cause) {
    throw new LogError('corrupt', `the snapshot at position ${position} is damaged`, { cause })
  }
}

async function unpack(chunk: Uint8Array): Promise<Uint8Array> {
  if (!magic.equals(chunk.subarray(0, magic.length))) return chunk
  return decompress(chunk, { maxOutputLength: maxChunkBytes })
}
