/** How snapshots are stored: each chunk compressed on its own, with a checksum. */
import { promisify } from 'node:util'
import { constants, zstdCompress, zstdDecompress } from 'node:zlib'
import { LogError, type NewSnapshot } from './log.ts'

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

/**
 * Compresses chunks outside of the main thread, one at a time. Each compressor has a megabyte of memory that V8
 * counts: several hundred at once would make it collect its whole heap again and again.
 */
export async function packChunks(chunks: NewSnapshot['chunks']): Promise<Uint8Array[]> {
  const packed: Uint8Array[] = []
  for await (const chunk of chunks) packed.push(await compress(chunk, { params }))
  return packed
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
