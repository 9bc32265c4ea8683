/**
 * Frames of blocks in a file. A frame is a magic number, the length of the block, its CRC-32 and the
 * block. After a damaged block, the reader searches for the next magic number.
 */
import { crc32 } from 'node:zlib'

/** Magic number: `SLD1`, little-endian. */
const magic = 0x31_44_4c_53
export const frameBytes = 12
/** Maximum size of a block. */
const maxBlockBytes = 1 << 20

/** Fills in the frame in front of a block that begins at `frameBytes`. */
export function closeFrame(bytes: Buffer, end: number): void {
  bytes.writeUInt32LE(magic, 0)
  bytes.writeUInt32LE(end - frameBytes, 4)
  bytes.writeUInt32LE(crc32(bytes.subarray(frameBytes, end)), 8)
}

/** A block, or a part of a file that contains no readable block. */
type FoundFrame =
  | { readonly offset: number; readonly end: number; readonly block: Buffer }
  | { readonly offset: number; readonly end: number; readonly problem: string }

const magicBytes = Buffer.from('SLD1', 'latin1')
const checksumProblem = 'the checksum of the block differs'
/**
 * Maximum number of times that the bytes of a damaged file are read for checksums that do not match. After
 * that, a block with a wrong checksum is skipped as a whole. This keeps the time linear, even if the file
 * contains many magic numbers.
 */
const maxScans = 4

/** Yields the frames of a file in order, and the damaged parts between them. */
export function* framesOf(bytes: Buffer): Generator<FoundFrame> {
  let offset = 0
  let budget = maxScans * bytes.length
  while (offset < bytes.length) {
    const problem = problemAt(bytes, offset)
    if (problem === undefined) {
      const end = endAt(bytes, offset)
      yield { offset, end, block: bytes.subarray(offset + frameBytes, end) }
      offset = end
      continue
    }
    let next = offset
    let reason: string | undefined = problem
    while (next >= 0 && reason !== undefined) {
      const end = reason === checksumProblem ? endAt(bytes, next) : next + 1
      budget -= end - next
      next = bytes.indexOf(magicBytes, budget < 0 ? end : next + 1)
      reason = next < 0 ? undefined : problemAt(bytes, next)
    }
    const end = next < 0 ? bytes.length : next
    yield { offset, end, problem }
    offset = end
  }
}

const endAt = (bytes: Buffer, offset: number): number =>
  offset + frameBytes + bytes.readUInt32LE(offset + 4)

function problemAt(bytes: Buffer, offset: number): string | undefined {
  if (offset + frameBytes > bytes.length) return 'the block is cut off'
  if (bytes.readUInt32LE(offset) !== magic) return 'no block begins here'
  const length = bytes.readUInt32LE(offset + 4)
  if (length > maxBlockBytes) return `the block is longer than ${maxBlockBytes} bytes`
  const end = endAt(bytes, offset)
  if (end > bytes.length) return 'the block is cut off'
  const sum = crc32(bytes.subarray(offset + frameBytes, end))
  return sum === bytes.readUInt32LE(offset + 8) ? undefined : checksumProblem
}
