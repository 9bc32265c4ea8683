// Zip archives that depend on nothing but their content.
import { crc32, deflateRawSync } from 'node:zlib'

/** 1 January 1980, the first date that the format has. */
const date = 0x00210000
const deflated = 8

/**
 * Writes an archive of files, sorted by name. It has no more than 65,535 files and 4 GB.
 * @param {Iterable<{ name: string, bytes: Uint8Array }>} files
 * @returns {Buffer}
 */
export function zipOf(files) {
  const sorted = [...files].sort((a, b) => (a.name < b.name ? -1 : 1))
  const bodies = []
  const directory = []
  let offset = 0
  for (const { name, bytes } of sorted) {
    const path = Buffer.from(name)
    const body = deflateRawSync(bytes, { level: 9 })
    const shared = Buffer.alloc(26)
    shared.writeUInt16LE(20, 0) // version that is needed to extract
    shared.writeUInt16LE(0x0800, 2) // names are UTF-8
    shared.writeUInt16LE(deflated, 4)
    shared.writeUInt32LE(date, 6)
    shared.writeUInt32LE(crc32(bytes), 10)
    shared.writeUInt32LE(body.length, 14)
    shared.writeUInt32LE(bytes.length, 18)
    shared.writeUInt16LE(path.length, 22)
    bodies.push(Buffer.from('PK\x03\x04'), shared, path, body)
    const place = Buffer.alloc(14)
    place.writeUInt32LE(offset, 10)
    directory.push(Buffer.from('PK\x01\x02\x14\x00'), shared, place, path)
    offset += 30 + path.length + body.length
  }
  const end = Buffer.alloc(18)
  end.writeUInt16LE(sorted.length, 4)
  end.writeUInt16LE(sorted.length, 6)
  end.writeUInt32LE(Buffer.concat(directory).length, 8)
  end.writeUInt32LE(offset, 12)
  return Buffer.concat([...bodies, ...directory, Buffer.from('PK\x05\x06'), end])
}
