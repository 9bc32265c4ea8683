/**
 * How blocks lie in a file: a mark, the length of the block, its CRC-32, the block. After a damaged
 * block the reader looks for the next mark.
 */
import { crc32 } from 'node:zlib'

/** `SLD1`, little-endian. */
const mark = 0x31_44_4c_53
export const frameBytes = 12
/** No block is longer. */
const mostBlockBytes = 1 << 20

/** Fills in the frame in front of a block that begins at `frameBytes`. */
export function closeFrame(bytes: Buffer, end: number): void {
  bytes.writeUInt32LE(mark, 0)
  bytes.writeUInt32LE(end - frameBytes, 4)
  bytes.writeUInt32LE(crc32(bytes.subarray(frameBytes, end)), 8)
}

/** A block, or bytes that hold none. */
type FoundFrame =
  | { readonly offset: number; readonly end: number; readonly block: Uint8Array }
  | { readonly offset: number; readonly end: number; readonly problem: string }

const markBytes = Buffer.from('SLD1', 'latin1')

/** The frames of a file in order, damaged parts among them. */
export function* framesOf(bytes: Buffer): Generator<FoundFrame> {
  let offset = 0
  while (offset < bytes.length) {
    const problem = problemAt(bytes, offset)
    if (problem === undefined) {
      const end = offset + frameBytes + bytes.readUInt32LE(offset + 4)
      yield { offset, end, block: bytes.subarray(offset + frameBytes, end) }
      offset = end
      continue
    }
    let next = bytes.indexOf(markBytes, offset + 1)
    while (next >= 0 && problemAt(bytes, next) !== undefined)
      next = bytes.indexOf(markBytes, next + 1)
    const end = next < 0 ? bytes.length : next
    yield { offset, end, problem }
    offset = end
  }
}

function problemAt(bytes: Buffer, offset: number): string | undefined {
  if (offset + frameBytes > bytes.length) return 'the block is cut off'
  if (bytes.readUInt32LE(offset) !== mark) return 'no block begins here'
  const length = bytes.readUInt32LE(offset + 4)
  if (length > mostBlockBytes) return 'the length of the block is not plausible'
  const end = offset + frameBytes + length
  if (end > bytes.length) return 'the block is cut off'
  const sum = crc32(bytes.subarray(offset + frameBytes, end))
  return sum === bytes.readUInt32LE(offset + 8) ? undefined : 'the checksum of the block differs'
}
